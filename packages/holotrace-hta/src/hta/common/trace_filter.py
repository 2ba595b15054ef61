"""Filters of trace frames, at HTA's import path.

Call a filter with a frame, such as `analyzer.t.get_trace(0)`, and also with the symbol table if the filter matches names. A
filter returns the matching rows in order and leaves the frame unchanged.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from holotrace.errors import InvalidOptionError, WrongTypeError
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.symbols import TraceSymbolTable

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

logger = logging.getLogger("holotrace")

_SYNCHRONISATIONS = r"(Event|Context) Sync$"
_COPIES = r"(gpu_memcpy|Memcpy)$"
_TEXT_COLUMNS = ("s_name", "name")


class Filter(ABC):
    """The base class of all filters."""

    @abstractmethod
    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the matching rows."""


class IterationFilter(Filter):
    """Keep the events of some steps, by step number."""

    def __init__(self, iterations: int | Iterable[int]) -> None:
        self.iterations = _listed(iterations)

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:  # noqa: ARG002
        """Return the matching rows."""
        return df[df["iteration"].isin(self.iterations)] if _has(df, "iteration") else df


class IterationIndexFilter(Filter):
    """Keep the events of some steps, selected by position in the frame: 0 is the step with the lowest number.

    If a frame has no steps, all its rows are kept.
    """

    def __init__(self, iteration_index: int | Iterable[int]) -> None:
        self.iteration_index = _listed(iteration_index)

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:  # noqa: ARG002
        """Return the matching rows; none if the step does not exist."""
        existing = sorted(set(df["iteration"].dropna().astype(int)) - {-1}) if _has(df, "iteration") else []
        if not existing:
            return df
        chosen = [existing[index] for index in self.iteration_index if 0 <= index < len(existing)]
        return df[df["iteration"].isin(chosen)]


class FirstIterationFilter(IterationIndexFilter):
    """Keep the events of the first step."""

    def __init__(self) -> None:
        super().__init__(0)


class RankFilter(Filter):
    """Keep the events of some ranks; if a frame has no column `rank`, keep all its rows."""

    def __init__(self, ranks: int | Iterable[int]) -> None:
        self.ranks = _listed(ranks)

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:  # noqa: ARG002
        """Return the matching rows."""
        return df[df["rank"].isin(self.ranks)] if "rank" in df.columns else df


class TimeRangeFilter(Filter):
    """Keep the events that start and end within a time range in microseconds.

    Raises:
        InvalidOptionError: the range is not a pair, or ends before it starts.
    """

    def __init__(self, time_range: tuple[float, float]) -> None:
        if len(time_range) != 2 or time_range[0] > time_range[1]:  # noqa: PLR2004 -- a start and an end
            message = f"time_range={time_range!r} must be (start, end) in µs, with start <= end"
            raise InvalidOptionError(message)
        self.time_range = time_range

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:  # noqa: ARG002
        """Return the matching rows."""
        begin, end = self.time_range
        return df[(df["ts"] >= begin) & (df["ts"] + df["dur"] <= end)] if _has(df, "ts") else df


class NameStringColumnFilter(Filter):
    """Keep the events whose name matches a regular expression at its start.

    Reads names as text from `name_column`, by default `s_name` or `name`; if neither contains text, keeps all rows.
    """

    def __init__(self, name_pattern: str, name_column: str | None = None) -> None:
        self.name_pattern, self.name_column = _checked_pattern(name_pattern), name_column

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:  # noqa: ARG002
        """Return the matching rows."""
        columns = [self.name_column] if self.name_column else _text_columns(df)
        if not columns:
            logger.warning("the frame has no text column of names; the filter keeps all rows")
            return df
        names = df[columns[0]]
        matching = {name for name in names.unique() if re.match(self.name_pattern, str(name))}
        return df[names.isin(matching)]


class NameIdColumnFilter(Filter):
    """Keep the events whose name matches a regular expression at its start; names may be symbol ids."""

    def __init__(self, name_pattern: str, name_column: str = "name") -> None:
        self.name_pattern, self.name_column = _checked_pattern(name_pattern), name_column

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the matching rows."""
        known = _needed(symbol_table, "NameIdColumnFilter")
        return df[df[self.name_column].isin(known.ids_matching(self.name_pattern))]


class NameFilter(Filter):
    """Keep the events whose name matches a regular expression at its start.

    Reads names from `name_column`, by default `s_name` or `name`; the symbol table decodes symbol ids.
    """

    def __init__(
        self, name_pattern: str, symbol_table: TraceSymbolTable | None = None, name_column: str | None = None
    ) -> None:
        self.name_pattern, self.symbol_table, self.name_column = (
            _checked_pattern(name_pattern),
            symbol_table,
            name_column,
        )

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the matching rows."""
        if df.empty:
            return df
        chosen = [self.name_column] if self.name_column else [name for name in _TEXT_COLUMNS if name in df.columns]
        texts = [name for name in chosen if not pd.api.types.is_numeric_dtype(df[name])]
        if texts:
            return NameStringColumnFilter(self.name_pattern, texts[0])(df)
        return NameIdColumnFilter(self.name_pattern, chosen[0])(df, symbol_table or self.symbol_table)


class QueryFilter(Filter):
    """Keep the rows that match a pandas query: `dur > 100 and stream == 7`."""

    def __init__(self, query_str: str) -> None:
        self.query_str = query_str

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:  # noqa: ARG002
        """Return the matching rows."""
        return df.query(self.query_str)


class _LastingFilter(Filter):
    """Keep the events with a duration above 0; `ZeroDurationFilter(df)` and `ZeroDurationFilter()(df)` both work."""

    def __call__(
        self,
        df: pd.DataFrame | None = None,
        symbol_table: TraceSymbolTable | None = None,  # noqa: ARG002
    ) -> Any:  # noqa: ANN401 -- returns itself without a frame
        """Return the matching rows."""
        return self if df is None else df[df["dur"] > 0]


ZeroDurationFilter = _LastingFilter()
"""`ZeroDurationFilter(df)` keeps the events with a duration above 0, despite its name; HTA's filter does the same."""


class GPUKernelFilter(Filter):
    """Keep device events: rows with a stream; with a symbol table, also event and context synchronisations."""

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the matching rows."""
        return df[_is_on_device(df, symbol_table)] if _has(df, "stream") else df


class CPUOperatorFilter(Filter):
    """Keep host events: all rows that `GPUKernelFilter` drops."""

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the matching rows."""
        return df[~_is_on_device(df, symbol_table)] if _has(df, "stream") else df


class MemCopyEventFilter(Filter):
    """Keep the device copies with this exact name, such as `Memcpy HtoD (Pinned -> Device)`."""

    def __init__(self, memory_copy_type: str, symbol_table: TraceSymbolTable | None = None) -> None:
        self.memory_copy_type, self.symbol_table = memory_copy_type, symbol_table

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the matching rows; none if the name does not exist."""
        if df.empty:
            return df
        known = _needed(symbol_table or self.symbol_table, "MemCopyEventFilter")
        name = known.get_sym_index().get(self.memory_copy_type, -1)
        return df[(df["name"] == name) & df["cat"].isin(known.ids_matching(_COPIES)) & (name >= 0)]


class CompositeFilter(Filter):
    """Keep the rows that match every given filter.

    Raises:
        WrongTypeError: an item is not a filter.
    """

    def __init__(self, filters: Sequence[Filter]) -> None:
        wrong = [item for item in filters if not isinstance(item, Filter)]
        if wrong:
            message = f"{wrong[0]!r} is not a filter of hta.common.trace_filter"
            raise WrongTypeError(message)
        if any(item is self for item in filters):
            message = "a CompositeFilter cannot contain itself"
            raise InvalidOptionError(message)
        self.filters = list(filters)

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the matching rows."""
        for keep in self.filters:
            df = keep(df, symbol_table)
        return df


def _is_on_device(df: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> pd.Series:
    has_stream = df["stream"] >= 0
    if symbol_table is None:
        return has_stream
    return has_stream | df["name"].isin(symbol_table.ids_matching(_SYNCHRONISATIONS))


def _needed(symbol_table: TraceSymbolTable | None, who: str) -> TraceSymbolTable:
    if symbol_table is None:
        message = f"{who} matches names, but this frame contains symbol ids: pass the symbol table too"
        raise InvalidOptionError(message)
    return symbol_table


def _checked_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        message = f"{pattern!r} is not a regular expression: {error}"
        raise InvalidOptionError(message) from error
    return pattern


def _listed(numbers: int | Iterable[int]) -> list[int]:
    if isinstance(numbers, str) or not isinstance(numbers, (int, Iterable)):
        message = f"{numbers!r} is neither a number nor a list of numbers"
        raise WrongTypeError(message)
    return [numbers] if isinstance(numbers, int) else list(numbers)


def _has(df: pd.DataFrame, column: str) -> bool:
    """Return whether the frame has this column; without it, filters keep all rows, as HTA's filters do."""
    if column not in df.columns:
        logger.warning("the frame has no column %s; the filter keeps all rows", column)
    return column in df.columns


def _text_columns(df: pd.DataFrame) -> list[str]:
    return [name for name in _TEXT_COLUMNS if name in df.columns and not pd.api.types.is_numeric_dtype(df[name])]
