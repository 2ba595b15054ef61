"""Which kinds of work, and which kernels, take the device time?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from holotrace.algorithms.intervals import intervals_of, states
from holotrace.algorithms.summary import summary
from holotrace.enrich.device.device_work import by_device, device_work, no_device_work
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import KernelKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

_PER_STATE = pl.Schema(
    {
        "rank": pl.Int32(),
        "device": pl.Int32(),
        "state": pl.String(),
        "total_ns": pl.Int64(),
        "fraction": pl.Float64(),
    }
)
_KIND_NAMES = [kind.name.lower() for kind in KernelKind]
_STATE_NAMES = [
    " + ".join(name for bit, name in enumerate(_KIND_NAMES) if mask >> bit & 1) for mask in range(1 << len(KernelKind))
]


@dataclass(frozen=True, eq=False, repr=False)
class KernelBreakdown(Result):
    """The work that ran on the devices, by kind and by name.

    per_state   time in which kinds of work ran, alone or together; one row per combination that occurs, sorted by rank and
                device, the longest first:

        rank         int32
        device       int32
        state        str      computation, communication, memory, other, or several joined by " + "
        total_ns     int64    time in which exactly these kinds ran; summed over states, this is the device's busy time
        fraction     float64  0..1 of the device's busy time

    per_kernel  statistics of the calls of each kernel; one row per rank, kind and name, sorted by rank, the
                largest total_ns first:

        rank         int32
        kernel_kind  str      computation, communication, memory or other
        name         str      as recorded
        call_count   int64
        total_ns     int64    sum of the durations of all calls, even if calls overlap
        mean_ns      float64
        std_ns       float64  sample standard deviation; 0 for a single call
        min_ns       int64
        median_ns    float64
        max_ns       int64
        fraction     float64  0..1 of the rank's summed kernel time; null if this sum is 0

    findings    one sentence per rank without device work

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.kernel_breakdown(small_job()).answer
    '64.3 % of the kernel time is computation; the longest kernel is gemm (57.1 %).'
    """

    per_state: pl.DataFrame
    per_kernel: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_state: pl.DataFrame
    per_kernel: pl.DataFrame


def kernel_breakdown(trace: Trace, *, executor: Executor = IN_PROCESS) -> KernelBreakdown:
    """Measure how long each combination of kinds of work ran, and how long each kernel ran.

    The state of a device at a given time is the set of kinds of work that run on it, on any stream.

    Raises:
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/kernel_breakdown.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.kernel_breakdown(small_job()).per_kernel.select("rank", "kernel_kind", "name", "total_ns").head(2).rows()
    [(0, 'communication', 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', 600000), (0, 'computation', 'gemm', 600000)]
    """
    return plan().run(trace, executor)


def plan() -> Plan[_Partial, KernelBreakdown]:
    """Return the two functions of `kernel_breakdown`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(_one_rank, _combine)


def _one_rank(rank_trace: RankTrace) -> _Partial:
    work = device_work(rank_trace)
    if work.is_empty():
        raise no_device_work(rank_trace, "kernel_breakdown")
    per_device = [_states(rank_trace.rank, device, part) for device, part in by_device(work)]
    return _Partial(pl.concat(per_device), _kernels(rank_trace, work))


def _states(rank: int, device: int, work: pl.DataFrame) -> pl.DataFrame:
    durations = states([intervals_of(work.filter(pl.col("kernel_kind") == kind)) for kind in KernelKind])[1:]
    table = pl.DataFrame({"state": _STATE_NAMES[1:], "total_ns": durations}).filter(pl.col("total_ns") > 0)
    return table.sort("total_ns", descending=True, maintain_order=True).select(
        pl.lit(rank, pl.Int32).alias("rank"),
        pl.lit(device, pl.Int32).alias("device"),
        "state",
        "total_ns",
        (pl.col("total_ns") / pl.col("total_ns").sum()).alias("fraction"),
    )


def _kernels(rank_trace: RankTrace, work: pl.DataFrame) -> pl.DataFrame:
    calls = work.select("kernel_kind", "name", duration=pl.col("end_ns") - pl.col("start_ns"))
    statistics = summary(calls, by=["kernel_kind", "name"], value="duration")
    total = pl.col("sum").sum()
    return statistics.with_columns(rank_trace.texts(statistics["name"])).select(
        pl.lit(rank_trace.rank, pl.Int32).alias("rank"),
        pl.col("kernel_kind").replace_strict(dict(enumerate(_KIND_NAMES)), return_dtype=pl.String),
        "name",
        pl.col("count").alias("call_count"),
        pl.col("sum").alias("total_ns"),
        pl.col("mean").alias("mean_ns"),
        pl.col("std").alias("std_ns"),
        pl.col("min").alias("min_ns"),
        pl.col("median").alias("median_ns"),
        pl.col("max").alias("max_ns"),
        pl.when(total > 0).then(pl.col("sum") / total).alias("fraction"),
    )


def _combine(partials: dict[int, _Partial]) -> KernelBreakdown:
    per_kernel = pl.concat([partial.per_kernel for partial in partials.values()])
    return KernelBreakdown(
        pl.concat([partial.per_state for partial in partials.values()]),
        per_kernel.sort("rank", "total_ns", "kernel_kind", "name", descending=[False, True, False, False]),
    )
