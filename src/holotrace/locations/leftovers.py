"""Temporary files whose names say which process writes them, so that what killed processes left behind can be removed."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from platform import node

_WRITER = re.compile(r"(?:(?P<machine>[0-9a-f]{8})-)?(?P<process>\d+)-[0-9a-f]+")
_NAME = re.compile(rf"(?:\.tmp-|holotrace-(?:sql-)?|\..*\.){_WRITER.pattern}(?:\.tmp)?", re.DOTALL)
_OF_ANOTHER_MACHINE_AFTER_S = 86_400
"""After so long without a change, what a process of another machine began counts as left behind."""


def writer() -> str:
    """Return a text that names this process among those of all machines, and differs each time."""
    return f"{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"


def temporary_name() -> str:
    """Return a name, hidden and used by nobody else, for what gets its own name when it is complete."""
    return f".tmp-{writer()}"


def draft_name(name: str) -> str:
    """Return such a name for a file that will be called `name`."""
    return f".{name}.{writer()}.tmp"


def drafts_of(path: Path) -> list[Path]:
    """Return the drafts of a file, whoever writes them."""
    begins = f".{path.name}."
    try:
        with os.scandir(path.parent) as entries:
            found = [each.name for each in entries if each.name.startswith(begins) and each.name.endswith(".tmp")]
    except OSError:
        return []
    return [path.with_name(name) for name in found if _WRITER.fullmatch(name[len(begins) : -len(".tmp")])]


def is_temporary(path: Path) -> bool:
    """Whether a name is one of those that this module gives."""
    return _NAME.fullmatch(path.name) is not None


def is_left_behind(path: Path) -> bool:
    """Whether a process that is gone left this behind; of another machine, whether nothing changed in it for a day."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return False
    if match["machine"] == _machine():
        return not _is_running(int(match["process"]))
    is_old = time.time() - _last_change_s(path) > _OF_ANOTHER_MACHINE_AFTER_S
    return is_old and (match["machine"] is not None or not _is_running(int(match["process"])))


def remove_left_behind(paths: Iterable[Path]) -> None:
    """Remove those files and folders among `paths` that are left behind; whatever resists stays."""
    for path in paths:
        with suppress(OSError):
            if not is_left_behind(path):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


@contextmanager
def scratch_folder(what: str = "") -> Iterator[Path]:
    """Give a new folder among the temporary files of the system, readable by this user alone, and remove it afterwards.

    Its name begins with `holotrace-` and `what`, which is empty or `sql-`.
    Those that killed processes left there are removed, too.
    """
    around = Path(tempfile.gettempdir())
    _sweep_scratch(around)
    folder = around / f"holotrace-{what}{writer()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _sweep_scratch(around: Path) -> None:
    """Remove what is left behind there, once in the life of a process."""
    with suppress(OSError):
        remove_left_behind(list(around.glob("holotrace-*")))


@functools.cache
def _machine() -> str:
    """Return what the processes that see each other have in common: a machine since its start, and in it a container."""
    parts = [node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:8]


def _last_change_s(path: Path) -> float:
    """Return when a file was last written; of a folder, when it or a file in it was."""
    found = path.stat().st_mtime
    if path.is_dir():
        found = max([found, *(child.stat().st_mtime for child in path.iterdir())])
    return found


def _is_running(process_id: int) -> bool:
    if os.name != "posix":  # elsewhere os.kill ends the process it asks about
        return False
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
