"""One trace file, which is read when it is first needed."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import polars as pl

from holotrace.errors import UnreadableTraceError
from holotrace.execution.progress import SILENT, Progress
from holotrace.locations import Location, RemotePath, is_url, located, scratch_folder
from holotrace.store.cache import Cache, CacheOption, CacheWriteError, Entry, Reading, Stamp
from holotrace.store.header import Header
from holotrace.store.health import Health
from holotrace.store.tables.arrow_tables import (
    ColumnMemo,
    DamagedTableError,
    FolderTables,
    MemoryTables,
    Tables,
    empty_table,
    is_of_kinds,
    known_columns,
    of_kinds,
)

logger = logging.getLogger("holotrace")

_FEW_EVENTS = 100_000
"""Tables of files with at most this many events are read completely, which is faster than reading single columns."""

_MOST_KEPT_EVENTS = 5_000_000
"""If a file has more events than this, its events are not kept in memory but are read again for each question; an event
takes about 50 bytes."""


class Reader(Protocol):
    """Reads one trace format; readers can be pickled, so they can be sent to workers."""

    def read(self, path: Location, folder: Path | None, progress: Progress) -> Reading:
        """Read `path` and write the tables into the empty `folder`, or keep them in memory if `folder` is None.

        Raises:
            CacheWriteError: `folder` cannot be written.
            NotATraceError: the file is not a trace.
            UnreadableTraceError: the file cannot be read.
        """

    def content_hash(self, path: Location) -> str:
        """Return the hash of the bytes of `path`, computed like `content_hash` in the health record."""


class TraceFile:
    """One trace file: its address, and the tables read so far.

    Only the address is pickled, so workers read the file again; with the cache, this takes milliseconds.
    """

    def __init__(
        self,
        path: str | RemotePath,
        reader: Reader,
        *,
        cache: CacheOption = True,
        progress: Progress = SILENT,
        base: str = "",
    ) -> None:
        """Remember the address of a file; a relative `path` is relative to `base`, by default the current folder."""
        self.path = str(path)
        self._base = base or str(Path.cwd())
        self._reader = reader
        self._cache = cache
        self._progress = progress
        self._lock = threading.RLock()
        self._entry: Entry | None = None
        self._content_hash: str | None = None
        self._tables: dict[str, ColumnMemo] = {}
        self._events_of_kinds: dict[tuple[int, ...], pl.DataFrame] = {}

    def __reduce__(self) -> tuple[Callable[..., TraceFile], tuple[str | RemotePath]]:
        """Pickle only the address of the file."""
        rebuild = functools.partial(TraceFile, reader=self._reader, cache=self._cache, base=self._base)
        return rebuild, (self._location if isinstance(self._location, RemotePath) else self.path,)

    def __repr__(self) -> str:
        """Show the path."""
        return f"TraceFile({self.path!r})"

    @functools.cached_property
    def header(self) -> Header:
        """The header of the file: everything outside its events."""
        return Header.from_json(self._opened().header)

    @functools.cached_property
    def health(self) -> Health:
        """The health record: data that the reader repaired or dropped, and other remarks."""
        return Health.from_json(self._opened().health)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return columns of a table; each column is read only once.

        Raises:
            InvalidOptionError: the schema has no such table or column.
        """
        wanted = known_columns(name, columns)
        with self._lock:
            memo = self._tables.setdefault(name, ColumnMemo(functools.partial(self._read, name)))
            return memo.get(wanted)

    def events_of(self, kinds: Sequence[int], columns: Sequence[str], names: pl.Series | None = None) -> pl.DataFrame:
        """Return columns of the events of these kinds and names, in file order.

        The events of large files are not kept in memory.
        """
        wanted = known_columns("events", columns)
        if self._is_small:
            events = self._kept_events(tuple(kinds))
            return (events if names is None else of_kinds(events, kinds, names))[wanted]
        known = self.table("events", ["kind"] if names is None else ["kind", "name"])
        is_wanted = known.select(is_of_kinds(kinds, names)).to_series()
        if not is_wanted.any():
            return empty_table("events").select(wanted)
        if self.health.event_count <= _MOST_KEPT_EVENTS:
            return self.table("events", wanted).filter(is_wanted)
        return self._rebuilding(lambda tables: tables.read_events(wanted, kinds, names))

    def _kept_events(self, kinds: tuple[int, ...]) -> pl.DataFrame:
        """Return all columns of the events of these kinds; keep them in memory, because dozens of tables need them."""
        with self._lock:
            if kinds not in self._events_of_kinds:
                self._events_of_kinds[kinds] = of_kinds(self.table("events"), kinds)
            return self._events_of_kinds[kinds]

    def forget(self) -> None:
        """Free the tables kept in memory; the next use opens the file again."""
        with self._lock:
            self._tables.clear()
            self._events_of_kinds.clear()
            self._entry = None

    @property
    def address(self) -> str:
        """The absolute path of the file, or its URL."""
        return str(self._location.absolute() if isinstance(self._location, Path) else self._location)

    @property
    def reader(self) -> Reader:
        """The reader of the file's format."""
        return self._reader

    def read_by(self, reader: Reader) -> TraceFile:
        """Return the same file with another reader."""
        return TraceFile(self.path, reader, cache=self._cache, progress=self._progress, base=self._base)

    @contextmanager
    def borrowed(self) -> Iterator[Entry]:
        """Yield the current content, without adding it to the cache.

        This is meant for callers that need the complete content, but only once. Files that are not in the cache are read into a temporary folder, which is removed afterwards.

        Raises:
            NotATraceError, UnreadableTraceError: the file is not a trace or cannot be read, or the temporary folder is
            full.
        """
        cache = Cache.from_option(self._cache, self._location)
        kept = cache and cache.find(self._location, self._reader.content_hash)
        if kept:
            yield kept
            return
        stamp = Stamp.of(self._location)
        with scratch_folder() as folder:
            try:
                reading = self._reader.read(self._location, folder, self._progress)
            except CacheWriteError as error:
                message = f"{self.path} could not be read into {folder}: {error}; set TMPDIR to use another folder"
                raise UnreadableTraceError(message) from error
            tables = FolderTables(folder)
            yield Entry(reading.header, reading.health, reading.content_hash, tables, stamp=stamp)

    def is_still(self, stamp: Stamp, content_hash: str) -> bool:
        """Return whether the file is unchanged since `stamp` was taken.

        When `stamp` was taken, the bytes of the file had the hash `content_hash`.

        Raises:
            UnreadableTraceError: the file cannot be read.
        """
        known = Entry("", "", content_hash, MemoryTables({}), stamp=stamp)
        return known.is_of(self._location, self._reader.content_hash)

    @property
    def _is_small(self) -> bool:
        return self.health.event_count <= _FEW_EVENTS

    def _read(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        wanted = known_columns(name, None) if self._is_small else columns
        return self._rebuilding(lambda tables: tables.read(name, wanted))

    def _rebuilding(self, read: Callable[[Tables], pl.DataFrame]) -> pl.DataFrame:
        """Call `read` with the tables; if the cache entry is damaged or was removed, first read the trace again."""
        try:
            return read(self._opened().tables)
        except DamagedTableError as error:
            logger.warning("rebuilding a cache entry from %s: %s", self.path, error)
            self._opened().remove()
            self._entry = None
            return read(self._opened().tables)

    def _opened(self) -> Entry:
        with self._lock:
            if self._entry is None:
                self._entry = self._open()
                self._expect_same_content(self._entry)
            return self._entry

    def _open(self) -> Entry:
        try:
            cache = Cache.from_option(self._cache, self._location)
            if cache is not None:
                return cache.find(self._location, self._reader.content_hash) or self._add(cache)
        except CacheWriteError as error:
            _warn_once(f"{error}: reading traces into memory instead; the next run will read them again")
        return Entry.in_memory(self._reader.read(self._location, None, self._progress))

    def _add(self, cache: Cache) -> Entry:
        location = self._location
        return cache.add(location, lambda folder: self._reader.read(location, folder, self._progress))

    def _expect_same_content(self, entry: Entry) -> None:
        """Raise an error if the file has changed, to avoid mixing columns of two versions."""
        if self._content_hash not in (None, entry.content_hash):
            message = f"{self.path} was changed while it was in use; open it again with holotrace.open_trace"
            raise UnreadableTraceError(message)
        self._content_hash = entry.content_hash

    @property
    def _location(self) -> Location:
        return located(self.path) if is_url(self.path) else Path(self._base, self.path)


@functools.cache
def _warn_once(message: str) -> None:
    """Log a message only once, not for every rank."""
    logger.warning("%s", message)
