"""The store of a job: its ranks as Parquet files in one folder, on any file system.

    <store>/
        _holotrace_store.json           says that this is a store, and of which version
        _holotrace_ranks/
            0.json                whether the rank is there or still awaited, and which file it was read from
        _holotrace_left_out/
            <hash>.json           a file that was found and left out, and why
        rank=0/
            _holotrace_rank.json        header and health of the file, rows, bytes and checksum of each table
            events.parquet        one file for each table that has rows, see `holotrace.store.parquet_tables`
            ...

Any number of processes may write into a store at once, because no two of them change the same file, unless they write
the same rank: the first file says the same whoever writes it, and what the store holds is what is found in `_holotrace_ranks`.

Every file is there whole or not at all. On this machine the folder of a rank is made under another name, and renamed when
it is on the disk; of two processes that write the same rank, the last one to finish wins. Object stores cannot rename.
There the first line of a rank says who writes it, its `_holotrace_rank.json` is written last, and checksums tell where files of
two writers met. So a run that was killed leaves no half rank, and the next one goes on where it ended. While ranks are
missing, the store says so and is not opened.
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
from holotrace.store.arrow_tables import ColumnMemo, DamagedTableError, known_columns
from holotrace.store.cache import Stamp
from holotrace.store.header import Header, rank_or_none
from holotrace.store.health import Health
from holotrace.store.parquet_tables import ParquetTables, StoredTable
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
    damage_told,
    names_in,
    rank_folder,
    read_sealed,
)
from holotrace.store.trace import RankTrace, SkippedFile, Trace

T = TypeVar("T")

_TRIES = 4
_PAUSE_S = 0.05


@dataclass(frozen=True)
class StoredRank:
    """A rank of a store.

    source        the file it was read from: an absolute path or a URL
    stamp         what could be told of that file without reading it
    content_hash  identifies its bytes
    byte_count    size of the rank's tables in the store
    event_count   events of every phase in the file
    """

    rank: int
    source: str
    stamp: Stamp
    content_hash: str
    byte_count: int
    event_count: int

    @classmethod
    def from_json(cls, raw: Json) -> StoredRank:
        """Read what `asdict` made of one.

        Raises:
            KeyError, TypeError, ValueError: it is something else, such as a rank that would be a path.
        """
        if rank_or_none(operator.index(raw["rank"])) is None or not isinstance(raw["source"], str):
            message = "no rank"
            raise ValueError(message)
        known = {name: raw[name] for name in cls.__dataclass_fields__}
        return cls(**{**known, "stamp": Stamp(**raw["stamp"])})


@dataclass(frozen=True)
class Contents:
    """What a store holds.

    ranks       those that are there
    unfinished  ranks that were asked for and are not there yet
    skipped     files that were found and left out
    """

    ranks: Mapping[int, StoredRank]
    unfinished: tuple[int, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()


def is_store(location: Location) -> bool:
    """Say whether a job was stored there; not where nothing can be reached, which whoever opens it is told anyway."""
    try:
        return (location / STORE_MANIFEST).is_file()
    except OSError:
        return False


def read_contents(store: Location) -> Contents:
    """Look at what a store holds now.

    Raises:
        NotATraceError: it is not a store, or one of another version of holotrace.
        UnreadableTraceError: it cannot be read, or is damaged.
    """
    read_sealed(store / STORE_MANIFEST, STORE)
    states = _read_states(store)
    ranks = {rank: state for rank, state in sorted(states.items()) if state is not None}
    unfinished = ({*states} | {*rank_folders(store)}) - {*ranks}
    sources = {each.source for each in ranks.values()}
    skipped = tuple(each for each in read_left_out(store) if each.path not in sources)
    return Contents(ranks, tuple(sorted(unfinished)), skipped)


def open_store(store: Location) -> Trace:
    """Open the job in a store; its tables are read when they are first needed.

    Raises:
        NotATraceError: it was written by another version of holotrace.
        UnreadableTraceError: it is damaged, or not all of its ranks are there yet.
    """
    contents = read_contents(store)
    if contents.unfinished:
        missing, found = ", ".join(map(str, contents.unfinished[:20])), len(contents.ranks)
        message = (
            f"{store} is unfinished: {found:,} ranks are there, and missing are: {missing}; run holotrace ingest again"
        )
        raise UnreadableTraceError(message)
    if not contents.ranks:
        message = f"{store} is a store without ranks; run holotrace ingest again"
        raise NotATraceError(message)
    opened = {
        rank: RankTrace(rank, StoredFile(store, rank, each.source, each.content_hash))
        for rank, each in contents.ranks.items()
    }
    return Trace(opened, contents.skipped)


def stored_rank(store: Location, rank: int) -> StoredRank | None:
    """Return what is known of a rank that is there, None for one that is not, or was read by another version."""
    try:
        raw = read_sealed(rank_folder(store, rank) / RANK_MANIFEST, RANK)
        stored = StoredRank.from_json(raw)
    except (NotATraceError, UnreadableTraceError, KeyError, TypeError, ValueError):
        return None
    return stored if (raw["reader_version"], stored.rank) == (READER_VERSION, rank) else None


def is_whole(store: Location, rank: int) -> bool:
    """Read every file of a rank that is there, and say whether all are as they were written."""
    try:
        _, tables = open_rank(store, rank)
        tables.verify()
    except (OSError, HolotraceError):
        return False
    return True


class StoredFile:
    """The file of a rank as a store holds it, with the interface of `TraceFile`; it pickles as its address."""

    def __init__(self, store: Location, rank: int, source: str, content_hash: str) -> None:
        """Name the store, the rank, the file that it was read from, and what identifies the bytes of that."""
        self.path = source
        self._store = store
        self._rank = rank
        self._content_hash = content_hash
        self._lock = threading.RLock()
        self._opened: tuple[Json, ParquetTables] | None = None
        self._columns: dict[str, ColumnMemo] = {}

    def __reduce__(self) -> tuple[type[StoredFile], tuple[Location, int, str, str]]:
        """Pickle the address alone."""
        return StoredFile, (self._store, self._rank, self.path, self._content_hash)

    def __repr__(self) -> str:
        """Show where it is."""
        return f"StoredFile({str(self.folder)!r})"

    @property
    def folder(self) -> Location:
        """Where the tables are."""
        return rank_folder(self._store, self._rank)

    @property
    def table_names(self) -> tuple[str, ...]:
        """The tables that have a file."""
        return tuple(self._open()[1].parts)

    @functools.cached_property
    def header(self) -> Header:
        """What the trace said about itself outside its events."""
        return Header.from_keys(self._open()[0]["header"])

    @functools.cached_property
    def health(self) -> Health:
        """What the reader repaired, dropped or noticed when the trace was read."""
        with damage_told(self.folder / RANK_MANIFEST):
            return Health.from_json(json.dumps(self._open()[0]["health"]))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return columns of a table; those read before are not read again.

        Raises:
            InvalidOptionError: the schema has no such table or column.
            UnreadableTraceError: the store is damaged.
        """
        wanted = known_columns(name, columns)
        with self._lock:
            memo = self._columns.setdefault(name, ColumnMemo(functools.partial(self._read, name)))
            return memo.get(wanted)

    def events_of(self, kinds: Sequence[int], columns: Sequence[str]) -> pl.DataFrame:
        """Return columns of the events of these kinds, in file order; they are not remembered."""
        wanted = known_columns("events", columns)
        return self._checked(lambda tables: tables.read_events(wanted, kinds))

    def put_table(self, name: str, target: Path) -> None:
        """Link the file of a table to `target`, a path of this machine, or copy it there.

        Raises:
            UnreadableTraceError: the store is damaged.
        """
        self._checked(lambda tables: tables.put(name, target))

    def expect_unchanged(self) -> None:
        """See that the rank is still the one that was opened.

        Raises:
            UnreadableTraceError: it was written again.
        """
        self.forget()
        self._open()

    def forget(self) -> None:
        """Free the memory of what was read."""
        with self._lock:
            self._columns.clear()
            self._opened = None

    def _read(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        return self._checked(lambda tables: tables.read(name, columns))

    def _checked(self, read: Callable[[ParquetTables], T]) -> T:
        """Read from the tables; again where somebody just puts the same rank in their place."""
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
    """Read what is known to be there; again where somebody just puts something in its place."""
    for _ in range(_TRIES - 1):
        with suppress(UnreadableTraceError):
            return read()
        time.sleep(_PAUSE_S)
    return read()


def open_rank(store: Location, rank: int) -> tuple[Json, ParquetTables]:
    """Return the manifest of a rank, and its tables.

    Raises:
        NotATraceError, UnreadableTraceError: it is not there, damaged, or of another version of holotrace.
    """
    folder = rank_folder(store, rank)
    manifest = read_sealed(folder / RANK_MANIFEST, RANK)
    with damage_told(folder / RANK_MANIFEST):
        parts = {str(name): StoredTable.from_json(table) for name, table in manifest["tables"].items()}
        manifest["content_hash"], manifest["header"], manifest["health"]
    return manifest, ParquetTables(folder, parts)


def _read_states(store: Location) -> dict[int, StoredRank | None]:
    """Return what is said of each rank: None of those that are awaited."""
    folder = store / RANKS_FOLDER
    names = [name for name in names_in(folder) if name.endswith(".json") and _is_number(name.removesuffix(".json"))]
    states = side_by_side(
        lambda address: _tried(lambda: read_state(located(address))), [str(folder / name) for name in names]
    )
    return {int(name.removesuffix(".json")): state for name, state in zip(names, states, strict=True)}


def read_state(path: Location) -> StoredRank | None:
    """Return what is said of a rank; None where it is awaited.

    Raises:
        NotATraceError, UnreadableTraceError: it is missing, damaged, or of another version of holotrace.
    """
    raw = read_sealed(path, STATE)
    with damage_told(path):
        if raw["rank"] != int(path.stem):
            message = "of another rank"
            raise ValueError(message)
        return StoredRank.from_json(raw) if raw["is_there"] else None


def read_left_out(store: Location) -> list[SkippedFile]:
    """Return the files that were left out, sorted by their paths.

    Raises:
        NotATraceError, UnreadableTraceError: one of them is damaged, or of another version of holotrace.
    """
    folder = store / LEFT_OUT_FOLDER
    names = sorted(name for name in names_in(folder) if name.endswith(".json"))
    found = side_by_side(lambda address: _read_skipped(located(address)), [str(folder / name) for name in names])
    return sorted(found, key=lambda each: each.path)


def _read_skipped(path: Location) -> SkippedFile:
    raw = read_sealed(path, LEFT_OUT)
    with damage_told(path):
        rank = raw.get("rank")
        return SkippedFile(
            str(raw["path"]), str(raw["reason"]), raw.get("is_unreadable") is True, None if rank is None else int(rank)
        )


def rank_folders(store: Location) -> list[int]:
    """Return the ranks that have a folder, whatever is in it."""
    numbers = (name.removeprefix(RANK_FOLDER) for name in names_in(store) if name.startswith(RANK_FOLDER))
    return sorted(int(number) for number in numbers if _is_number(number))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(1 << 31)) and text == str(int(text))
