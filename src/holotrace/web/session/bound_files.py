"""The files that a server may read; the path of a file is checked again whenever the file is opened.

After a run is opened, a trace may be replaced by a link to another file. Therefore, all
folders on its path are opened one after the other, starting at the served folder and without following links, and the
file is read through its descriptor.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from holotrace.errors import HolotraceError, NotATraceError, UnreadableTraceError
from holotrace.execution.progress import Progress
from holotrace.ingest.kineto import peek
from holotrace.locations import Location, RemoteStream, located, native_source
from holotrace.store.cache import Reading
from holotrace.store.trace_file import Reader, TraceFile

T = TypeVar("T")

_OPENED_FILES = Path("/proc/self/fd")
"""The folder in which Linux provides a path for each open file of this process. The path works even if the file is
moved."""

_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)
"""Flag for opening a file; without it, opening a pipe would block until another process opens the other end."""

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
"""Flags for opening a folder; with O_PATH, this also works for folders that may be entered but not listed."""

_WALKS = os.open in os.supports_dir_fd and bool(_NO_LINK)
_MET_A_LINK = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.ENOENT)


@dataclass(frozen=True)
class BoundFile:
    """A file that the server may read for a run.

    path  the given path
    real  where `path` pointed when the run was opened, with all links resolved
    top   the resolved folder that contains `real`
    """

    path: str
    real: Path
    top: Path

    @classmethod
    def of(cls, path: str, root: str | None) -> BoundFile | None:
        """Return the file to which a path points; None if the file is outside the folder `root`."""
        real = Path(path).resolve()
        top = Path(real.anchor) if root is None else Path(root).resolve()
        return cls(path, real, top) if real.is_relative_to(top) else None

    def through(self, work: Callable[[int, Path], T]) -> T:
        """Open the file without following links, and return `work(descriptor, path)`.

        Raises:
            UnreadableTraceError: the path now points to another file, is not a regular file, or cannot be opened.
            HolotraceError: an error from `work`; its message contains the given path instead of the descriptor's path.
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
        """Return whether the opened file is a regular file and the path still points to it."""
        with suppress(OSError):
            is_there = Path(self.path).resolve() == self.real and os.path.samestat(opened, self.real.lstat())
            return is_there and stat.S_ISREG(opened.st_mode)
        return False

    def _elsewhere(self) -> UnreadableTraceError:
        return UnreadableTraceError(f"{self.path} has been replaced since it was opened; reload the page")


@dataclass(frozen=True)
class BoundReader:
    """Reads one file with the reader `inner`, through the file's descriptor."""

    inner: Reader
    file: BoundFile

    def read(self, path: Location, folder: Path | None, progress: Progress) -> Reading:
        """Read the file; see `Reader.read`."""
        del path
        shown = _Named(progress, self.file.real.name)
        return self.file.through(lambda _, opened: self.inner.read(opened, folder, shown))

    def content_hash(self, path: Location) -> str:
        """Return the hash of the file's bytes; see `Reader.content_hash`."""
        del path
        return self.file.through(lambda _, opened: self.inner.content_hash(opened))


@dataclass(frozen=True)
class _Named:
    """Labels the progress of reading a file with the file's name instead of the descriptor's number."""

    inner: Progress
    name: str

    def start(self, total_bytes: int, description: str) -> None:
        """Begin to show the progress of reading the file."""
        del description
        self.inner.start(total_bytes, self.name)

    def advance(self, byte_count: int, /) -> None:
        """Count bytes that were read."""
        self.inner.advance(byte_count)

    def finish(self) -> None:
        """Stop showing the progress of reading the file."""
        self.inner.finish()


def opened_trace(file: TraceFile) -> tuple[BinaryIO, int | None]:
    """Open the trace file; return the open file and its size (None if unknown).

    Raises:
        UnreadableTraceError: the file cannot be opened, or its path now points to another file.
        NotATraceError: the file no longer contains a trace.
    """
    if not isinstance(file.reader, BoundReader):
        return _opened_url(file.path)
    return file.reader.file.through(_opened_trace)


@contextmanager
def native_trace(file: TraceFile) -> Iterator[Path | RemoteStream]:
    """Open the trace file for the native module.

    Raises:
        UnreadableTraceError, NotATraceError: see `opened_trace`.
    """
    if not isinstance(file.reader, BoundReader):
        with native_source(file.path) as source:
            yield source
        return
    content, _ = opened_trace(file)
    with content:
        name = _OPENED_FILES / str(content.fileno())
        yield name if name.exists() else file.reader.file.real


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
    """Open a file by opening each folder on its path from `top` downwards, without following links."""
    folder = os.open(top, _FOLDER)
    *between, name = real.relative_to(top).parts
    try:
        for part in between:
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(name, _READ | _NO_LINK | _NO_WAITING, dir_fd=folder)
    finally:
        os.close(folder)
