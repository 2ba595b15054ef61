"""How much a cache holds: its limit, what is removed above it, and what killed processes left behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holotrace.locations import is_temporary, remove_left_behind
from holotrace.store.shared_entries import MANIFEST

_SWEEP_SHARE = 16
"""A bounded cache that is too large shrinks by this part of its limit at once, and a process adds at most as much
before it looks again: looking at every entry each time one is added would take quadratic time in jobs of many ranks."""

_OF_ALL = 0o077
_room_bytes: dict[tuple[Path, int | None], float] = {}  # what this process may still add before it looks again


@dataclass(frozen=True, order=True)
class _Kept:
    """A folder of a cache: when it was last used (ns since 1970), its size, and where it is."""

    used_ns: int
    byte_count: int
    folder: Path


def make_room(folder: Path, limit_bytes: int | None, *, keep: Path | None) -> None:
    """Remove entries where the cache has grown above its limit, and leftovers in any case; look only once in a while."""
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
    """Remove what killed processes left in any folder of the cache, and close folders that others can look into."""
    for home in _folders_in(folder):
        with suppress(OSError):
            if home.stat().st_mode & _OF_ALL:
                home.chmod(0o700)
        remove_left_behind(path for path in _paths_in(home) if is_temporary(path))
        for entry in _folders_in(home):
            remove_left_behind(path for path in _paths_in(entry) if is_temporary(path))
        with suppress(OSError):
            home.rmdir()  # only where nothing is in it


def _remove_least_recently_used(folder: Path, limit_bytes: int, *, keep: Path | None) -> int:
    """Shrink a cache that is above its limit to somewhat below it; return how large it is then.

    What is being written counts, and stays.
    """
    found = sorted(_kept(each) for home in _folders_in(folder) for each in _folders_in(home))
    total = sum(each.byte_count for each in found)
    target = limit_bytes if total <= limit_bytes else limit_bytes - limit_bytes // _SWEEP_SHARE
    for each in found:
        if total <= target:
            break
        if each.folder != keep and not is_temporary(each.folder):
            shutil.rmtree(each.folder, ignore_errors=True)
            with suppress(OSError):
                each.folder.parent.rmdir()
            total -= each.byte_count
    return total


def _kept(folder: Path) -> _Kept:
    """Look at a folder; of one that just vanished, the rest counts."""
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
        return [folder / name for name in os.listdir(folder)]  # noqa: PTH208 -- all of them at once, however many
    except OSError:
        return []
