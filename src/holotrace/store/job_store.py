"""The store of a job: its ranks as Parquet files in one folder, on any file system.

    <store>/
        _holotrace_store.json     marks the folder as a store, and contains the store's version
        _holotrace_ranks/
            0.json                whether the rank is complete or only announced, and the file from which it was read
        _holotrace_left_out/
            <hash>.json           a skipped file and the reason
        rank=0/
            _holotrace_rank.json  header and health of the file; rows, bytes and checksum of each table
            events.parquet        one file for each table with rows, see `holotrace.store.tables.parquet_tables`
            ...

Any number of processes may write into a store at once, because different ranks have different files. All processes
write the same `_holotrace_store.json`. Only `_holotrace_ranks` defines which ranks are in the store.

Files are always complete. On a local disk, the folder of a rank is created under a temporary name, synced and renamed;
if two processes write the same rank, the last one to finish wins. Object stores cannot rename files, so three other
rules apply there: the state file of a rank names the run that writes the rank, `_holotrace_rank.json` is written last,
and its checksums show whether all files are from this run. A killed run therefore leaves no partial rank, and the next
run continues where the killed run stopped. A store with missing ranks cannot be opened; the error lists them.
"""

from __future__ import annotations

import functools
import json
import operator
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import polars as pl

from holotrace.errors import HolotraceError, NotATraceError, UnreadableTraceError
from holotrace.locations import Location, located, side_by_side
from holotrace.schema import READER_VERSION
from holotrace.store.cache import Stamp
from holotrace.store.header import Header, rank_or_none
from holotrace.store.health import Health
from holotrace.store.store_files import (
    LEFT_OUT,
    LEFT_OUT_FOLDER,
    RANK,
    RANK_FOLDER,
    RANK_MANIFEST,
    RANKS_FOLDER,
    STATE,
    STORE,
    STORE_MANIFEST,
    Json,
    damage_reported,
    names_in,
    rank_folder,
    read_sealed,
)
from holotrace.store.tables.arrow_tables import ColumnMemo, DamagedTableError, known_columns
from holotrace.store.tables.parquet_tables import ParquetTables, StoredTable
from holotrace.store.trace import RankTrace, SkippedFile, Trace
from holotrace.units import counted

T = TypeVar("T")

_TRIES = 4
_PAUSE_S = 0.05


@dataclass(frozen=True)
class StoredRank:
    """A rank of a store.

    source        the trace file: an absolute path or a URL
    stamp         size, times and version of the trace file
    content_hash  hash of the bytes of the trace file
    byte_count    size of the rank's tables in the store
    event_count   number of events of every phase in the file
    """

    rank: int
    source: str
    stamp: Stamp
    content_hash: str
    byte_count: int
    event_count: int

    @classmethod
    def from_json(cls, raw: Json) -> StoredRank:
        """Restore a StoredRank from the dict that `asdict` returned.

        Raises:
            KeyError, TypeError, ValueError: `raw` does not describe a stored rank, for example because its `rank` is a string.
        """
        if rank_or_none(operator.index(raw["rank"])) is None or not isinstance(raw["source"], str):
            message = "not a rank"
            raise ValueError(message)
        known = {name: raw[name] for name in cls.__dataclass_fields__}
        return cls(**{**known, "stamp": Stamp(**raw["stamp"])})


@dataclass(frozen=True)
class Contents:
    """The contents of a store.

    ranks       complete ranks
    unfinished  ranks that a run has announced, but not finished
    skipped     files that were skipped
    """

    ranks: Mapping[int, StoredRank]
    unfinished: tuple[int, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()


def is_store(location: Location) -> bool:
    """Return whether a location is a store.

    Also return False if the location is unreachable; the caller's attempt to open it as a trace then raises the error.
    """
    try:
        return (location / STORE_MANIFEST).is_file()
    except OSError:
        return False


def read_contents(store: Location) -> Contents:
    """Return the current contents of a store.

    Raises:
        NotATraceError: the folder is not a store, or was written by another version of holotrace.
        UnreadableTraceError: the store cannot be read, or is damaged.
    """
    read_sealed(store / STORE_MANIFEST, STORE)
    states = _read_states(store)
    ranks = {rank: state for rank, state in sorted(states.items()) if state is not None}
    unfinished = ({*states} | {*rank_folders(store)}) - {*ranks}
    sources = {stored.source for stored in ranks.values()}
    skipped = tuple(file for file in read_left_out(store) if file.path not in sources)
    return Contents(ranks, tuple(sorted(unfinished)), skipped)


def open_store(store: Location) -> Trace:
    """Open the job in a store; tables are read when they are first needed.

    Raises:
        NotATraceError: the store was written by another version of holotrace.
        UnreadableTraceError: the store is damaged, or some of its ranks are missing.
    """
    contents = read_contents(store)
    if contents.unfinished:
        missing = ", ".join(map(str, contents.unfinished[:20]))
        complete = counted(len(contents.ranks), "rank is", "ranks are")
        message = (
            f"{store} is unfinished: {complete} complete, but these ranks are missing: {missing}; "
            "run holotrace ingest again"
        )
        raise UnreadableTraceError(message)
    if not contents.ranks:
        message = f"{store} is a store without ranks; run holotrace ingest again"
        raise NotATraceError(message)
    rank_traces = {
        rank: RankTrace(rank, StoredFile(store, rank, stored.source, stored.content_hash))
        for rank, stored in contents.ranks.items()
    }
    return Trace(rank_traces, contents.skipped)


def stored_rank(store: Location, rank: int) -> StoredRank | None:
    """Return the record of a stored rank; None if it is missing, damaged or written by another reader version."""
    try:
        raw = read_sealed(rank_folder(store, rank) / RANK_MANIFEST, RANK)
        stored = StoredRank.from_json(raw)
    except (NotATraceError, UnreadableTraceError, KeyError, TypeError, ValueError):
        return None
    return stored if (raw["reader_version"], stored.rank) == (READER_VERSION, rank) else None


def is_whole(store: Location, rank: int) -> bool:
    """Read every file of a stored rank, and return whether all match their checksums."""
    try:
        _, tables = open_rank(store, rank)
        tables.verify()
    except (OSError, HolotraceError):
        return False
    return True


class StoredFile:
    """A rank of a store, with the interface of `TraceFile`; pickling omits the tables in memory."""

    def __init__(self, store: Location, rank: int, source: str, content_hash: str) -> None:
        """Refer to a rank in a store.

        source        the trace file from which the rank was read
        content_hash  hash of the bytes of the trace file at that time
        """
        self.path = source
        self._store = store
        self._rank = rank
        self._content_hash = content_hash
        self._lock = threading.RLock()
        self._opened: tuple[Json, ParquetTables] | None = None
        self._columns: dict[str, ColumnMemo] = {}

    def __reduce__(self) -> tuple[type[StoredFile], tuple[Location, int, str, str]]:
        """Pickle the path of the trace file and what identifies the rank in the store, but not the tables in memory."""
        return StoredFile, (self._store, self._rank, self.path, self._content_hash)

    def __repr__(self) -> str:
        """Show the folder of the tables."""
        return f"StoredFile({str(self.folder)!r})"

    @property
    def folder(self) -> Location:
        """The folder of the tables."""
        return rank_folder(self._store, self._rank)

    @property
    def table_names(self) -> tuple[str, ...]:
        """Names of the tables that have a file."""
        return tuple(self._open()[1].parts)

    @functools.cached_property
    def header(self) -> Header:
        """The header of the trace: everything outside its events."""
        return Header.from_keys(self._open()[0]["header"])

    @functools.cached_property
    def health(self) -> Health:
        """The health record written when the trace was read."""
        with damage_reported(self.folder / RANK_MANIFEST):
            return Health.from_json(json.dumps(self._open()[0]["health"]))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return columns of a table; each column is read only once.

        Raises:
            InvalidOptionError: the schema has no such table or column.
            UnreadableTraceError: the store is damaged.
        """
        wanted = known_columns(name, columns)
        with self._lock:
            memo = self._columns.setdefault(name, ColumnMemo(functools.partial(self._read, name)))
            return memo.get(wanted)

    def events_of(self, kinds: Sequence[int], columns: Sequence[str], names: pl.Series | None = None) -> pl.DataFrame:
        """Return columns of the events of these kinds and names, in file order, without caching them."""
        wanted = known_columns("events", columns)
        return self._checked(lambda tables: tables.read_events(wanted, kinds, names))

    def put_table(self, name: str, target: Path) -> None:
        """Create a link to the file of a table at the local path `target`, or copy the file there.

        Raises:
            UnreadableTraceError: the store is damaged.
        """
        self._checked(lambda tables: tables.put(name, target))

    def expect_unchanged(self) -> None:
        """Check that the rank was not written again after it was opened.

        Raises:
            UnreadableTraceError: the rank was written to the store again.
        """
        self.forget()
        self._open()

    def forget(self) -> None:
        """Free the tables kept in memory; the next use opens the rank again."""
        with self._lock:
            self._columns.clear()
            self._opened = None

    def _read(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        return self._checked(lambda tables: tables.read(name, columns))

    def _checked(self, read: Callable[[ParquetTables], T]) -> T:
        """Read from the tables; if they seem damaged, retry, because another process may be replacing the rank."""
        for _ in range(_TRIES - 1):
            with suppress(DamagedTableError):
                return read(self._open()[1])
            time.sleep(_PAUSE_S)
            self._opened = None
        try:
            return read(self._open()[1])
        except DamagedTableError as error:
            message = f"{error}; the store is damaged, so run holotrace ingest again"
            raise UnreadableTraceError(message) from error

    def _open(self) -> tuple[Json, ParquetTables]:
        with self._lock:
            if self._opened is None:
                self._opened = _tried(lambda: open_rank(self._store, self._rank))
                if self._opened[0]["content_hash"] != self._content_hash:
                    message = (
                        f"rank {self._rank} of {self._store} was written again while it was in use; open it again, or run "
                        "holotrace ingest again"
                    )
                    raise UnreadableTraceError(message)
            return self._opened


def _tried(read: Callable[[], T]) -> T:
    """Read a file that is known to exist; retry after an error, because another process may be replacing the file."""
    for _ in range(_TRIES - 1):
        with suppress(UnreadableTraceError):
            return read()
        time.sleep(_PAUSE_S)
    return read()


def open_rank(store: Location, rank: int) -> tuple[Json, ParquetTables]:
    """Return the manifest of a rank, and its tables.

    Raises:
        NotATraceError, UnreadableTraceError: the rank is missing or damaged, or was written by another version of
            holotrace.
    """
    folder = rank_folder(store, rank)
    manifest = read_sealed(folder / RANK_MANIFEST, RANK)
    with damage_reported(folder / RANK_MANIFEST):
        parts = {str(name): StoredTable.from_json(table) for name, table in manifest["tables"].items()}
        manifest["content_hash"], manifest["header"], manifest["health"]
    return manifest, ParquetTables(folder, parts)


def _read_states(store: Location) -> dict[int, StoredRank | None]:
    """Return the record of each rank; None if the rank is not complete yet."""
    folder = store / RANKS_FOLDER
    names = [name for name in names_in(folder) if name.endswith(".json") and _is_number(name.removesuffix(".json"))]
    states = side_by_side(
        lambda address: _tried(lambda: read_state(located(address))), [str(folder / name) for name in names]
    )
    return {int(name.removesuffix(".json")): state for name, state in zip(names, states, strict=True)}


def read_state(path: Location) -> StoredRank | None:
    """Return the record of a rank from its state file; None if the rank is not complete yet.

    Raises:
        NotATraceError, UnreadableTraceError: the file is missing or damaged, or was written by another version of
            holotrace.
    """
    raw = read_sealed(path, STATE)
    with damage_reported(path):
        if raw["rank"] != int(path.stem):
            message = "of another rank"
            raise ValueError(message)
        return StoredRank.from_json(raw) if raw["is_there"] else None


def read_left_out(store: Location) -> list[SkippedFile]:
    """Return the skipped files, sorted by path.

    Raises:
        NotATraceError, UnreadableTraceError: a record is damaged, or was written by another version of holotrace.
    """
    folder = store / LEFT_OUT_FOLDER
    names = sorted(name for name in names_in(folder) if name.endswith(".json"))
    skipped = side_by_side(lambda address: _read_skipped(located(address)), [str(folder / name) for name in names])
    return sorted(skipped, key=lambda file: file.path)


def _read_skipped(path: Location) -> SkippedFile:
    raw = read_sealed(path, LEFT_OUT)
    with damage_reported(path):
        rank = raw.get("rank")
        return SkippedFile(
            str(raw["path"]), str(raw["reason"]), raw.get("is_unreadable") is True, None if rank is None else int(rank)
        )


def rank_folders(store: Location) -> list[int]:
    """Return the ranks that have a folder, complete or not."""
    numbers = (name.removeprefix(RANK_FOLDER) for name in names_in(store) if name.startswith(RANK_FOLDER))
    return sorted(int(number) for number in numbers if _is_number(number))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(1 << 31)) and text == str(int(text))
