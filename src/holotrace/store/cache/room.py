"""Limit the size of a cache, and remove files that killed processes left in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holotrace.locations import is_temporary, remove_left_behind
from holotrace.store.cache.entry import MANIFEST

_SWEEP_SHARE = 16
"""A cache above its limit shrinks to 15/16 of the limit in one go, and a process adds at most 1/16 of the limit before
it checks the size of the cache again. Adding up the sizes of all entries whenever an entry is added would take
quadratic time for jobs with many ranks.
"""

_GROUP_AND_OTHERS = 0o077
_room_bytes: dict[tuple[Path, int | None], float] = {}  # bytes that this process may add before the next check


@dataclass(frozen=True, order=True)
class _Kept:
    """An entry of a cache: its last use (ns since 1970), size and folder."""

    used_ns: int
    byte_count: int
    folder: Path


def make_room(folder: Path, limit_bytes: int | None, *, keep: Path | None) -> None:
    """Remove files of killed processes and, if the cache exceeds its limit, the least recently used entries.

    Most calls only add the size of the new entry to a running total.
    """
    added = 0 if keep is None else _kept(keep).byte_count
    room = _room_bytes.get((folder, limit_bytes), 0) - added
    if room < 0:
        room = float("inf")
        _sweep(folder)
        if limit_bytes is not None:
            total = _remove_least_recently_used(folder, limit_bytes, keep=keep)
            room = min(limit_bytes - total, limit_bytes // _SWEEP_SHARE)
    _room_bytes[folder, limit_bytes] = room


def _sweep(folder: Path) -> None:
    """Remove files that killed processes left in the cache, and make its folders private."""
    for home in _folders_in(folder):
        with suppress(OSError):
            if home.stat().st_mode & _GROUP_AND_OTHERS:
                home.chmod(0o700)
        remove_left_behind(path for path in _paths_in(home) if is_temporary(path))
        for entry in _folders_in(home):
            remove_left_behind(path for path in _paths_in(entry) if is_temporary(path))
        with suppress(OSError):
            home.rmdir()  # fails unless the folder is empty


def _remove_least_recently_used(folder: Path, limit_bytes: int, *, keep: Path | None) -> int:
    """Shrink a cache above its limit to 15/16 of the limit; return the size afterwards.

    Entries that are still being written are counted, but never removed.
    """
    entries = sorted(_kept(entry) for home in _folders_in(folder) for entry in _folders_in(home))
    total = sum(entry.byte_count for entry in entries)
    target = limit_bytes if total <= limit_bytes else limit_bytes - limit_bytes // _SWEEP_SHARE
    for entry in entries:
        if total <= target:
            break
        if entry.folder != keep and not is_temporary(entry.folder):
            shutil.rmtree(entry.folder, ignore_errors=True)
            with suppress(OSError):
                entry.folder.parent.rmdir()
            total -= entry.byte_count
    return total


def _kept(folder: Path) -> _Kept:
    """Return the size and last use of an entry; files that disappear meanwhile are ignored."""
    used_ns = byte_count = 0
    for path in _paths_in(folder):
        with suppress(OSError):
            status = path.stat()
            byte_count += status.st_size
            if path.name == MANIFEST:
                used_ns = status.st_mtime_ns
    return _Kept(used_ns, byte_count, folder)


def _folders_in(folder: Path) -> Iterator[Path]:
    return (path for path in _paths_in(folder) if path.is_dir() and not path.is_symlink())


def _paths_in(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]  # noqa: PTH208 -- faster than one call per entry
    except OSError:
        return []
