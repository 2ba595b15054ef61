"""Bytes behind a URL, fetched piece by piece while the previous pieces are parsed.

If the server supports ranges, several pieces are fetched at once. Otherwise the file is read in order, ahead of the
consumer. If the connection is lost, it is reopened after the last byte received, a limited number of times; then
reading fails.
"""

from __future__ import annotations

import io
import random
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from threading import Event, Lock
from typing import TYPE_CHECKING, Protocol

from holotrace.errors import UnreadableTraceError
from holotrace.locations.filesystems import HADOOP, scheme_of
from holotrace.locations.location import Address, located
from holotrace.locations.remote_path import RemotePath
from holotrace.locations.status import Status, status_of
from holotrace.locations.unreachable import explained_errors, is_final

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

    from fsspec import AbstractFileSystem

FIRST_PIECE = 1 << 18
"""Size of the first piece in bytes; for most files only the beginning is inspected."""

LARGEST_PIECE = 8 << 20
"""Size of the largest piece in bytes; pieces grow fourfold up to it."""

PIECES_ON_THEIR_WAY = 4
TRIES = 4
FIRST_PAUSE_S = 0.2
"""Pause before the second try; it doubles each time, with up to 50 % random jitter so that thousands of clients do not
retry at once."""

_LOOK_UP_S = 0.2


class _Source(Protocol):
    """Fetches the bytes from `start` to `end`; fewer if the file or the connection ends."""

    at_once: int
    """How many calls of `fetch` may run at the same time."""

    def fetch(self, start: int, end: int) -> bytes: ...

    def close(self) -> None: ...


class _Parts:
    """Fetches each part with its own request."""

    at_once = PIECES_ON_THEIR_WAY

    def __init__(self, filesystem: AbstractFileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path

    def fetch(self, start: int, end: int) -> bytes:
        content = self._filesystem.cat_file(self._path, start=start, end=end)
        return content if isinstance(content, bytes) else bytes(content)

    def close(self) -> None:
        """Do nothing: nothing is open."""


class _InOrder:
    """Reads an open file in order; seeks, or reads on, if another offset is requested."""

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
    """Requests byte ranges if the server supports them, else reads in order."""

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
                except ValueError:  # fsspec raises this if the server ignores the range and sends the whole file
                    self._has_parts = False
            return self._whole.fetch(start, end)

    def close(self) -> None:
        self._parts.close()
        self._whole.close()


class RemoteBytes:
    """Random access to the bytes of a file behind a URL, with retries after lost connections."""

    def __init__(self, location: RemotePath) -> None:
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
        """How many calls of `fetch` may run at the same time."""
        return self._source.at_once

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`; fewer only at the end of the file.

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
            self._closed.wait(FIRST_PAUSE_S * 2 ** (failures - 1) * random.uniform(1, 1.5))  # noqa: S311 -- no secret
        return b"".join(pieces)

    def expect_unchanged(self) -> None:
        """Check that the file is still the same.

        Raises:
            UnreadableTraceError: the file has changed since reading began, so the parts may not fit together.
        """
        if status_of(self.location) != self.status:
            message = f"{self.location} was changed while it was being read; read it again"
            raise UnreadableTraceError(message)

    def close(self) -> None:
        """Stop retrying."""
        self._closed.set()

    def release(self) -> None:
        """Close what is open."""
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
            f"{self.location} cannot be read: no bytes arrive after {at:,} of {self.status.size:,}, tried {TRIES} times"
        )


class RemoteStream:
    """A file as a sequence of pieces for the native reader, fetched ahead.

    name        name of the file in messages
    byte_count  size of the file, 0 if unknown
    """

    def __init__(self, location: RemotePath, *, ahead: bool = True) -> None:
        """Open the file; without `ahead`, fetch only the pieces that are read.

        Raises:
            FileNotFoundError: the file does not exist.
            UnreachableError: the file cannot be reached.
        """
        self._bytes = RemoteBytes(location)
        self.name = str(location)
        self.byte_count = self._bytes.status.size or 0
        self._ahead = self._bytes.at_once if ahead else 0
        self._pool = ThreadPoolExecutor(self._bytes.at_once, thread_name_prefix="holotrace-fetch")
        self._coming: deque[Future[bytes]] = deque()
        self._next = 0
        self._piece_size = FIRST_PIECE

    def read(self) -> bytes:
        """Return the next piece, empty at the end.

        Raises:
            UnreadableTraceError: the piece did not arrive, or the file was changed.
        """
        self._ask(1 + self._ahead)
        piece = self._arrived(self._coming.popleft()) if self._coming else b""
        if not piece and self._next:
            self._bytes.expect_unchanged()
        return piece

    def close(self) -> None:
        """Stop waiting for bytes; may be called from another thread."""
        self._bytes.close()

    def release(self) -> None:
        """Cancel pending pieces and close the file, without waiting for pieces in transit."""
        self.close()
        for piece in self._coming:
            piece.cancel()
        self._pool.submit(self._bytes.release)
        self._pool.shutdown(wait=False)

    def _ask(self, count: int) -> None:
        size = self._bytes.status.size
        while len(self._coming) < count and (size is None or self._next < size):
            end = self._next + self._piece_size
            self._coming.append(self._pool.submit(self._bytes.fetch, self._next, end))
            self._next = end
            self._piece_size = min(4 * self._piece_size, LARGEST_PIECE)

    def _arrived(self, piece: Future[bytes]) -> bytes:
        while not self._bytes.is_closed:
            try:
                return piece.result(_LOOK_UP_S)
            except FutureTimeoutError:  # noqa: PERF203 -- the waiting takes the time
                if piece.done():
                    raise
        message = f"reading {self.name} was stopped"
        raise UnreadableTraceError(message)


@contextmanager
def native_source(address: Address, *, ahead: bool = True) -> Iterator[Path | RemoteStream]:
    """Yield the `source` argument for the native module: a path, or a stream that is released afterwards."""
    location = located(address)
    if not isinstance(location, RemotePath):
        yield location
        return
    stream = RemoteStream(location, ahead=ahead)
    try:
        yield stream
    finally:
        stream.release()


class _RemoteFile(io.RawIOBase):
    """A seekable file object for code that expects files."""

    def __init__(self, location: RemotePath) -> None:
        self.name = str(location)
        self._bytes = RemoteBytes(location)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._bytes.status.size is not None

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        beginnings = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._bytes.status.size or 0}
        self._at = max(0, beginnings[whence] + offset)
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # what io.BufferedReader gives
        content = self._bytes.fetch(self._at, self._at + len(buffer))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._bytes.release()
        super().close()


def opened_file(location: RemotePath) -> io.BufferedReader:
    """Open a file for reading; see `RemotePath.open`."""
    return io.BufferedReader(_RemoteFile(location), LARGEST_PIECE // 2)


def _source(location: RemotePath, status: Status) -> _Source:
    filesystem, path = location.filesystem
    if location.is_page:
        return _WebPage(filesystem, path, status.size)
    if getattr(filesystem, "async_impl", False) and status.size is not None:
        return _Parts(filesystem, path)
    options = (
        {} if scheme_of(location.url) in HADOOP else {"block_size": FIRST_PIECE}
    )  # otherwise WebHDFS reads 5 MB for a peek
    return _InOrder(lambda: filesystem.open(path, "rb", **options))


def _move(file: IO[bytes], at: int, to: int) -> None:
    """Seek to an offset; if the file cannot seek, read on to it."""
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
