"""Temporary files; their names identify the writing process, so leftovers of killed processes can be removed."""

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

_WRITER = re.compile(r"(?:(?P<machine>[0-9a-f]{8})-)?(?P<process>\d{1,9})-[0-9a-f]+")
_NAME = re.compile(rf"(?:\.tmp-|holotrace-(?:sql-)?|\..*\.){_WRITER.pattern}(?:\.tmp)?", re.DOTALL)
_OF_ANOTHER_MACHINE_AFTER_S = 86_400
"""A temporary file that another machine wrote is considered left behind if it has not changed for this many seconds."""


def writer() -> str:
    """Return a new unique name that identifies this process and machine."""
    return f"{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"


def temporary_name() -> str:
    """Return a unique hidden name for a file or folder that will be renamed when complete."""
    return f".tmp-{writer()}"


def draft_name(name: str) -> str:
    """Return a unique hidden name for a draft: a file that will be renamed to `name` when complete."""
    return f".{name}.{writer()}.tmp"


def drafts_of(path: Path) -> list[Path]:
    """Return all files that any process made with `draft_name` for this path, finished or not."""
    prefix = f".{path.name}."
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(prefix) and entry.name.endswith(".tmp")]
    except OSError:
        return []
    return [path.with_name(name) for name in names if _WRITER.fullmatch(name[len(prefix) : -len(".tmp")])]


def is_temporary(path: Path) -> bool:
    """Return whether the path's file name has the form of the temporary names that this module makes."""
    return _NAME.fullmatch(path.name) is not None


def is_left_behind(path: Path) -> bool:
    """Return whether a path is a temporary file or folder that its writer no longer needs.

    The answer depends on the machine that the path's name identifies:

    - This machine: the process that wrote the path must have ended.
    - Another machine: the path must not have changed for a day.
    - No machine: the process must have ended, and the path must not have changed for a day.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        return False
    if match["machine"] == _machine():
        return not _is_running(int(match["process"]))
    is_old = time.time() - _last_change_s(path) > _OF_ANOTHER_MACHINE_AFTER_S
    return is_old and (match["machine"] is not None or not _is_running(int(match["process"])))


def remove_left_behind(paths: Iterable[Path]) -> None:
    """Remove those of `paths` for which `is_left_behind` is true; ignore errors."""
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
    """Yield a new private folder in the system's temporary folder, and remove it afterwards.

    The folder's name begins with `holotrace-`, followed by `what` (empty or `sql-`). Folders left behind by killed
    processes are removed, too.
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
    """Remove the folders that killed processes left behind in `around`; only the first call in a process does so."""
    with suppress(OSError):
        remove_left_behind(list(around.glob("holotrace-*")))


@functools.cache
def _machine() -> str:
    """Return an id of this machine, boot and container.

    If two processes have the same id, each can check whether the other is still running.
    """
    parts = [node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:8]


def _last_change_s(path: Path) -> float:
    """Return the time of the last change to a file, or to a folder and its entries."""
    changed_s = path.stat().st_mtime
    if path.is_dir():
        changed_s = max([changed_s, *(child.stat().st_mtime for child in path.iterdir())])
    return changed_s


def _is_running(process_id: int) -> bool:
    import psutil  # noqa: PLC0415 -- takes 18 ms; most runs find no leftovers

    return bool(psutil.pid_exists(process_id))
