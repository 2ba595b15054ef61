"""Bytes at a URL for the native reader, fetched while the reader parses earlier pieces.

If the server supports ranges, several pieces are fetched at once. Otherwise, one connection reads the file in order,
ahead of the native reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from pathlib import Path

from holotrace.errors import UnreadableTraceError
from holotrace.locations.location import Address, located
from holotrace.locations.remote_bytes import FIRST_PIECE, LARGEST_PIECE, RemoteBytes
from holotrace.locations.remote_path import RemotePath

_LOOK_UP_S = 0.2


class RemoteStream:
    """A file as a sequence of pieces, which are fetched before the native reader needs them.

    name        name of the file in messages
    byte_count  size of the file, 0 if unknown
    """

    def __init__(self, location: RemotePath, *, ahead: bool = True) -> None:
        """Open the file; without `ahead`, fetch a piece only when it is read.

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
        """Return the next bytes of the file; empty at the end of the file.

        Raises:
            UnreadableTraceError: the bytes did not arrive, or the file was changed.
        """
        self._ask(1 + self._ahead)
        piece = self._arrived(self._coming.popleft()) if self._coming else b""
        if not piece and self._next:
            self._bytes.expect_unchanged()
        return piece

    def close(self) -> None:
        """Stop waiting for bytes; any thread may call this."""
        self._bytes.close()

    def release(self) -> None:
        """Cancel pending requests and close the file, without waiting for running requests."""
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
            except FutureTimeoutError:  # noqa: PERF203 -- waiting takes most of the time
                if piece.done():
                    raise
        message = f"reading {self.name} was stopped"
        raise UnreadableTraceError(message)


@contextmanager
def native_source(address: Address, *, ahead: bool = True) -> Iterator[Path | RemoteStream]:
    """Yield a file in a form that the native module accepts: a path, or a stream that is released at the end."""
    location = located(address)
    if not isinstance(location, RemotePath):
        yield location
        return
    stream = RemoteStream(location, ahead=ahead)
    try:
        yield stream
    finally:
        stream.release()
