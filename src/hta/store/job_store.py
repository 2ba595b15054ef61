"""The store of a job: its ranks as Parquet files in one folder, on any file system.

    <store>/
        _hta_store.json           which ranks there are, of which files they were read, and what was left out
        rank=0/
            _hta_rank.json        header and health of the file, rows and bytes of each table; written last
            events.parquet        one file for each table that has rows, see `hta.store.parquet_tables`
            ...

Every file is there whole or not at all, and a rank counts from when its `_hta_rank.json` is there. So a run that was
killed leaves no half rank, and the next one goes on where it ended. While ranks are missing, the store says so and is
not opened.
"""

from __future__ import annotations

import functools
import json
import operator
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import polars as pl

from hta.errors import HtaError, NotATraceError, UnreadableTraceError
from hta.locations import Location, drafted, remove_tree, status_of
from hta.schema import READER_VERSION, TABLES
from hta.store.arrow_tables import ColumnMemo, DamagedTableError, Tables, known_columns, schema_fingerprint
from hta.store.cache import Entry, Stamp
from hta.store.header import Header, rank_or_none
from hta.store.health import Health
from hta.store.parquet_tables import ALWAYS_WRITTEN, ParquetTables, write_parquet
from hta.store.trace import RankTrace, SkippedFile, Trace

VERSION = 1
"""Raised whenever the layout changes."""

STORE_MANIFEST = "_hta_store.json"
"""The file that makes a folder a store."""

_RANK_MANIFEST = "_hta_rank.json"
_FORMATS = {STORE_MANIFEST: "hta store", _RANK_MANIFEST: "rank of an hta store"}

_Json: TypeAlias = dict[str, Any]
T = TypeVar("T")


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
    def from_json(cls, raw: _Json) -> StoredRank:
        """Read what `asdict` made of one.

        Raises:
            KeyError, TypeError, ValueError: it is something else, such as a rank that would be a path.
        """
        if rank_or_none(operator.index(raw["rank"])) is None or not isinstance(raw["source"], str):
            message = "no rank"
            raise ValueError(message)
        return cls(**{**raw, "stamp": Stamp(**raw["stamp"])})


@dataclass(frozen=True)
class Contents:
    """What the manifest of a store says.

    ranks       those that are there
    unfinished  ranks that were asked for and are not there yet
    skipped     files that were found and left out
    """

    ranks: Mapping[int, StoredRank]
    unfinished: tuple[int, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()

    def begun(self, ranks: Iterable[int]) -> Contents:
        """Return what there is while these ranks are written."""
        awaited = {*ranks}
        kept = {rank: each for rank, each in self.ranks.items() if rank not in awaited}
        return replace(self, ranks=kept, unfinished=tuple(sorted(awaited | {*self.unfinished})))

    def finished(
        self, written: Iterable[StoredRank], left_out: Collection[int] = (), skipped: Iterable[SkippedFile] = ()
    ) -> Contents:
        """Return what there is when these ranks have been written, and these could not be."""
        there = {**self.ranks, **{each.rank: each for each in written}}
        ranks = {rank: there[rank] for rank in sorted(there) if rank not in left_out}
        unfinished = {*self.unfinished} - {*ranks, *left_out}
        reasons = {each.path: each for each in (*self.skipped, *skipped)}
        for each in ranks.values():
            reasons.pop(each.source, None)
        return Contents(ranks, tuple(sorted(unfinished)), tuple(reasons.values()))


def is_store(location: Location) -> bool:
    """Say whether a job was stored there; not where nothing can be reached, which whoever opens it is told anyway."""
    try:
        return (location / STORE_MANIFEST).is_file()
    except OSError:
        return False


def read_contents(store: Location) -> Contents:
    """Read the manifest of a store.

    Raises:
        NotATraceError: it is none, or of another version of hta.
        UnreadableTraceError: it cannot be read, or is damaged.
    """
    raw = _read_manifest(store, STORE_MANIFEST)
    with _damage_told(store / STORE_MANIFEST):
        ranks = map(StoredRank.from_json, raw["ranks"])
        skipped = (SkippedFile(each["path"], each["reason"]) for each in raw["skipped"])
        return Contents({each.rank: each for each in ranks}, tuple(map(int, raw["unfinished"])), tuple(skipped))


def write_contents(store: Location, contents: Contents) -> None:
    """Write the manifest of a store, whole or not at all; its folder is made where its parent exists.

    Raises:
        OSError: it cannot be written.
    """
    _write_manifest(
        store,
        STORE_MANIFEST,
        {
            "ranks": list(map(asdict, contents.ranks.values())),
            "unfinished": contents.unfinished,
            "skipped": list(map(asdict, contents.skipped)),
        },
    )


def open_store(store: Location) -> Trace:
    """Open the job in a store; its tables are read when they are first needed.

    Raises:
        NotATraceError: it was written by another version of hta.
        UnreadableTraceError: it is damaged, or not all of its ranks are there yet.
    """
    contents = read_contents(store)
    if contents.unfinished:
        missing, found = ", ".join(map(str, contents.unfinished[:20])), len(contents.ranks)
        message = f"{store} is unfinished: {found:,} ranks are there, and missing are: {missing}; run hta ingest again"
        raise UnreadableTraceError(message)
    if not contents.ranks:
        message = f"{store} is a store without ranks; run hta ingest again"
        raise NotATraceError(message)
    opened = {rank: RankTrace(rank, StoredFile(store, rank, each.source)) for rank, each in contents.ranks.items()}
    return Trace(opened, contents.skipped)


def write_rank(store: Location, rank: int, source: str, entry: Entry) -> StoredRank:
    """Write the tables of a rank in place of those that are there; it counts as there when all of them are.

    Raises:
        OSError: something cannot be written.
    """
    remove_rank(store, rank)
    folder = _rank_folder(store, rank)
    folder.mkdir(parents=True, exist_ok=True)
    health = Health.from_json(entry.health)
    strings = entry.tables.read("strings", ["text"])["text"].rechunk()
    tables = {
        name: {"rows": count, "bytes": _write_table(folder, name, count, strings, entry.tables)}
        for name, count in ((name, health.row_counts.get(name, 0)) for name in TABLES)
        if count or name in ALWAYS_WRITTEN
    }
    stored = StoredRank(
        rank,
        source,
        _stamp_of(entry),
        entry.content_hash,
        sum(table["bytes"] for table in tables.values()),
        health.event_count,
    )
    manifest = {"header": json.loads(entry.header), "health": json.loads(entry.health), "tables": tables}
    _write_manifest(folder, _RANK_MANIFEST, {**asdict(stored), **manifest})
    return stored


def stored_rank(store: Location, rank: int) -> StoredRank | None:
    """Return what is known of a rank that is there, None for one that is not, or was read by another version."""
    try:
        raw = _read_manifest(_rank_folder(store, rank), _RANK_MANIFEST)
        stored = StoredRank.from_json({name: raw[name] for name in StoredRank.__dataclass_fields__})
    except (NotATraceError, UnreadableTraceError, KeyError, TypeError, ValueError):
        return None
    return stored if raw["reader_version"] == READER_VERSION else None


def recovered_contents(store: Location) -> Contents:
    """Return what a store holds, also where its manifest is damaged: that of each rank says that it is there."""
    told = _told_contents(store)
    if told is not None:
        return told
    folders = (folder.name.removeprefix("rank=") for folder in store.iterdir())
    found = (stored_rank(store, int(name)) for name in folders if name.isdecimal())
    return Contents({each.rank: each for each in found if each is not None})


def tell_contents(store: Location, contents: Contents) -> None:
    """Write the manifest of a store where it says something else.

    Raises:
        OSError: it cannot be written.
    """
    if _told_contents(store) != contents:
        write_contents(store, contents)


def _told_contents(store: Location) -> Contents | None:
    try:
        return read_contents(store)
    except (NotATraceError, UnreadableTraceError):
        return None


def is_whole(store: Location, rank: int) -> bool:
    """Say whether every file of a rank that is there is as long as it was written."""
    folder = _rank_folder(store, rank)
    try:
        tables = _read_manifest(folder, _RANK_MANIFEST)["tables"]
        return all(status_of(folder / f"{name}.parquet").size == each["bytes"] for name, each in tables.items())
    except (OSError, HtaError):
        return False


def remove_rank(store: Location, rank: int) -> None:
    """Remove what is there of a rank, first what makes it count."""
    folder = _rank_folder(store, rank)
    if (folder / _RANK_MANIFEST).exists():
        (folder / _RANK_MANIFEST).unlink(missing_ok=True)
    remove_tree(folder)


class StoredFile:
    """The file of a rank as a store holds it, with the interface of `TraceFile`; it pickles as its address."""

    def __init__(self, store: Location, rank: int, source: str) -> None:
        """Name the store, the rank, and the file that it was read from."""
        self.path = source
        self._store = store
        self._rank = rank
        self._lock = threading.RLock()
        self._opened: tuple[_Json, ParquetTables] | None = None
        self._columns: dict[str, ColumnMemo] = {}

    def __reduce__(self) -> tuple[type[StoredFile], tuple[Location, int, str]]:
        """Pickle the address alone."""
        return StoredFile, (self._store, self._rank, self.path)

    def __repr__(self) -> str:
        """Show where it is."""
        return f"StoredFile({str(self.folder)!r})"

    @property
    def folder(self) -> Location:
        """Where the tables are."""
        return _rank_folder(self._store, self._rank)

    @property
    def table_names(self) -> tuple[str, ...]:
        """The tables that have a file."""
        return tuple(self._open()[1].byte_counts)

    @functools.cached_property
    def header(self) -> Header:
        """What the trace said about itself outside its events."""
        return Header.from_keys(self._open()[0]["header"])

    @functools.cached_property
    def health(self) -> Health:
        """What the reader repaired, dropped or noticed when the trace was read."""
        with _damage_told(self.folder / _RANK_MANIFEST):
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
        """Link the file of a table to `target`, a path of this machine, or copy it there."""
        location = self.folder / f"{name}.parquet"
        if isinstance(location, Path):
            with suppress(OSError):  # not every system has links
                target.symlink_to(location.absolute())
                return
        target.write_bytes(location.read_bytes())

    def forget(self) -> None:
        """Free the memory of what was read."""
        with self._lock:
            self._columns.clear()
            self._opened = None

    def _read(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        return self._checked(lambda tables: tables.read(name, columns))

    def _checked(self, read: Callable[[ParquetTables], T]) -> T:
        try:
            return read(self._open()[1])
        except DamagedTableError as error:
            message = f"{error}; the store is damaged, so run hta ingest again"
            raise UnreadableTraceError(message) from error

    def _open(self) -> tuple[_Json, ParquetTables]:
        with self._lock:
            if self._opened is None:
                manifest = _read_manifest(self.folder, _RANK_MANIFEST)
                with _damage_told(self.folder / _RANK_MANIFEST):
                    byte_counts = {str(name): int(table["bytes"]) for name, table in manifest["tables"].items()}
                    self._opened = manifest, ParquetTables(self.folder, byte_counts)
            return self._opened


def _rank_folder(store: Location, rank: int) -> Location:
    return store / f"rank={rank}"


def _write_table(folder: Location, name: str, row_count: int, strings: pl.Series, tables: Tables) -> int:
    """Write a table; return its size."""
    with drafted(folder / f"{name}.parquet") as file:
        write_parquet(tables.scan(name), row_count, name, strings, file)
        return file.tell()


def _stamp_of(entry: Entry) -> Stamp:
    if entry.stamp is None:
        message = "what is read into memory has no stamp"
        raise ValueError(message)
    return entry.stamp


def _read_manifest(folder: Location, name: str) -> _Json:
    """Read a manifest and see that it is ours.

    Raises:
        NotATraceError: it is none, or of another version of hta.
        UnreadableTraceError: it cannot be read, or is damaged.
    """
    path = folder / name
    with _damage_told(path):
        raw = json.loads(path.read_text(encoding="utf-8"))
        known = raw["format"], raw["version"], raw["schema"]
    if known[0] != _FORMATS[name]:
        message = f"{path} is no manifest of an hta store"
        raise NotATraceError(message)
    if known[1:] != (VERSION, schema_fingerprint()):
        message = f"{folder} was stored by another version of hta; run hta ingest again, or use that version"
        raise NotATraceError(message)
    return dict(raw)


@contextmanager
def _damage_told(path: Location) -> Iterator[None]:
    """Turn what goes wrong with a manifest into one sentence."""
    try:
        yield
    except HtaError:
        raise
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise UnreadableTraceError(message) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"{path} is damaged; run hta ingest again"
        raise UnreadableTraceError(message) from error


def _write_manifest(folder: Location, name: str, content: _Json) -> None:
    versions = {"version": VERSION, "schema": schema_fingerprint(), "reader_version": READER_VERSION}
    text = json.dumps({"format": _FORMATS[name], **versions, **content}, indent=1)
    with drafted(folder / name) as file:
        file.write(text.encode())
