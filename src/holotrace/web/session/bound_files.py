"""The files that a server may read, looked at again each time one is opened.

A path that led to a trace when its run was opened may be a link to any other file when the trace is read or handed out.
So a file is opened from the folder served downwards, following no link, and read through what was opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from holotrace.errors import HolotraceError, NotATraceError, UnreadableTraceError
from holotrace.execution.progress import Progress
from holotrace.ingest.kineto import peek
from holotrace.locations import Location, located
from holotrace.store.cache import Reading
from holotrace.store.trace_file import Reader, TraceFile

T = TypeVar("T")

_OPENED_FILES = Path("/proc/self/fd")
"""Names that lead to what this process has opened, whatever has become of the paths; Linux has them."""

_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe would wait for its other end."""

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
"""O_PATH passes through folders that may be entered and not listed."""

_WALKS = os.open in os.supports_dir_fd and bool(_NO_LINK)
_MET_A_LINK = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.ENOENT)


@dataclass(frozen=True)
class BoundFile:
    """A file where it was when its run was opened.

    path  as given
    real  where it led to, without links
    top   the folder, without links, that holds `real`
    """

    path: str
    real: Path
    top: Path

    @classmethod
    def of(cls, path: str, root: str | None) -> BoundFile | None:
        """Return the file that a path leads to; None where it is outside of the folder `root`."""
        real = Path(path).resolve()
        top = Path(real.anchor) if root is None else Path(root).resolve()
        return cls(path, real, top) if real.is_relative_to(top) else None

    def through(self, work: Callable[[int, Path], T]) -> T:
        """Return what `work` makes of the file, opened without following a link: of its descriptor and a path to it.

        Raises:
            UnreadableTraceError: the path leads elsewhere now, or to no regular file, or cannot be opened.
            HolotraceError: what `work` raises, with the path as given in its message.
        """
        descriptor = self._open()
        name = _OPENED_FILES / str(descriptor)
        try:
            if not self._is(os.fstat(descriptor)):
                raise self._elsewhere()
            return work(descriptor, name if name.exists() else self.real)
        except HolotraceError as error:
            raise type(error)(str(error).replace(str(name), self.path)) from error
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        try:
            return _walked(self.top, self.real) if _WALKS else os.open(self.real, _READ)
        except OSError as error:
            if error.errno in _MET_A_LINK:
                raise self._elsewhere() from error
            message = f"{self.path} cannot be read: {error.strerror}"
            raise UnreadableTraceError(message) from error

    def _is(self, opened: os.stat_result) -> bool:
        """Whether the path still leads to the regular file that was opened."""
        with suppress(OSError):
            is_there = Path(self.path).resolve() == self.real and os.path.samestat(opened, self.real.lstat())
            return is_there and stat.S_ISREG(opened.st_mode)
        return False

    def _elsewhere(self) -> UnreadableTraceError:
        return UnreadableTraceError(f"{self.path} is no longer the file that was opened; reload the page")


@dataclass(frozen=True)
class BoundReader:
    """Reads one file with another reader, through its descriptor."""

    inner: Reader
    file: BoundFile

    def read(self, path: Location, folder: Path | None, progress: Progress) -> Reading:
        """Read the file; see `Reader`."""
        del path
        shown = _Named(progress, self.file.real.name)
        return self.file.through(lambda _, opened: self.inner.read(opened, folder, shown))

    def content_hash(self, path: Location) -> str:
        """Return what identifies the bytes of the file; see `Reader`."""
        del path
        return self.file.through(lambda _, opened: self.inner.content_hash(opened))


@dataclass(frozen=True)
class _Named:
    """Shows progress under the name of the file, which is not that of its descriptor."""

    inner: Progress
    name: str

    def start(self, total_bytes: int, description: str) -> None:
        """Begin a file."""
        del description
        self.inner.start(total_bytes, self.name)

    def advance(self, byte_count: int, /) -> None:
        """Add to what was read."""
        self.inner.advance(byte_count)

    def finish(self) -> None:
        """End the file."""
        self.inner.finish()


def opened_trace(file: TraceFile) -> tuple[BinaryIO, int | None]:
    """Open the trace itself; return it and its size, where that is known.

    Raises:
        UnreadableTraceError: it cannot be opened, or is no longer the file that was read.
        NotATraceError: something else is in its place.
    """
    if not isinstance(file.reader, BoundReader):
        return _opened_url(file.path)
    return file.reader.file.through(_opened_trace)


def _opened_trace(descriptor: int, path: Path) -> tuple[BinaryIO, int]:
    if not peek(str(path)).is_trace:
        message = f"{path} is no longer a trace; reload the page"
        raise NotATraceError(message)
    return os.fdopen(os.dup(descriptor), "rb"), os.fstat(descriptor).st_size


def _opened_url(url: str) -> tuple[BinaryIO, None]:
    try:
        return located(url).open("rb"), None
    except OSError as error:
        message = f"{url} cannot be read: {error.strerror or error}"
        raise UnreadableTraceError(message) from error


def _walked(top: Path, real: Path) -> int:
    """Open a file from a folder downwards, following no link."""
    folder = os.open(top, _FOLDER)
    *between, name = real.relative_to(top).parts
    try:
        for each in between:
            below = os.open(each, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(name, _READ | _NO_LINK | _NO_WAITING, dir_fd=folder)
    finally:
        os.close(folder)
