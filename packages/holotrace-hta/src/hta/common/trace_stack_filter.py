"""Filters that select events by their position relative to an operator on the same thread: under, before or after it.

The frame must contain names as text, so call `analyzer.t.decode_symbol_ids()` first.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from holotrace.algorithms.nested.nesting import nesting
from holotrace.errors import InvalidOptionError
from hta.common.trace_df import find_op_occurrence
from hta.common.trace_filter import Filter, FirstIterationFilter
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.symbols import TraceSymbolTable

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

_NAME_COLUMNS = ("s_name", "name")
_NS_OF_A_MICROSECOND = 1_000


class OperatorFilterMethod(Enum):
    """Which events to keep, by their position relative to an operator."""

    Under = 0
    After = 1
    Before = 2
    Ancestors = 3
    Stack = 4


class OperatorFilter(Filter):
    """Find one call of an operator; keep the events of its thread that are inside, around, before or after the call.

    `Under` keeps the operator and the events that it contains, `Ancestors` keeps the events that contain it, and
    `Stack` keeps both. `After` keeps events that start at or after the operator's end, and `Before` keeps events that
    end at or before its start.

    Args:
        op_name: the operator's exact name.
        position: which occurrence, in order of time: 0 for the first, -1 for the last.
        method: the events to keep.
        include_gpu_kernels: also keep the device work that the kept calls launched.
        name_column: the column that contains names as text; by default `s_name`, or else `name`.
    """

    def __init__(
        self,
        op_name: str,
        position: int,
        method: OperatorFilterMethod,
        include_gpu_kernels: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
        name_column: str | None = None,
    ) -> None:
        self.op_name, self.position, self.method = op_name, position, method
        self.include_gpu_kernels, self.name_column = include_gpu_kernels, name_column

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:  # noqa: ARG002
        """Return the matching rows in order; none if the operator does not occur that many times."""
        is_found, operator = find_op_occurrence(df, self.op_name, self.position, _names_of(df, self.name_column))
        if not is_found:
            return df.iloc[:0]
        is_kept = _same_thread(df, operator) & _placed(df, operator, self.method)
        return _with_launched(df, is_kept) if self.include_gpu_kernels else df[is_kept]


class UnderOperatorFilter(OperatorFilter):
    """Keep an operator and the events it contains."""

    def __init__(
        self,
        op_name: str,
        position: int,
        include_gpu_kernels: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
        name_column: str | None = None,
    ) -> None:
        super().__init__(op_name, position, OperatorFilterMethod.Under, include_gpu_kernels, name_column)


class AfterOperatorFilter(OperatorFilter):
    """Keep the events that start at or after the end of an operator."""

    def __init__(
        self,
        op_name: str,
        position: int,
        include_gpu_kernels: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
        name_column: str | None = None,
    ) -> None:
        super().__init__(op_name, position, OperatorFilterMethod.After, include_gpu_kernels, name_column)


class BeforeOperatorFilter(OperatorFilter):
    """Keep the events that end at or before the start of an operator."""

    def __init__(
        self,
        op_name: str,
        position: int,
        include_gpu_kernels: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
        name_column: str | None = None,
    ) -> None:
        super().__init__(op_name, position, OperatorFilterMethod.Before, include_gpu_kernels, name_column)


class CombinedOperatorFilter(Filter):
    """Keep the events of the first step that are under one operator, between a second and a third operator.

    Args:
        root_op_name: keeps events under the first operator of this name.
        preceding_op_name: keeps events after the last operator of this name under the root; if it is None, "" or not
            found, keeps events from the start of the root.
        following_op_name: keeps events before the next operator of this name; if it is None, "" or not found, keeps
            events up to the end of the root.
        include_gpu_kernels: also keep the device work that the kept calls launched.
        stack_depths: keep only calls at these depths. Depths come from the column `depth` if the frame has one;
            otherwise they are counted from the outermost kept call, which has depth 0.
    """

    def __init__(
        self,
        root_op_name: str,
        preceding_op_name: str | None,
        following_op_name: str | None,
        include_gpu_kernels: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
        stack_depths: Iterable[int] | None = None,
    ) -> None:
        self.root_op_name = root_op_name
        self.preceding_op_name, self.following_op_name = preceding_op_name, following_op_name
        self.include_gpu_kernels = include_gpu_kernels
        self.stack_depths = None if stack_depths is None else list(stack_depths)

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """Return the matching rows in order; none if there is no root operator."""
        kept = UnderOperatorFilter(self.root_op_name, 0)(FirstIterationFilter()(df, symbol_table))
        limits = (
            AfterOperatorFilter(self.preceding_op_name or "", -1),
            BeforeOperatorFilter(self.following_op_name or "", 0),
        )
        for limit in limits:
            if len(kept) and limit.op_name in set(kept[_names_of(kept, None)]):
                kept = limit(kept)
        if self.stack_depths is not None:
            kept = kept[np.isin(_depths(kept), self.stack_depths)]
        return _with_launched(df, df["index"].isin(kept["index"])) if self.include_gpu_kernels else kept


def get_matching_kernels(df_ops: pd.DataFrame, df_both: pd.DataFrame, cat_column: str) -> pd.DataFrame:
    """Return the device rows of `df_both` that were launched by runtime and driver calls in `df_ops`.

    Args:
        df_ops: host events.
        df_both: host and device events.
        cat_column: the column of `df_ops` that contains the categories as text, such as `s_cat`.
    """
    is_call = df_ops[cat_column].astype(str).str.endswith(("_runtime", "_driver"))
    return df_both[_is_launched_by(df_both, df_ops.loc[is_call, "index"])]


def _names_of(df: pd.DataFrame, name_column: str | None) -> str:
    candidates = [name_column] if name_column else [name for name in _NAME_COLUMNS if name in df.columns]
    texts = [name for name in candidates if name in df.columns and not pd.api.types.is_numeric_dtype(df[name])]
    if not texts:
        message = "the frame has no text column of names: call decode_symbol_ids() first, or pass name_column"
        raise InvalidOptionError(message)
    return texts[0]


def _same_thread(df: pd.DataFrame, operator: pd.Series) -> pd.Series:
    columns = [name for name in ("rank", "pid", "tid", "stream") if name in df.columns]
    return pd.Series(np.logical_and.reduce([df[name] == operator[name] for name in columns]), index=df.index)


def _placed(df: pd.DataFrame, operator: pd.Series, method: OperatorFilterMethod) -> pd.Series:
    start, end = df["ts"], df["ts"] + df["dur"]
    first, last = operator["ts"], operator["ts"] + operator["dur"]
    is_under, is_around = (start >= first) & (end <= last), (start <= first) & (end >= last)
    placed: dict[OperatorFilterMethod, pd.Series] = {
        OperatorFilterMethod.Under: is_under,
        OperatorFilterMethod.After: start >= last,
        OperatorFilterMethod.Before: end <= first,
        OperatorFilterMethod.Ancestors: is_around & (df["index"] != operator["index"]),
        OperatorFilterMethod.Stack: is_under | is_around,
    }
    return placed[method]


def _with_launched(df: pd.DataFrame, is_kept: pd.Series) -> pd.DataFrame:
    return df[is_kept | _is_launched_by(df, df.loc[is_kept, "index"])]


def _is_launched_by(df: pd.DataFrame, calls: pd.Series) -> pd.Series:
    is_launched: pd.Series = (df["stream"] >= 0) & df["index_correlation"].isin(calls)
    return is_launched


def _depths(df: pd.DataFrame) -> np.ndarray[Any, Any]:
    if "depth" in df.columns:
        return df["depth"].to_numpy()
    threads = df.groupby(["pid", "tid", "stream"], sort=False).ngroup().to_numpy()
    start, end = (_nanoseconds(times) for times in (df["ts"], df["ts"] + df["dur"]))
    return nesting(threads, start, end).depth


def _nanoseconds(times: pd.Series) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.round(times.to_numpy() * _NS_OF_A_MICROSECOND).astype(np.int64)
