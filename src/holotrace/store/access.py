"""Who may read what is stored: nobody who may not read the trace."""

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
    """Keep everybody else out of a new file or folder while the block runs, and then let in who may read `source` as well.

    The umask goes on to count. What is behind a URL has no permissions that could be compared.

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
    for each in paths:
        mode = before if each == path else each.stat().st_mode
        each.chmod(stat.S_IMODE(mode) & (allowed | (allowed & 0o444) >> 2 if each.is_dir() else allowed))


def _allowed(path: Path, source: str) -> int:
    """Return the permissions that the trace gives, to its group only where that is the group of `path` as well."""
    if is_url(source):
        return _OWNER | _GROUP | _OTHERS
    found = os.stat(source)  # noqa: PTH116 -- the text of a path
    others = found.st_mode & _OTHERS
    of_group = found.st_mode & _GROUP if found.st_gid == path.stat().st_gid else others << _BITS_OF_A_CLASS
    return _OWNER | of_group | others
