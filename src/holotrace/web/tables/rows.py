"""Tables of any length on a page: the browser requests only the rows in view; the server sorts, searches and groups.

A cell has the same text as on the terminal and in the report; its tooltip shows the exact value.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import polars as pl

from holotrace.questions.result_columns import unit_of
from holotrace.questions.tables import cell, heading, shown_names
from holotrace.web.parts.page import Table

MOST_ORDERS = 16
"""Maximum number of row orders that a table caches; each combination of search and sort has its own order."""

MOST_ROWS_AT_ONCE = 1_000

ROW_COUNT = "row_count"

_EXACT = {"ns": " ns", "ns since the Unix epoch": " ns", "bytes": " bytes", "bytes/s": " bytes/s"}
_NOT_SHOWN = {"at_ns"}
"""Columns that are hidden, because readers cannot use times since the epoch; links to the timeline contain the times."""

_ROWS_MEASURED = 50
_LETTER_PX, _AROUND_PX, _WIDEST_TEXT_PX = 8, 40, 340
_HEADING_PX, _AROUND_HEADING_PX = 8, 44  # leaves room for the arrow of a sorted column

_NOT_SUMMED = ("mean_", "median_", "std_", "p25_", "p75_")


@dataclass(frozen=True)
class Request:
    """A request for the rows that match `search`, sorted by `sort`, from row `first` to the row before `last`.

    sort  (column, is_descending) pairs, the most important first
    """

    first: int = 0
    last: int = 100
    search: str = ""
    sort: tuple[tuple[str, bool], ...] = ()

    @classmethod
    def from_grid(cls, raw: object, search: object) -> Request:
        """Read a request from the grid; invalid parts are ignored."""
        fields = raw if isinstance(raw, Mapping) else {}
        first = _whole(fields.get("startRow"), 0)
        last = min(_whole(fields.get("endRow"), first + 100), first + MOST_ROWS_AT_ONCE)
        model = fields.get("sortModel")
        return cls(first, last, search if isinstance(search, str) else "", _sorting(model))


@dataclass(frozen=True)
class Shape:
    """How to shape a table.

    First, rows are grouped by the column `by`. Then only `top` rows are kept: those with the largest absolute values in
    the column that `Table.telling` names. If the grouped table lacks that column, the groups with the most rows are
    kept.
    """

    by: str = ""
    top: int = 0


@dataclass(eq=False)
class Rows:
    """A table from which pages request some rows at a time; it caches the row order for each search and sort."""

    table: Table
    _orders: OrderedDict[tuple[str, tuple[tuple[str, bool], ...]], pl.Series] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    @property
    def frame(self) -> pl.DataFrame:
        """All rows of the table."""
        return self.table.frame

    def answer(self, request: Request) -> tuple[list[dict[str, str]], int]:
        """Return the requested rows as texts, and the number of matching rows."""
        order = self._order(request)
        chosen = self.frame[order[request.first : max(request.first, request.last)]]
        return [_texts(chosen.columns, row, self._short_names) for row in chosen.iter_rows()], len(order)

    def chosen(self, search: str) -> pl.DataFrame:
        """Return the rows that match `search`; see `ordered_rows`."""
        return self.frame[self._order(Request(search=search))]

    @cached_property
    def _short_names(self) -> dict[str, str]:
        return shown_names(self.frame)

    def _order(self, request: Request) -> pl.Series:
        sort = tuple((name, down) for name, down in request.sort if name in self.frame.columns)
        key = (request.search.strip().lower(), sort)
        with self._lock:
            if key not in self._orders:
                self._orders[key] = ordered_rows(self.frame, *key)
            self._orders.move_to_end(key)
            while len(self._orders) > MOST_ORDERS:
                self._orders.popitem(last=False)
            return self._orders[key]


def ordered_rows(frame: pl.DataFrame, search: str, sort: Sequence[tuple[str, bool]]) -> pl.Series:
    """Return the numbers of the rows that match `search`, ordered by `sort`.

    A row matches if one of its texts contains `search` or one of its integers equals it. The case of the texts is
    ignored, but `search` must be in lower case. Nulls come last, and rows with equal values stay in the order of the
    table.
    """
    numbered = frame.with_row_index("row").lazy()
    if search:
        texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
        holds = [pl.col(name).str.to_lowercase().str.contains(search, literal=True) for name in texts]
        numbers = [
            pl.col(name).cast(pl.String).eq(search).alias(name)
            for name, dtype in frame.schema.items()
            if dtype.is_integer()
        ]
        numbered = numbered.filter(pl.any_horizontal(*holds, *numbers, pl.lit(value=False)).fill_null(value=False))
    if sort:
        names, descending = [name for name, _ in sort], [down for _, down in sort]
        numbered = numbered.sort(names, descending=descending, nulls_last=True, maintain_order=True)
    return numbered.select("row").collect().to_series()


def shaped(table: Table, shape: Shape) -> Table:
    """Group a table by one of its columns, and keep only its top rows; see `Shape`."""
    by = shape.by if shape.by in group_columns(table.frame) else ""
    frame = grouped(table.frame, by) if by else table.frame
    telling = table.telling if table.telling in frame.columns else (ROW_COUNT if by else table.telling)
    if shape.top and telling in frame.columns:
        rank = pl.col(telling).fill_null(0).abs().rank("ordinal", descending=True)
        frame = frame.filter(rank <= shape.top)
    return Table(table.caption, frame, telling)


def group_columns(frame: pl.DataFrame) -> list[str]:
    """Return the columns by which rows can be grouped: text columns, and rank, device, stream and step numbers."""
    numbered = {"rank", "device", "stream", "step"}
    names = [name for name, dtype in frame.schema.items() if dtype == pl.String or name in numbered]
    return names if len(names) > 1 else []


def grouped(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """Group the rows with the same value of `by`: sum times, sizes and counts, and keep minima and maxima.

    Shares, means and medians are left out, because they cannot be computed from the rows.
    """
    summed = [_aggregate(name) for name, dtype in frame.schema.items() if name != by and dtype.is_numeric()]
    kept = [expression for expression in summed if expression is not None]
    table = frame.group_by(by, maintain_order=True).agg(*kept, pl.len().cast(pl.Int64).alias(ROW_COUNT))
    first = next((name for name in table.columns[1:]), ROW_COUNT)
    return table.sort(first, descending=True, nulls_last=True, maintain_order=True)


def column_definitions(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the columns of the grid, wide enough for their content; text columns grow most."""
    return [_column(name, dtype, _letters(frame[name])) for name, dtype in frame.schema.items()]


def _column(name: str, dtype: pl.DataType, letters: int) -> dict[str, Any]:
    column = {"field": name, "headerName": heading(name), "tooltipField": f"{name}|exact", "hide": name in _NOT_SHOWN}
    longest_word = max(map(len, heading(name).split()))
    width = int(max(_LETTER_PX * letters + _AROUND_PX, _HEADING_PX * longest_word + _AROUND_HEADING_PX))
    if dtype == pl.String:
        return {**column, "minWidth": min(width, _WIDEST_TEXT_PX), "flex": max(1, letters // 8)}
    return {**column, "minWidth": width, "flex": 1, "type": "rightAligned"}


def _letters(column: pl.Series) -> int:
    """Return the length of the longest text in the first rows of a column."""
    return max((len(cell(column.name, value).text) for value in column.head(_ROWS_MEASURED)), default=0)


def _texts(names: Sequence[str], row: tuple[Any, ...], short: Mapping[str, str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in zip(names, row, strict=True):
        shown = cell(name, value, short)
        texts[name] = shown.text
        texts[f"{name}|exact"] = shown.whole or _exact(name, value)
    return texts


def _exact(name: str, value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,}{_EXACT.get(unit_of(name), '')}"


def _aggregate(name: str) -> pl.Expr | None:
    """Return the expression that aggregates a column, chosen by the column's name; None to leave the column out."""
    if name.startswith(("max_", "peak_")):
        return pl.col(name).max()
    if name.startswith("min_"):
        return pl.col(name).min()
    if any(word in name for word in _NOT_SUMMED) or name.endswith("_per_s"):
        return None
    is_amount = name.endswith(("_ns", "_count", "bytes")) or name in {"count", "flop"}
    return pl.col(name).sum() if is_amount else None


def _sorting(model: object) -> tuple[tuple[str, bool], ...]:
    if not isinstance(model, list):
        return ()
    columns = [item for item in model[:8] if isinstance(item, Mapping) and isinstance(item.get("colId"), str)]
    return tuple((column["colId"], column.get("sort") == "desc") for column in columns)


def _whole(value: object, default: int) -> int:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**31
    return int(value) if is_number else default  # type: ignore[call-overload]  # checked above
