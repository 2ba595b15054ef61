"""Random access to the bytes of a file at a URL.

If the connection is lost, reading resumes after the last received byte. The number of tries is limited.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Protocol

from holotrace.errors import UnreadableTraceError
from holotrace.locations.filesystems import HADOOP, scheme_of
from holotrace.locations.status import Status, status_of
from holotrace.locations.unreachable import explained_errors, is_final

if TYPE_CHECKING:
    from typing import IO

    from fsspec import AbstractFileSystem

FIRST_PIECE = 1 << 18
"""Size in bytes of the first piece that is fetched; small, because often only the beginning of a file is needed."""

LARGEST_PIECE = 8 << 20
"""Size of the largest piece in bytes; each piece is four times as large as the one before, up to this size."""

PIECES_ON_THEIR_WAY = 4
TRIES = 4
FIRST_PAUSE_S = 0.2
"""Pause before the second try; it doubles with each try. Random jitter of up to 50 % prevents thousands of clients from
retrying at the same time."""


class RemoteFile(Protocol):
    """The properties and methods of `RemotePath` that are needed for reading."""

    @property
    def url(self) -> str:
        """The URL without secrets."""

    @property
    def is_page(self) -> bool:
        """Whether the file is on a web server."""

    @property
    def filesystem(self) -> tuple[AbstractFileSystem, str]:
        """The fsspec file system of the URL, and the path in this file system."""

    def info(self) -> dict[str, Any]:
        """Return the file system's metadata for the file."""


class _Source(Protocol):
    """Fetches the bytes from `start` to `end`, or fewer if the file or the connection ends early."""

    at_once: int
    """Maximum number of concurrent calls to `fetch`."""

    def fetch(self, start: int, end: int) -> bytes: ...

    def close(self) -> None: ...


class _Parts:
    """Fetches each range of bytes with a separate request."""

    at_once = PIECES_ON_THEIR_WAY

    def __init__(self, filesystem: AbstractFileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path

    def fetch(self, start: int, end: int) -> bytes:
        content = self._filesystem.cat_file(self._path, start=start, end=end)
        return content if isinstance(content, bytes) else bytes(content)

    def close(self) -> None:
        """Do nothing, because no connection stays open between requests."""


class _InOrder:
    """Reads an open file in order; to reach another offset, it seeks, skips bytes, or opens the file again."""

    at_once = 1

    def __init__(self, open_file: Callable[[], IO[bytes]]) -> None:
        self._open_file = open_file
        self._file: IO[bytes] | None = None
        self._at = 0

    def fetch(self, start: int, end: int) -> bytes:
        try:
            file = self._opened_at(start)
            content = file.read(end - start)
        except BaseException:
            self.close()
            raise
        self._at += len(content)
        return content

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _opened_at(self, start: int) -> IO[bytes]:
        if self._file is None or start < self._at:
            self.close()
            self._file, self._at = self._open_file(), 0
        if start != self._at:
            _move(self._file, self._at, start)
            self._at = start
        return self._file


class _WebPage:
    """Requests byte ranges if the server supports them; otherwise reads the file in order."""

    def __init__(self, filesystem: AbstractFileSystem, path: str, size: int | None) -> None:
        self._parts = _InOrder(
            lambda: filesystem.open(path, "rb", block_size=LARGEST_PIECE, cache_type="none", size=size)
        )
        self._whole = _InOrder(lambda: filesystem.open(path, "rb", block_size=0))
        self._has_parts = size is not None
        self.at_once = 1
        self._lock = Lock()

    def fetch(self, start: int, end: int) -> bytes:
        with self._lock:
            if self._has_parts:
                try:
                    return self._parts.fetch(start, end)
                except ValueError:  # fsspec raises ValueError if the server ignores the range and sends the whole file
                    self._has_parts = False
            return self._whole.fetch(start, end)

    def close(self) -> None:
        self._parts.close()
        self._whole.close()


class RemoteBytes:
    """Random access to the bytes of a file at a URL, with retries after lost connections."""

    def __init__(self, location: RemoteFile) -> None:
        """Look up size and version; no bytes are fetched yet.

        Raises:
            FileNotFoundError: the file does not exist.
            UnreachableError: the file cannot be reached.
        """
        self.location = location
        self.status = status_of(location)
        self._source = _source(location, self.status)
        self._closed = Event()

    @property
    def at_once(self) -> int:
        """Maximum number of concurrent calls to `fetch`."""
        return self._source.at_once

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, or fewer at the end of the file.

        Raises:
            UnreadableTraceError: several tries failed.
        """
        end = end if self.status.size is None else min(end, self.status.size)
        pieces: list[bytes] = []
        failures = 0
        while start < end:
            piece, error = self._tried(start, end)
            if piece:
                pieces.append(piece)
                start += len(piece)
                failures = 0
                continue
            if error is None and self.status.size is None:
                break
            failures += 1
            if failures == TRIES or self._closed.is_set() or (error is not None and is_final(error)):
                with explained_errors(self.location):
                    raise error or self._cut_short(start)
            self._closed.wait(FIRST_PAUSE_S * 2 ** (failures - 1) * random.uniform(1, 1.5))  # noqa: S311 -- not used for security
        return b"".join(pieces)

    def expect_unchanged(self) -> None:
        """Check that the file has not changed.

        Raises:
            UnreadableTraceError: the file has changed since reading began, so its parts may not fit together.
        """
        if status_of(self.location) != self.status:
            message = f"{self.location.url} was changed while it was being read; read it again"
            raise UnreadableTraceError(message)

    def close(self) -> None:
        """Stop retrying."""
        self._closed.set()

    def release(self) -> None:
        """Close the connection."""
        self._source.close()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed.is_set()

    def _tried(self, start: int, end: int) -> tuple[bytes, Exception | None]:
        try:
            return self._source.fetch(start, end), None
        except Exception as error:  # noqa: BLE001 -- `fetch` raises it unless a retry helps
            return b"", error

    def _cut_short(self, at: int) -> UnreadableTraceError:
        return UnreadableTraceError(
            f"{self.location.url} cannot be read: after byte {at:,} of {self.status.size:,}, no more bytes arrived in "
            f"{TRIES} tries"
        )


def _source(location: RemoteFile, status: Status) -> _Source:
    filesystem, path = location.filesystem
    if location.is_page:
        return _WebPage(filesystem, path, status.size)
    if getattr(filesystem, "async_impl", False) and status.size is not None:
        return _Parts(filesystem, path)
    options = (
        {} if scheme_of(location.url) in HADOOP else {"block_size": FIRST_PIECE}
    )  # by default, WebHDFS reads 5 MB even for a peek
    return _InOrder(lambda: filesystem.open(path, "rb", **options))


def _move(file: IO[bytes], at: int, to: int) -> None:
    """Seek to an offset; if the file cannot seek, read up to the offset."""
    try:
        file.seek(to)
    except (ValueError, OSError):
        _pass_over(file, at, to)


def _pass_over(file: IO[bytes], at: int, to: int) -> None:
    while at < to:
        passed = len(file.read(min(LARGEST_PIECE, to - at)))
        if not passed:
            return
        at += passed
