"""Export the stored tables as CSV or Parquet files, with strings in place of string ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

from holotrace.errors import InvalidOptionError
from holotrace.export.csv_text import write_csv
from holotrace.export.new_file import new_file
from holotrace.locations import Location, expect_writable_folder
from holotrace.schema import TABLES
from holotrace.store.trace import RankTrace, Trace

TableFormat: TypeAlias = Literal["csv", "parquet"]

_ROWS_AT_ONCE = 200_000
_RESOLVED = ("string", "json")


def export_tables(
    trace: Trace,
    folder: Location,
    table_format: TableFormat,
    *,
    overwrite: bool = False,
    escape_formulas: bool = True,
) -> list[Location]:
    """Write each rank's nonempty tables as `<folder>/rank_<rank>/<table>.<format>`, with string ids resolved.

    The columns are described in `holotrace.schema.TABLES`. The folder is created if its parent exists. In CSV, strings that a
    spreadsheet would run as a formula are prefixed with an apostrophe, unless `escape_formulas` is false.

    Returns:
        The written files, in the order of ranks and tables.

    Raises:
        InvalidOptionError: a rank's folder already exists and `overwrite` is false, or the folder cannot be written.
        OSError: writing failed; the unfinished table is removed.
    """
    _expect_room(trace, folder, overwrite=overwrite)
    paths: list[Location] = []
    for rank_trace in trace.ranks.values():
        rank_folder = _rank_folder(folder, rank_trace.rank)
        rank_folder.mkdir(parents=True, exist_ok=True)
        to = _Target(table_format, overwrite=overwrite, escape_formulas=escape_formulas)
        paths += _export_rank(rank_trace, rank_folder, to)
        rank_trace.forget()
    return paths


@dataclass(frozen=True)
class _Target:
    table_format: TableFormat
    overwrite: bool
    escape_formulas: bool


def _expect_room(trace: Trace, folder: Location, *, overwrite: bool) -> None:
    expect_writable_folder(folder if folder.exists() else folder.absolute().parent)
    taken = [str(rank_folder) for rank in trace.ranks if (rank_folder := _rank_folder(folder, rank)).exists()]
    if taken and not overwrite:
        message = (
            f"{', '.join(taken[:8])} already exist{'s' if len(taken) == 1 else ''}; choose another folder, or allow "
            "overwriting (--force, overwrite=True)"
        )
        raise InvalidOptionError(message)


def _rank_folder(folder: Location, rank: int) -> Location:
    return folder / f"rank_{rank}"


def _export_rank(rank_trace: RankTrace, folder: Location, to: _Target) -> list[Location]:
    paths = []
    for name in TABLES:
        table = pl.DataFrame() if name == "strings" else rank_trace.table(name)
        if len(table):
            path = folder / f"{name}.{to.table_format}"
            _write(rank_trace, name, table, path, to)
            paths.append(path)
    return paths


def _write(rank_trace: RankTrace, name: str, table: pl.DataFrame, path: Location, to: _Target) -> None:
    with new_file(path, overwrite=to.overwrite) as file:
        if to.table_format == "parquet":
            _resolved(rank_trace, name, table).write_parquet(file)
            return
        for start in range(0, len(table), _ROWS_AT_ONCE):
            rows = _resolved(rank_trace, name, table.slice(start, _ROWS_AT_ONCE))
            write_csv(rows, file, include_header=start == 0, escape_formulas=to.escape_formulas)


def _resolved(rank_trace: RankTrace, name: str, table: pl.DataFrame) -> pl.DataFrame:
    columns = [column.name for column in TABLES[name] if column.type in _RESOLVED]
    return table.with_columns(rank_trace.texts(table[column]) for column in columns)
