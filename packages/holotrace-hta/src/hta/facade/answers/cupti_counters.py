"""The hardware counters of kernels and the operators that launched them, with HTA's columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from holotrace.analyses.cupti_counters.compute import CuptiCounters, cupti_counters
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace
from hta.facade.trace.trace_frame import trace_frame
from hta.facade.trace.trace_view import TraceView

_OPERATORS = {"op_stack": "operator_stack", "top_level_op": "top_operator", "bottom_level_op": "operator"}
"""{HTA's column: our column}."""


def counters_with_operators(view: TraceView, ranks: Iterable[int] | None) -> list[pd.DataFrame]:
    """Return a frame for each rank that has counters; see `TraceAnalysis`."""
    trace = view.trace.select(None if ranks is None else list(ranks))
    result = cupti_counters(trace)
    measured = result.per_kernel["rank"].unique().to_list()
    return [_frame(view, rank_trace, result) for rank, rank_trace in trace.ranks.items() if rank in measured]


def _frame(view: TraceView, rank_trace: RankTrace, result: CuptiCounters) -> pd.DataFrame:
    kernels = result.per_kernel.filter(pl.col("rank") == rank_trace.rank)
    indexes = kernels["event_index"].to_list()
    frame = trace_frame(rank_trace.where(_is_range), view.symbol_table, view.frame_origin_ns(rank_trace.rank)).loc[
        indexes
    ]
    texts = view.symbol_table.get_sym_table()
    for column in ("cat", "name"):
        frame[column] = [texts[number] for number in frame[column]]
    counters = result.counters.filter(pl.col("rank") == rank_trace.rank)
    for name, values in _wide(counters, indexes).items():
        frame[name] = values
    frame["index_runtime"] = kernels["launch_index"].cast(pl.Int64).fill_null(-1).to_numpy()
    for column, ours in _OPERATORS.items():
        frame[column] = pd.Series(kernels[ours].to_list(), index=frame.index, dtype=object)
    return frame.fillna(dict.fromkeys(("top_level_op", "bottom_level_op"), "")).reset_index(drop=True)


def _is_range(rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
    kinds: npt.NDArray[np.uint8] = rank_trace.table("events", ["kind"])["kind"].to_numpy()
    return np.equal(kinds, EventKind.PROFILER_RANGE)


def _wide(counters: pl.DataFrame, indexes: list[int]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the values of each counter for the events in `indexes`, with NaN for events without the counter."""
    order = pl.DataFrame({"event_index": indexes}, schema={"event_index": pl.UInt32})
    columns = {}
    for (name,), part in counters.group_by("counter", maintain_order=True):
        values = order.join(part, on="event_index", how="left", maintain_order="left")["value"]
        columns[str(name)] = values.fill_null(np.nan).to_numpy()
    return columns
