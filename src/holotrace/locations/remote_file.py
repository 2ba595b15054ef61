"""A file at a URL as a seekable file object, for code that expects files."""

from __future__ import annotations

import io

from holotrace.locations.remote_bytes import LARGEST_PIECE, RemoteBytes, RemoteFile


class _OpenedFile(io.RawIOBase):
    def __init__(self, name: str, content: RemoteBytes) -> None:
        self.name = name
        self._bytes = content
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

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the types that io.BufferedReader passes
        content = self._bytes.fetch(self._at, self._at + len(buffer))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._bytes.release()
        super().close()


def opened_file(location: RemoteFile) -> io.BufferedReader:
    """Open a file for reading; the implementation of `RemotePath.open`."""
    return io.BufferedReader(_OpenedFile(location.url, RemoteBytes(location)), LARGEST_PIECE // 2)
