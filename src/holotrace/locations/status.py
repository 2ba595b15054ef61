"""The status of a file, local or at a URL: size, times and version."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

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
"""Numeric times in metadata are in milliseconds if they are at least this number, and otherwise in seconds."""


class Status(NamedTuple):
    """The status of a file; unknown values are None, 0 or "".

    size        bytes
    mtime_ns    time of the last change, ns since 1970
    etag        version of a remote file; servers call it etag or generation
    changed_ns  for local files, time of the last change to content, name or permissions (ctime); programs cannot set it
    inode       for local files, the inode; it changes if the file is replaced by another file
    """

    size: int | None
    mtime_ns: int = 0
    etag: str = ""
    changed_ns: int = 0
    inode: int = 0


class _RemoteFile(Protocol):
    def info(self) -> dict[str, Any]: ...


def status_of(location: Path | _RemoteFile) -> Status:
    """Return the status of a file.

    Raises:
        FileNotFoundError: the file does not exist.
        OSError: the status cannot be read; for a URL, the error is an UnreachableError.
    """
    if not isinstance(location, Path):
        return remote_status(location.info())
    status = location.stat()
    return Status(status.st_size, status.st_mtime_ns, changed_ns=status.st_ctime_ns, inode=status.st_ino)


def remote_status(entry: Mapping[str, Any]) -> Status:
    """Return the status of a file from the file system's metadata."""
    size = entry.get("size")
    return Status(size if isinstance(size, int) else None, _time_ns(entry), _version(entry))


def _version(entry: Mapping[str, Any]) -> str:
    version = next((str(value) for name in _VERSIONS if (value := entry.get(name))), "")
    return version.removeprefix("W/").strip('"')


def _time_ns(entry: Mapping[str, Any]) -> int:
    for name in _TIMES:
        time_ns = _as_ns(entry.get(name))
        if time_ns is not None:
            return time_ns
    return 0


def _as_ns(value: object) -> int | None:
    if isinstance(value, datetime):
        known = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        since = known - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return (since.days * 86_400 + since.seconds) * _NS_OF_A_SECOND + since.microseconds * 1_000
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value * (_NS_OF_A_MILLISECOND if value >= _FIRST_MS_OF_1971 else _NS_OF_A_SECOND))
    return _as_ns(_parsed(value)) if isinstance(value, str) else None


def _parsed(text: str) -> datetime | None:
    """Parse a time as ISO 8601 or as an HTTP date (https://www.rfc-editor.org/rfc/rfc9110.html#http.date)."""
    with suppress(ValueError):
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    with suppress(ValueError, TypeError):
        return parsedate_to_datetime(text)
    return None
