"""Launch calls and the device work that they started, with HTA's columns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pandas as pd
import polars as pl

from holotrace.analyses.launch_statistics.compute import in_order_of_calls, launch_statistics, launched_calls
from holotrace.enrich.device.device_work import device_work, no_device_work
from holotrace.errors import MissingDataError
from holotrace.figures import plot_launch_statistics
from holotrace.schema import KernelKind
from holotrace.store.trace import RankTrace, Trace
from hta.facade.results.show import show
from hta.facade.results.times import microseconds
from hta.facade.trace.names import shared_texts

_COLUMNS = {
    "correlation": "int64",
    "cpu_duration": "float64",
    "gpu_duration": "float64",
    "launch_delay": "float64",
    "kernel": "object",
    "operator": "object",
    "stream": "int64",
    "rank": "int64",
    "launch": "object",
}


def launch_frames(  # noqa: PLR0913 -- HTA's arguments
    trace: Trace,
    ranks: Iterable[int] | None,
    *,
    runtime_cutoff: float,
    launch_delay_cutoff: float,
    include_memory_events: bool,
    visualize: bool,
) -> dict[int, pd.DataFrame]:
    """Return a frame for each rank, with one row for each device event whose launch call is known.

    The cutoffs, in microseconds, only affect the figure.
    """
    chosen = trace.select(None if ranks is None else list(ranks))
    frame_of = partial(_of_rank, include_memory_events=include_memory_events)
    try:
        if visualize:
            _show(chosen, runtime_cutoff, launch_delay_cutoff)
        _expect_device_work(chosen)
    except MissingDataError as error:
        return {rank: _empty(str(error)) for rank in chosen.ranks}
    return {rank: frame_of(rank_trace) for rank, rank_trace in chosen.ranks.items()}


def _expect_device_work(trace: Trace) -> None:
    """Raise MissingDataError if no rank has device work."""
    ranks = trace.ranks.values()
    if ranks and all(device_work(rank_trace).is_empty() for rank_trace in ranks):
        raise no_device_work(next(iter(ranks)), "launch_statistics")


def _show(trace: Trace, runtime_cutoff: float, launch_delay_cutoff: float) -> None:
    runtime_ns, delay_ns = round(1_000 * runtime_cutoff), round(1_000 * launch_delay_cutoff)
    show(plot_launch_statistics(launch_statistics(trace, runtime_cutoff_ns=runtime_ns, delay_cutoff_ns=delay_ns)))


def _of_rank(rank_trace: RankTrace, *, include_memory_events: bool) -> pd.DataFrame:
    launched = in_order_of_calls(rank_trace, launched_calls(rank_trace))
    chosen = launched if include_memory_events else launched.filter(pl.col("kernel_kind") != KernelKind.MEMORY)
    return _frame(rank_trace, chosen) if len(chosen) else _empty(_unrecorded(rank_trace.rank))


def _frame(rank_trace: RankTrace, launched: pl.DataFrame) -> pd.DataFrame:
    names = (launched[column] for column in ("name", "operator_name", "launch_name"))
    kernel, operator, call = (shared_texts(rank_trace.strings, ids) for ids in names)
    values = (
        launched["correlation"].to_numpy(),
        microseconds(launched["call_ns"]),
        microseconds(launched["kernel_ns"]),
        microseconds(launched["launch_delay_ns"].clip(lower_bound=0)),
        kernel,
        operator,
        launched["stream"].to_numpy(),
        np.full(len(launched), rank_trace.rank, np.int64),
        call,
    )
    # Without explicit types, pandas would infer them, which takes longer than the rest of this function.
    columns = {
        name: pd.Series(column, dtype=column.dtype, copy=False) for name, column in zip(_COLUMNS, values, strict=True)
    }
    return pd.DataFrame(columns, copy=False)


def _unrecorded(rank: int) -> str:
    return f"the launches of rank {rank} were not recorded"


def _empty(reason: str) -> pd.DataFrame:
    frame = pd.DataFrame({column: pd.Series(dtype=kind) for column, kind in _COLUMNS.items()})
    frame.attrs["reason"] = reason
    return frame
