"""What can be told of a file without reading it, here and behind URLs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

from holotrace.locations.location import located
from holotrace.locations.remote_path import RemotePath

_TIMES = (
    "mtime",
    "LastModified",
    "last_modified",
    "updated",
    "modified",
    "Last-Modified",
    "modificationTime",
    "created",
)
_VERSIONS = ("ETag", "etag", "generation", "md5Hash", "Content-MD5", "Digest")
_NS_OF_A_SECOND = 1_000_000_000
_NS_OF_A_MILLISECOND = 1_000_000
_FIRST_MS_OF_1971 = 31_536_000_000
"""A number from here on counts milliseconds, a smaller one seconds."""


class Status(NamedTuple):
    """Size in bytes (None: not said), time of the last change in ns since 1970 (0), and the version ("") of a file.

    The version is what a store calls etag or generation; a file of this machine has none. It has a number instead, which
    another file in its place does not share, and the time of the last change to its content, name or permissions, which
    the system sets and no program can choose.
    """

    size: int | None
    mtime_ns: int = 0
    etag: str = ""
    changed_ns: int = 0
    inode: int = 0


@dataclass(frozen=True)
class Child:
    """What lies in a folder; `status` is None where that was not told along with the name."""

    path: str
    name: str
    is_dir: bool
    status: Status | None = None


def status_of(location: Path | RemotePath) -> Status:
    """Return what can be told of a file.

    Raises:
        FileNotFoundError: it is not there.
        OSError: that cannot be asked; behind a URL an UnreachableError.
    """
    if isinstance(location, RemotePath):
        return _remote_status(location.info())
    found = location.stat()
    return Status(found.st_size, found.st_mtime_ns, changed_ns=found.st_ctime_ns, inode=found.st_ino)


def scan(folder: str | Path | RemotePath) -> list[Child]:
    """Return what lies in a folder, without what is hidden; links count as what they lead to.

    The paths begin with the text of the folder as it was given.

    Raises:
        FileNotFoundError: there is no such folder.
        OSError: it cannot be listed; behind a URL an UnreachableError.
    """
    location = located(folder)
    if isinstance(location, RemotePath):
        return [_child(location, name, entry) for name, entry in location.listed() if not name.startswith(".")]
    with os.scandir(folder if isinstance(folder, str) else location) as entries:
        return [Child(each.path, each.name, each.is_dir()) for each in entries if not each.name.startswith(".")]


def _child(folder: RemotePath, name: str, entry: Mapping[str, Any]) -> Child:
    is_dir = entry.get("type") == "directory"
    return Child(str(folder / name), name.rstrip("/"), is_dir, None if is_dir else _remote_status(entry))


def _remote_status(entry: Mapping[str, Any]) -> Status:
    size = entry.get("size")
    return Status(size if isinstance(size, int) else None, _time_ns(entry), _version(entry))


def _version(entry: Mapping[str, Any]) -> str:
    found = next((str(value) for name in _VERSIONS if (value := entry.get(name))), "")
    return found.removeprefix("W/").strip('"')


def _time_ns(entry: Mapping[str, Any]) -> int:
    for name in _TIMES:
        moment = _moment(entry.get(name))
        if moment is not None:
            return moment
    return 0


def _moment(value: object) -> int | None:
    if isinstance(value, datetime):
        known = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        since = known - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return (since.days * 86_400 + since.seconds) * _NS_OF_A_SECOND + since.microseconds * 1_000
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value * (_NS_OF_A_MILLISECOND if value >= _FIRST_MS_OF_1971 else _NS_OF_A_SECOND))
    return _moment(_parsed(value)) if isinstance(value, str) else None


def _parsed(text: str) -> datetime | None:
    """Read a time as ISO 8601 or as web servers write it."""
    with suppress(ValueError):
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    with suppress(ValueError, TypeError):
        return parsedate_to_datetime(text)
    return None
