"""File permissions of stored data: only users who may read the trace may read the stored data."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holotrace.locations import is_url

_OWNER, _GROUP, _OTHERS = stat.S_IRWXU, stat.S_IRWXG, stat.S_IRWXO
_BITS_OF_A_CLASS = 3


@contextmanager
def narrowed(path: Path, source: str) -> Iterator[None]:
    """Keep a new file or folder private inside the `with` block, then give access to users who may read `source`.

    The umask also applies. If `source` is a URL, only the umask restricts access.

    Raises:
        OSError: the permissions cannot be changed.
    """
    paths = [path]
    before = path.stat().st_mode
    path.chmod(before & _OWNER)
    yield
    if path.is_dir():
        paths += path.iterdir()
    allowed = _allowed(path, source)
    for inner in paths:
        mode = before if inner == path else inner.stat().st_mode
        inner.chmod(stat.S_IMODE(mode) & (allowed | (allowed & 0o444) >> 2 if inner.is_dir() else allowed))


def _allowed(path: Path, source: str) -> int:
    """Return the permissions that `path` gets: the same as those of the trace.

    If `path` and the trace belong to different groups, the group of `path` gets only the permissions that the trace
    gives to everyone.
    """
    if is_url(source):
        return _OWNER | _GROUP | _OTHERS
    status = os.stat(source)  # noqa: PTH116 -- the path is a string
    others = status.st_mode & _OTHERS
    of_group = status.st_mode & _GROUP if status.st_gid == path.stat().st_gid else others << _BITS_OF_A_CLASS
    return _OWNER | of_group | others
