"""How much time does launching device work cost?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.enrich.device.device_work import device_work, no_device_work
from holotrace.enrich.device.launches import launched_work, of_work
from holotrace.enrich.host.operators import launching_operator
from holotrace.enrich.job.findings import joined_findings
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import KernelKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

MEASURES = ("short_kernel", "slow_call", "late_start")
"""The kinds of costly launches: a kernel shorter than its launch, a slow call, a late start."""

_LENGTH = {"short_kernel": "kernel_ns", "slow_call": "call_ns", "late_start": "launch_delay_ns"}
_KIND_NAMES = {int(kind): kind.name.lower() for kind in KernelKind}
_OF_LAUNCH = (
    *("device", "stream", "correlation", "launch_name", "name", "kernel_kind"),
    *("launch_start_ns", "call_ns", "start_ns", "kernel_ns", "launch_delay_ns"),
)
_EDGES = np.array([0, *(first * 10**power for power in range(18) for first in (1, 2, 5))])
_PER_LAUNCH = {
    "rank": pl.Int32,
    "device": pl.Int32,
    "stream": pl.Int64,
    "correlation": pl.Int64,
    "call": pl.String,
    "kernel": pl.String,
    "kernel_kind": pl.String,
    "operator": pl.String,
    "launch_start_ns": pl.Int64,
    "call_ns": pl.Int64,
    "kernel_start_ns": pl.Int64,
    "kernel_ns": pl.Int64,
    "launch_delay_ns": pl.Int64,
}


@dataclass(frozen=True, eq=False, repr=False)
class LaunchStatistics(Result):
    """The cost of launches: statistics of the launch calls and of the device work that they launched.

    There are three kinds of costly launches. Options set the two cutoffs that define slow calls and late starts:

        short_kernel  the kernel is shorter than its call, and the call is not slow
        slow_call     the call takes longer than the runtime cutoff: the host waits inside the call, for example because a
                      queue is full
        late_start    the time from the end of the call to the start of the kernel exceeds the delay cutoff: the kernel waits,
                      usually for earlier work

    per_rank   one row per rank, sorted by rank:

        rank                    int32
        call_count              int64    calls that launched device work
        kernel_count            int64    kernels, copies and memsets with a known launch
        total_call_ns           int64    time in these calls; a call counts once, even if it launched several kernels
        mean_call_ns            float64  this column and the next two are null if there are no launches
        median_launch_delay_ns  float64  from the end of the call to the start of the work; negative if the work starts before
                                         the call ends
        max_launch_delay_ns     int64
        short_kernel_count      int64
        slow_call_count         int64    a call counts once, even if it launched several kernels
        late_start_count        int64
        unknown_launch_count    int64    kernels, copies and memsets without a known launch

    per_call   one row per rank and launching function, sorted by rank, the largest total_call_ns first; the columns of per_rank
               without `unknown_launch_count`, and with `call` (str) after `rank`

    lengths    a histogram for each kind of costly launches: kernel_ns of short kernels, call_ns of slow calls, and
               launch_delay_ns of late starts; bins begin at 0, 1, 2, 5, 10, 20 … ns; empty bins are left out:

        rank          int32
        measure       str    short_kernel, slow_call, late_start, in this order
        from_ns       int64  lower bound of the length, inclusive
        to_ns         int64  upper bound of the length, exclusive
        launch_count  int64

    per_launch one row per kernel, copy or memset with a known launch, sorted by rank and start of the call; filled only
               if the option `include_launches` is set:

        rank, device          int32
        stream, correlation   int64  -1 if not recorded
        call, kernel          str    names of the launch call and of the launched work
        kernel_kind           str
        operator              str    innermost operator around the call; null if there is none
        launch_start_ns, call_ns, kernel_start_ns, kernel_ns, launch_delay_ns
                              int64

    findings   ranks without device work, and work whose launch is unknown

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.launch_statistics(small_job()).answer
    '8 of 16 kernels start late; rank 1 has the longest median launch delay, 262 µs.'
    """

    per_rank: pl.DataFrame
    per_call: pl.DataFrame
    lengths: pl.DataFrame
    per_launch: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Cutoffs(NamedTuple):
    slow_call_ns: int
    late_start_ns: int


class _Partial(NamedTuple):
    per_rank: pl.DataFrame
    per_call: pl.DataFrame
    lengths: pl.DataFrame
    per_launch: pl.DataFrame
    findings: tuple[str, ...]


def launch_statistics(
    trace: Trace,
    *,
    runtime_cutoff_ns: int = 50_000,
    delay_cutoff_ns: int = 100_000,
    include_launches: bool = False,
    executor: Executor = IN_PROCESS,
) -> LaunchStatistics:
    """Link kernels, copies and memsets to the calls that launched them, and find costly launches.

    A runtime or driver call of CUDA, HIP, MTIA or XPU launches all work that has the same correlation
    number as the call: one kernel, or all kernels of a graph. Rows that record waits (`Stream Sync`,
    `Event Sync` …) do not count as work.

    Args:
        trace: the job.
        runtime_cutoff_ns: calls that take longer than this are slow.
        delay_cutoff_ns: work that starts more than this long after its call ends is a late start.
        include_launches: fill `per_launch`, which has a row for each kernel, copy and memset with a known launch.
        executor: processes each rank.

    Raises:
        InvalidOptionError: a cutoff is negative.
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/launch_statistics.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.launch_statistics(small_job()).per_call.select("rank", "call", "call_count", "kernel_count").rows()
    [(0, 'cudaLaunchKernel', 6, 6), (0, 'cudaMemcpyAsync', 2, 2), (1, 'cudaLaunchKernel', 6, 6), (1, 'cudaMemcpyAsync', 2, 2)]
    """
    return plan(
        runtime_cutoff_ns=runtime_cutoff_ns, delay_cutoff_ns=delay_cutoff_ns, include_launches=include_launches
    ).run(trace, executor)


def plan(
    *, runtime_cutoff_ns: int = 50_000, delay_cutoff_ns: int = 100_000, include_launches: bool = False
) -> Plan[_Partial, LaunchStatistics]:
    """Return the two functions of `launch_statistics`: one runs on each rank, the other combines the results of the ranks."""
    for name, cutoff in (("runtime_cutoff_ns", runtime_cutoff_ns), ("delay_cutoff_ns", delay_cutoff_ns)):
        if cutoff < 0:
            message = f"{name}={cutoff} is negative"
            raise InvalidOptionError(message)
    cutoffs = _Cutoffs(runtime_cutoff_ns, delay_cutoff_ns)
    one_rank = partial(_one_rank, cutoffs=cutoffs, include_launches=include_launches)
    return Plan(one_rank, _combine)


def _one_rank(rank_trace: RankTrace, *, cutoffs: _Cutoffs, include_launches: bool) -> _Partial:
    work = device_work(rank_trace)
    if work.is_empty():
        raise no_device_work(rank_trace, "launch_statistics")
    launched = _judged(launched_calls(rank_trace), cutoffs)
    rank = pl.lit(rank_trace.rank, pl.Int32).alias("rank")
    unknown_count = pl.lit(work.height - launched.height, pl.Int64).alias("unknown_launch_count")
    return _Partial(
        launched.select(*_statistics()).select(rank, pl.all(), unknown_count),
        _per_call(rank_trace, launched).select(rank, pl.all()),
        pl.concat([_lengths(launched, measure) for measure in MEASURES]).select(rank, pl.all()),
        _per_launch(rank_trace, launched).select(rank, pl.all())
        if include_launches
        else pl.DataFrame(schema=_PER_LAUNCH),
        _findings(work, launched),
    )


def launched_calls(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `launched_work` with a known launch; add call_ns, kernel_ns and launch_delay_ns (int64)."""
    launch_end_ns = pl.col("launch_end_ns")
    known = launched_work(rank_trace).drop_nulls("launch_index")
    return known.with_columns(
        call_ns=launch_end_ns - pl.col("launch_start_ns"),
        kernel_ns=pl.col("end_ns") - pl.col("start_ns"),
        launch_delay_ns=pl.col("start_ns") - launch_end_ns,
    )


def in_order_of_calls(rank_trace: RankTrace, launched: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of `launched_calls` that describe a launch, sorted by start of the call.

    The added column `operator_name` is the string id of the innermost operator around the call.
    """
    operators = of_work(launching_operator(rank_trace), launched)["operator_name"]
    # The sort is stable: the work of one call stays sorted by start, then by position in the file.
    order = np.lexsort((launched["launch_index"].to_numpy(), launched["launch_start_ns"].to_numpy()))
    return launched.select(*_OF_LAUNCH, operators)[order]


def _judged(launched: pl.DataFrame, cutoffs: _Cutoffs) -> pl.DataFrame:
    """Add a boolean column for each of the `MEASURES`, and `is_first`, which marks the first row of each call."""
    is_first, is_slow = pl.col("launch_index").is_first_distinct(), pl.col("call_ns") > cutoffs.slow_call_ns
    return launched.with_columns(
        is_first.alias("is_first"),
        (~is_slow & (pl.col("kernel_ns") < pl.col("call_ns"))).alias("short_kernel"),
        (is_slow & is_first).alias("slow_call"),
        (pl.col("launch_delay_ns") > cutoffs.late_start_ns).alias("late_start"),
    )


def _statistics() -> tuple[pl.Expr, ...]:
    call_ns, launch_delay_ns = pl.col("call_ns").filter("is_first"), pl.col("launch_delay_ns")
    return (
        pl.col("is_first").sum().cast(pl.Int64).alias("call_count"),
        pl.len().cast(pl.Int64).alias("kernel_count"),
        call_ns.sum().alias("total_call_ns"),
        call_ns.mean().alias("mean_call_ns"),
        launch_delay_ns.median().alias("median_launch_delay_ns"),
        launch_delay_ns.max().alias("max_launch_delay_ns"),
        *(pl.col(measure).sum().cast(pl.Int64).alias(f"{measure}_count") for measure in MEASURES),
    )


def _per_call(rank_trace: RankTrace, launched: pl.DataFrame) -> pl.DataFrame:
    table = launched.group_by(pl.col("launch_name").alias("call")).agg(_statistics())
    named = table.with_columns(rank_trace.texts(table["call"]))
    return named.sort("total_call_ns", "call", descending=[True, False])


def _lengths(launched: pl.DataFrame, measure: str) -> pl.DataFrame:
    """Return a histogram of the costly launches of one kind, over the values of the column that `_LENGTH` names."""
    lengths = launched.filter(measure)[_LENGTH[measure]].to_numpy()
    counts = np.bincount(np.searchsorted(_EDGES, lengths, side="right") - 1)[: len(_EDGES) - 1]
    filled = np.flatnonzero(counts)
    table = pl.DataFrame({"from_ns": _EDGES[filled], "to_ns": _EDGES[filled + 1], "launch_count": counts[filled]})
    return table.select(pl.lit(measure).alias("measure"), pl.all().cast(pl.Int64))


def _per_launch(rank_trace: RankTrace, launched: pl.DataFrame) -> pl.DataFrame:
    ordered = in_order_of_calls(rank_trace, launched)
    texts = [rank_trace.texts(ordered[column]) for column in ("launch_name", "name", "operator_name")]
    return ordered.with_columns(texts).select(
        "device",
        "stream",
        "correlation",
        pl.col("launch_name").alias("call"),
        pl.col("name").alias("kernel"),
        pl.col("kernel_kind").replace_strict(_KIND_NAMES, return_dtype=pl.String),
        pl.col("operator_name").alias("operator"),
        "launch_start_ns",
        "call_ns",
        pl.col("start_ns").alias("kernel_start_ns"),
        "kernel_ns",
        "launch_delay_ns",
    )


def _findings(work: pl.DataFrame, launched: pl.DataFrame) -> tuple[str, ...]:
    unknown_count = work.height - launched.height
    if not unknown_count:
        return ()
    return (f"the launch of {unknown_count:,} of {work.height:,} kernels, copies and memsets was not recorded",)


def _combine(partials: dict[int, _Partial]) -> LaunchStatistics:
    return LaunchStatistics(
        pl.concat([of_rank.per_rank for of_rank in partials.values()]),
        pl.concat([of_rank.per_call for of_rank in partials.values()]),
        pl.concat([of_rank.lengths for of_rank in partials.values()]),
        pl.concat([of_rank.per_launch for of_rank in partials.values()]),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )
