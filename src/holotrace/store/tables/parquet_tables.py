"""Write the tables of one rank as Parquet files that any engine can read, and read them back.

The columns of `holotrace.schema.TABLES` are made readable: `string` and `json` columns contain the string itself, and the
`kind` of an event is its name in lower case. `collectives.rank` is renamed to `recorded_rank`, because query engines
derive a column `rank` from the folder's name. Strings are dictionary-encoded. String ids are not stored; they are the
row numbers of the table `strings`. A table without rows has no file, unless it is in `ALWAYS_WRITTEN`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

import polars as pl
from polars.io.plugins import register_io_source

from holotrace.locations import Location, Status, status_of
from holotrace.schema import TABLES, Column, EventKind
from holotrace.store.tables.arrow_tables import DamagedTableError, Tables, empty_table, table_types
from holotrace.store.tables.checksums import checksum, file_checksum

ALWAYS_WRITTEN = ("events", "tracks", "strings")
"""Tables that have a file even without rows, so that a pattern such as `rank=*/events.parquet` matches every rank."""

KIND_NAMES = pl.Series("kind", [kind.name.lower() for kind in EventKind])
"""Files contain these names instead of numeric `EventKind` values; the name of value `i` is `KIND_NAMES[i]`."""

_ROWS_AT_ONCE = 1 << 17
_ROWS_OF_A_GROUP = 1 << 18
_NAMES = {("collectives", "rank"): "recorded_rank"}
_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def parquet_name(table: str, column: str) -> str:
    """Return the name that a table's column has in the table's Parquet file."""
    return _NAMES.get((table, column), column)


def is_text(table: str, column: Column) -> bool:
    """Return whether the file stores a column as strings; it does so for strings, JSON, and the kind of an event."""
    return column.type in ("string", "json", "text") or (table, column.name) == ("events", "kind")


def parquet_types(table: str) -> pl.Schema:
    """Return the Polars type of every column in the file of a table, in order."""
    known = table_types(table)
    return pl.Schema(
        {
            parquet_name(table, column.name): pl.String() if is_text(table, column) else known[column.name]
            for column in TABLES[table]
        }
    )


def write_parquet(rows: pl.LazyFrame, row_count: int, table: str, strings: pl.Series, file: IO[bytes]) -> None:
    """Write a table in batches of rows, which limits the memory needed.

    Args:
        rows: the table with the columns of `holotrace.schema`.
        row_count: number of rows.
        table: name of the table.
        strings: the text of every string id.
        file: where to write.

    Raises:
        OSError: writing failed.
    """

    def slices(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        del with_columns, predicate, n_rows, batch_size  # `sink_parquet` always requests all rows and columns
        for start in range(0, row_count, _ROWS_AT_ONCE):
            yield readable(rows.slice(start, _ROWS_AT_ONCE).collect(), table, strings)

    source, written = register_io_source(slices, schema=parquet_types(table)), _Written(file)
    to = cast("IO[bytes]", written)
    try:
        source.sink_parquet(to, compression="zstd", compression_level=3, row_group_size=_ROWS_OF_A_GROUP)
    except pl.exceptions.PolarsError:
        if written.error is not None:
            raise written.error from None
        raise


class _Written(io.RawIOBase):
    """Passes data on to a file, and remembers the OSError of a failed write, which Polars does not report."""

    def __init__(self, file: IO[bytes]) -> None:
        """Write to `file`."""
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401 -- any bytes-like object
        """Pass data on to the file."""
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise


def readable(rows: pl.DataFrame, table: str, strings: pl.Series) -> pl.DataFrame:
    """Convert rows of a table to the columns of its file."""
    return rows.select(_readable(rows[column.name], table, column, strings) for column in TABLES[table])


def _readable(values: pl.Series, table: str, column: Column, strings: pl.Series) -> pl.Series:
    name = parquet_name(table, column.name)
    if column.type in ("string", "json"):
        return strings.gather(values).alias(name)
    return (KIND_NAMES.gather(values) if is_text(table, column) and column.name == "kind" else values).alias(name)


@dataclass(frozen=True)
class StoredTable:
    """The expected row count, length in bytes, and checksum of a table's file."""

    rows: int
    byte_count: int
    checksum: str

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> StoredTable:
        """Restore an object from the dict that `vars` returned for it.

        Raises:
            KeyError, TypeError, ValueError: `raw` lacks a key, or a value has the wrong type.
        """
        return cls(int(raw["rows"]), int(raw["byte_count"]), str(raw["checksum"]))


@dataclass(frozen=True)
class ParquetTables(Tables):
    """The tables of a rank in a store; the checksum of a file is verified before its table is read.

    `parts` has an entry for each table that has a file.
    """

    folder: Location
    parts: Mapping[str, StoredTable]
    _fetched: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    _verified: dict[str, Status] = field(default_factory=dict, repr=False, compare=False)

    def read(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        """Return `columns` of table `name`.

        Raises:
            DamagedTableError: the file is missing or was changed.
        """
        return self._collected(name, columns, None)

    def read_events(self, columns: Sequence[str], kinds: Sequence[int], names: pl.Series | None = None) -> pl.DataFrame:
        """Return `columns` of the events of these kinds and names, in file order.

        Raises:
            DamagedTableError: the file is missing or was changed.
        """
        of_kinds = [KIND_NAMES[int(kind)] for kind in kinds]
        if names is None:
            return self._collected("events", columns, of_kinds)
        events = self._collected("events", list(dict.fromkeys([*columns, "name"])), of_kinds)
        return events.filter(pl.col("name").is_in(names.implode())).select(columns)

    def scan(self, name: str) -> pl.LazyFrame:
        """Return table `name` with the columns of its file, as a lazy frame.

        Raises:
            DamagedTableError: the file is missing or was changed.
        """
        if name not in self.parts:
            return pl.LazyFrame(schema=parquet_types(name))
        try:
            return pl.scan_parquet(self._source(name), hive_partitioning=False, glob=False)
        except _ERRORS as error:
            raise self._damaged(name, error) from error

    def _collected(self, name: str, columns: Sequence[str], kinds: list[str] | None) -> pl.DataFrame:
        if name not in self.parts:
            return empty_table(name).select(columns)
        rows = self.scan(name)
        wanted = [column for column in TABLES[name] if column.name in columns]
        try:
            chosen = rows if kinds is None else rows.filter(pl.col("kind").is_in(kinds))
            return chosen.select(self._stored(name, column) for column in wanted).select(columns).collect().rechunk()
        except _ERRORS as error:
            raise self._damaged(name, error) from error

    def _stored(self, table: str, column: Column) -> pl.Expr:
        """Convert a column of the file back to the column of `holotrace.schema`."""
        values = pl.col(parquet_name(table, column.name))
        if column.type in ("string", "json"):
            values = values.cast(self._string_ids).to_physical()
        elif is_text(table, column) and column.type != "text":
            values = values.cast(pl.Enum(KIND_NAMES)).to_physical()
        return values.cast(table_types(table)[column.name]).alias(column.name)

    @cached_property
    def _string_ids(self) -> pl.Enum:
        return pl.Enum(self.read("strings", ["text"])["text"])

    def put(self, name: str, target: Path) -> None:
        """Create a link to the file of a table at the local path `target`, or copy the file there.

        Raises:
            DamagedTableError: the file is missing or was changed.
        """
        try:
            source = self._source(name)
        except OSError as error:
            raise self._damaged(name, error) from error
        if isinstance(source, Path):
            with suppress(OSError):  # not every file system supports links
                target.symlink_to(source.absolute())
                return
            target.write_bytes(source.read_bytes())
        else:
            target.write_bytes(source.getvalue())

    def verify(self) -> None:
        """Read all files, and compare them with their checksums.

        Raises:
            OSError: a file is missing or was changed.
        """
        for name in self.parts:
            self._source(name)
            self._fetched.pop(name, None)

    def _source(self, name: str) -> Path | io.BytesIO:
        """Return the source for Polars: the local file, or the bytes of the remote file, which is fetched only once."""
        location = self.folder / f"{name}.parquet"
        if isinstance(location, Path):
            status = status_of(location)
            if self._verified.get(name) != status:
                self._expect(name, status.size or 0, lambda: file_checksum(location))
                self._verified[name] = status
            return location
        if name not in self._fetched:
            data = location.read_bytes()
            self._expect(name, len(data), lambda: checksum(data))
            self._fetched[name] = data
        return io.BytesIO(self._fetched[name])

    def _expect(self, name: str, size: int, checksum_of: Callable[[], str]) -> None:
        expected = self.parts[name]
        if size != expected.byte_count:
            message = f"{size:,} bytes instead of {expected.byte_count:,}"
            raise OSError(message)
        if checksum_of() != expected.checksum:
            message = "its checksum does not match"
            raise OSError(message)

    def _damaged(self, name: str, error: BaseException) -> DamagedTableError:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0]
        return DamagedTableError(f"{self.folder / f'{name}.parquet'} cannot be read: {reason}")
