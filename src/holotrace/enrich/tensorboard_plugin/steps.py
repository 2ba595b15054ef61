"""The steps of the TensorBoard plugin (torch_tb_profiler), quirks included; only for `compat="torch_tb_profiler"`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.steps.steps import extended_by_work
from holotrace.enrich.tensorboard_plugin.events import PluginType, plugin_events, plugin_launches
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_MOST_BUCKETS = 100


@derived
def plugin_steps(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the steps as the plugin showed them.

    Every range named ProfilerStep#N is a step, even if it is on a device stream. Without step ranges, step 0 lasts from
    the start of the first operator or Python range to the end of the last one. A step lasts until all work that it
    launched has ended; then the next step begins. Steps at the end that launched nothing are left out. The last step is
    also left out if it launched fewer than 80 % as many kernels, copies and memsets as the previous step.

    Returns:
        Sorted by start:

        window    int64  the N of ProfilerStep#N
        start_ns  int64
        end_ns    int64

        Empty if the trace has no steps, operators or Python ranges. For such a trace, the plugin showed one step with a
        length of -2**64 + 1.
    """
    events, launched = plugin_events(rank_trace), plugin_launches(rank_trace)
    host = _host_steps(events)
    row = _step_of_runtime(events, host).gather(launched["runtime_row"])
    return extended_by_work(host, events[launched["row"]].select("start_ns", "end_ns", row.alias("row")))


def bucket_edges(rank_trace: RankTrace) -> npt.NDArray[np.int64]:
    """Return the edges of a time series' buckets.

    All buckets have the same length (1 µs, 10 µs, 100 µs, …); only the last may be longer.
    """
    events = plugin_events(rank_trace)
    spans = events.filter(pl.col("type") == PluginType.TRACE)
    named = spans.filter(rank_trace.texts(spans["name"]) == "PyTorch Profiler (0)").tail(1)
    chosen = named if len(named) else events
    start, end = chosen.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    size = 1_000
    while end - start > _MOST_BUCKETS * size:
        size *= 10
    count = max(1, (end - start) // size)
    return np.append(start + size * np.arange(count), end)


def _host_steps(events: pl.DataFrame) -> pl.DataFrame:
    steps = events.filter(pl.col("type") == PluginType.STEP).select(window="step", start_ns="start_ns", end_ns="end_ns")
    if len(steps):
        return steps
    host = events.filter(pl.col("type").is_in([PluginType.OPERATOR, PluginType.PYTHON]))
    whole = host.select(pl.lit(0, pl.Int64).alias("window"), pl.col("start_ns").min(), pl.col("end_ns").max())
    return whole.drop_nulls()


def _step_of_runtime(events: pl.DataFrame, host: pl.DataFrame) -> pl.Series:
    """Return the row in `host` of the step that contains each runtime call; null for other events.

    Only the first step that ends after the call's start is considered, and only if the whole call is inside this step.
    """
    starts, ends = host["start_ns"].to_numpy(), host["end_ns"].to_numpy()
    step_rows = np.full(len(events), -1, np.int64)
    if len(host):
        rows = np.flatnonzero((events["type"] == PluginType.RUNTIME).to_numpy())
        call_start, call_end = events["start_ns"].to_numpy()[rows], events["end_ns"].to_numpy()[rows]
        step = np.searchsorted(np.maximum.accumulate(ends), call_start, side="right").clip(max=len(host) - 1)
        inside = (call_start >= starts[step]) & (call_end <= ends[step])
        step_rows[rows[inside]] = step[inside]
    return pl.Series(step_rows).replace(-1, None).cast(pl.UInt32)
