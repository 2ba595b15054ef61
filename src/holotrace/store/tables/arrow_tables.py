"""The tables of one rank as Polars frames, from memory or from Arrow files."""

from __future__ import annotations

import functools
import glob
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.errors import HolotraceError, InvalidOptionError
from holotrace.schema import TABLES, ColumnType
from holotrace.store.tables.checksums import TableSums, column_numbers

_POLARS_TYPES: dict[ColumnType, type[pl.DataType]] = {
    "int64": pl.Int64,
    "int32": pl.Int32,
    "uint32": pl.UInt32,
    "uint64": pl.UInt64,
    "uint8": pl.UInt8,
    "float64": pl.Float64,
    "bool": pl.Boolean,
    "string": pl.UInt32,
    "json": pl.UInt32,
    "text": pl.String,
}


class DamagedTableError(HolotraceError):
    """The file of a table is missing or was changed; if it belongs to the cache, the trace is read again."""


class Tables(Protocol):
    """All tables of one rank, in memory or in files."""

    def read(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        """Return `columns` of table `name`; the schema must contain the table and the columns."""

    def read_events(self, columns: Sequence[str], kinds: Sequence[int], names: pl.Series | None = None) -> pl.DataFrame:
        """Return `columns` of the events of these kinds and, if given, these `names` (string ids), in file order."""

    def scan(self, name: str) -> pl.LazyFrame:
        """Return table `name` as a lazy frame, so that a large table can be collected in parts."""


@dataclass(frozen=True, eq=False)
class MemoryTables(EqualByContent):
    """Tables in memory; a table that was never written has no rows."""

    frames: Mapping[str, pl.DataFrame]

    def read(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        """Return `columns` of table `name` without copying."""
        frame = self.frames.get(name)
        return empty_table(name).select(columns) if frame is None else frame.select(columns)

    def read_events(self, columns: Sequence[str], kinds: Sequence[int], names: pl.Series | None = None) -> pl.DataFrame:
        """Return `columns` of the events of these kinds and names."""
        needed = list(dict.fromkeys([*columns, "kind", "name"]))
        return of_kinds(self.read("events", needed), kinds, names).select(columns)

    def scan(self, name: str) -> pl.LazyFrame:
        """Return table `name`."""
        return self.read(name, table_types(name).names()).lazy()


@dataclass(frozen=True)
class FolderTables:
    """Tables in files `<name>.arrow` of a folder; only the requested columns are read and verified.

    `sums` is empty if this process has just written the files; the files are then not verified.
    """

    folder: Path
    sums: Mapping[str, TableSums] = field(default_factory=dict)
    _verified: dict[str, set[str]] = field(default_factory=dict, repr=False, compare=False)

    def read(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        """Return `columns` of table `name`, each as a single chunk, so that NumPy can use the columns without a copy.

        Raises:
            DamagedTableError: the file is missing or was changed.
        """
        with self._errors_named(name):
            self.verify(name, columns)
            chunked = pl.read_ipc(_literal(arrow_file(self.folder, name)), columns=list(columns)).get_columns()
            # To save memory, the chunks of a column are freed before the next column is copied.
            return pl.DataFrame([chunked.pop(0).rechunk() for _ in columns])

    def read_events(self, columns: Sequence[str], kinds: Sequence[int], names: pl.Series | None = None) -> pl.DataFrame:
        """Return `columns` of the events of these kinds and names, without loading the other events.

        Raises:
            DamagedTableError: the file is missing or was changed.
        """
        with self._errors_named("events"):
            self.verify("events", [*columns, "kind", *([] if names is None else ["name"])])
            events = pl.scan_ipc(_literal(arrow_file(self.folder, "events")))
            return of_kinds(events, kinds, names).select(columns).collect().rechunk()

    def scan(self, name: str) -> pl.LazyFrame:
        """Return table `name` as a lazy frame; collecting it may raise Polars errors.

        Raises:
            DamagedTableError: the file is missing or was changed.
        """
        with self._errors_named(name):
            self.verify(name, table_types(name).names())
        return pl.scan_ipc(_literal(arrow_file(self.folder, name)))

    def verify(self, name: str, columns: Sequence[str]) -> None:
        """Compare columns of a table with their checksums; a column that was verified before is skipped.

        Raises:
            DamagedTableError: a checksum differs.
            OSError: the file cannot be read, or is not an Arrow file.
        """
        expected, verified = self.sums.get(name), self._verified.setdefault(name, set())
        wanted = {*columns} - verified
        if expected is None or not wanted:
            return
        path = arrow_file(self.folder, name)
        if not expected.fit(path, column_numbers(table_types(name).names(), wanted)):
            message = f"{path} is damaged: its checksum does not match"
            raise DamagedTableError(message)
        verified.update(wanted)

    @contextmanager
    def _errors_named(self, name: str) -> Iterator[None]:
        try:
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            message = f"{arrow_file(self.folder, name)} cannot be read: {_first_line(error)}"
            raise DamagedTableError(message) from error


class ColumnMemo:
    """The columns of one table; a column is loaded when it is first requested."""

    def __init__(self, load: Callable[[Sequence[str]], pl.DataFrame]) -> None:
        """Load missing columns with `load(columns)`."""
        self._load = load
        self._lock = threading.RLock()  # two threads must not add the same column
        self._held: pl.DataFrame | None = None

    def get(self, columns: Sequence[str]) -> pl.DataFrame:
        """Return `columns`, loading any that are missing."""
        with self._lock:
            if self._held is None:
                self._held = self._load(columns)
            missing = [column for column in columns if column not in self._held.columns]
            if missing:
                self._held = self._held.hstack(self._load(missing).get_columns())
            return self._held[list(columns)]


Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def of_kinds(events: Frame, kinds: Sequence[int], names: pl.Series | None = None) -> Frame:
    """Return the events of these kinds; if `names` (string ids) is given, only events with these names."""
    return events.filter(is_of_kinds(kinds, names))


def is_of_kinds(kinds: Sequence[int], names: pl.Series | None = None) -> pl.Expr:
    """Return whether the kind of an event is in `kinds` and, if `names` (string ids) is given, its name is in `names`."""
    is_wanted = pl.col("kind").is_in(pl.Series(list(map(int, kinds)), dtype=pl.UInt8).implode())
    return is_wanted if names is None else is_wanted & pl.col("name").is_in(names.implode())


def arrow_file(folder: Path, name: str) -> Path:
    """Return the path of table `name` in `folder`."""
    return folder / f"{name}.arrow"


def polars_type(column_type: ColumnType) -> type[pl.DataType]:
    """Return the Polars type of a stored column; for `string` and `json`, this is the type of the string id."""
    return _POLARS_TYPES[column_type]


def _literal(path: Path) -> str:
    """Escape a path for Polars, which treats `*`, `?` and `[` as a pattern."""
    return glob.escape(str(path))


@functools.cache
def table_types(name: str) -> pl.Schema:
    """Return the Polars type of every column of table `name`, in order."""
    return pl.Schema({column.name: _POLARS_TYPES[column.type] for column in TABLES[name]})


def empty_table(name: str) -> pl.DataFrame:
    """Return table `name` without rows."""
    return pl.DataFrame(schema=table_types(name))


def known_columns(name: str, columns: Sequence[str] | None) -> list[str]:
    """Return the requested columns, or all columns for None.

    Raises:
        InvalidOptionError: the table or column does not exist; the message lists the existing ones.
    """
    if name not in TABLES:
        message = f"there is no table {name!r}; the tables are: {', '.join(TABLES)}"
        raise InvalidOptionError(message)
    known = [column.name for column in TABLES[name]]
    for column in columns or ():
        if column not in known:
            message = f"table {name!r} has no column {column!r}; its columns are: {', '.join(known)}"
            raise InvalidOptionError(message)
    return known if columns is None else list(columns)


def schema_fingerprint() -> str:
    """Return a short string that changes when a table or column is added, removed, renamed or given another type."""
    declared = [(name, [(column.name, column.type) for column in columns]) for name, columns in TABLES.items()]
    return hashlib.sha256(repr(declared).encode()).hexdigest()[:16]


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
