"""How did each device spend its time: computing, doing other work, or idling?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from holotrace.algorithms.intervals import Intervals, covered_length, intervals_of
from holotrace.enrich.device.device_work import by_device, device_work, no_device_work
from holotrace.enrich.device.graph_replays import unknown_findings, unknown_length, unknown_work
from holotrace.enrich.job.findings import joined_findings
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import KernelKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

_PER_DEVICE = pl.Schema(
    {
        "rank": pl.Int32(),
        "device": pl.Int32(),
        "window_ns": pl.Int64(),
        "computation_ns": pl.Int64(),
        "non_computation_ns": pl.Int64(),
        "idle_ns": pl.Int64(),
        "unknown_ns": pl.Int64(),
        "computation_fraction": pl.Float64(),
        "non_computation_fraction": pl.Float64(),
        "idle_fraction": pl.Float64(),
        "unknown_fraction": pl.Float64(),
        "start_ns": pl.Int64(),
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class TemporalBreakdown(Result):
    """How each device spent the time from its first to its last kernel or copy.

    per_device  one row per rank and device, sorted by rank and device:

        rank                      int32
        device                    int32
        window_ns                 int64    time from the start of the first device work to the end of the last
        computation_ns            int64    time in which at least one computation kernel runs
        non_computation_ns        int64    time in which work runs, but no computation kernel
        idle_ns                   int64    time in which no work runs
        unknown_ns                int64    time in which no recorded work runs, but unrecorded kernels of a graph replay may
                                           run; the four times add up to window_ns
        computation_fraction      float64  0..1 of the window; null if window_ns is 0
        non_computation_fraction  float64  0..1 of the window
        idle_fraction             float64  0..1 of the window
        unknown_fraction          float64  0..1 of the window
        start_ns                  int64    start of the window, ns since the Unix epoch

    findings    ranks without device work, and graph replays whose kernels were not recorded

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.temporal_breakdown(small_job()).answer
    'The devices compute 50.8 % of the time, do only other work for 28.2 %, and idle for 20.9 %.'
    """

    per_device: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_device: pl.DataFrame
    findings: tuple[str, ...]


def temporal_breakdown(trace: Trace, *, executor: Executor = IN_PROCESS) -> TemporalBreakdown:
    """Divide the time of each device into computation, other work and idle time.

    |x| is the length of the union of the intervals in x, over all streams of the device:

        window          = last end - first start
        unknown         = |graph replays without recorded kernels, outside all work|
        idle            = window - |all work| - unknown
        computation     = |computation|
        non_computation = |all work| - computation

    Raises:
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/temporal_breakdown.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.temporal_breakdown(small_job()).per_device.select("rank", "window_ns", "computation_ns", "idle_ns").rows()
    [(0, 1770000, 700000, 370000), (1, 1770000, 1100000, 370000)]
    """
    return plan().run(trace, executor)


def plan() -> Plan[_Partial, TemporalBreakdown]:
    """Return the two functions of `temporal_breakdown`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(_one_rank, _combine)


def _one_rank(rank_trace: RankTrace) -> _Partial:
    work = device_work(rank_trace)
    if work.is_empty():
        raise no_device_work(rank_trace, "temporal_breakdown")
    rows = [
        {"rank": rank_trace.rank, "device": device} | _one_device(part, unknown_work(rank_trace, device))
        for device, part in by_device(work)
    ]
    return _Partial(pl.DataFrame(rows, schema=_PER_DEVICE), unknown_findings(rank_trace))


def _one_device(work: pl.DataFrame, replays: Intervals) -> dict[str, Any]:
    starts, ends = intervals_of(work)
    start, window = int(starts.min()), int(ends.max() - starts.min())
    compute, busy = (
        covered_length(*intervals_of(work.filter(pl.col("kernel_kind") == KernelKind.COMPUTATION))),
        covered_length(starts, ends),
    )
    unknown = unknown_length(replays, (starts, ends))
    times = {
        "computation": compute,
        "non_computation": busy - compute,
        "idle": window - busy - unknown,
        "unknown": unknown,
    }
    return (
        {"window_ns": window, "start_ns": start}
        | {f"{name}_ns": length for name, length in times.items()}
        | {f"{name}_fraction": length / window if window else None for name, length in times.items()}
    )


def _combine(partials: dict[int, _Partial]) -> TemporalBreakdown:
    return TemporalBreakdown(
        pl.concat([of_rank.per_device for of_rank in partials.values()]),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )
