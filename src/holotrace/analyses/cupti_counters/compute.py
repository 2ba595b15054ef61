"""What did hardware counters measure for each kernel, and which operator launched it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.job.findings import joined_findings
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

FLOP_OF_COUNTER = {
    f"smsp__sass_thread_inst_executed_op_{precision}{operation}_pred_on.sum": 2.0 if operation == "fma" else 1.0
    for precision in ("f", "h", "d")
    for operation in ("fma", "mul", "add")
}
"""Operations per count. A count is one instruction executed by one thread; a fused multiply-add counts as 2
operations."""

_LAUNCH_NAME = r"(?i)launch.*kernel|graphlaunch"
_PER_KERNEL: dict[str, pl.DataType | type[pl.DataType]] = {
    "rank": pl.Int32,
    "event_index": pl.UInt32,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "name": pl.String,
    "flop": pl.Float64,
    "launch_index": pl.UInt32,
    "operator_stack": pl.List(pl.String),
    "top_operator": pl.String,
    "operator": pl.String,
}
_COUNTERS = {"rank": pl.Int32, "event_index": pl.UInt32, "counter": pl.String, "value": pl.Float64}
_IDENTITIES = ("correlation", "External id", "external id", "device", "stream", "context")
"""Numbers that identify the measured kernel; the reader stores them like counters."""


@dataclass(frozen=True, eq=False, repr=False)
class CuptiCounters(Result):
    """The measurements of CUPTI's range profiler, with the operators that launched the measured kernels.

    per_kernel  one row per measured range, sorted by rank and start:

        rank            int32
        event_index     uint32
        start_ns, duration_ns  int64      as recorded; measured kernels run one at a time, and slower than usual
        name            str        name of the kernel or range, as recorded
        flop            float64    floating-point operations; null if their counters were not measured
        launch_index    uint32     event_index of the call that launched the kernel; null if unknown
        operator_stack  list[str]  operators around that call, outermost first
        top_operator    str        outermost operator around that call; null if there is none
        operator        str        innermost operator around that call; null if there is none

    counters    one row per measured value, sorted by rank and range:

        rank int32, event_index uint32, counter str, value float64

    findings    ranks without counters, and ranks with ranges whose launch is unknown

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> ffma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    >>> place = {"ph": "X", "cat": "cuda_profiler_range", "pid": 0, "tid": 0}
    >>> trace = TraceBuilder().event(name="gemm", ts=0, dur=5, args={ffma: 10}, **place).build()
    >>> holotrace.cupti_counters(trace).answer
    '1 kernel was measured; gemm does the most work, 20 FLOP.'
    """

    per_kernel: pl.DataFrame
    counters: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_kernel: pl.DataFrame
    counters: pl.DataFrame


def cupti_counters(trace: Trace, *, executor: Executor = IN_PROCESS) -> CuptiCounters:
    """Join the range profiler's measurements with the kernels' launches and the operators around the launches.

    Each rank uses only the first of these rules that finds a launch for at least one range:

    1. A range belongs to the launch that has the same correlation number.
    2. If a kernel has as many launches as ranges, its n-th range belongs to its n-th launch.
    3. If there are as many launches as ranges, the n-th range belongs to the n-th launch. This helps if the names of
       the launched kernels were not recorded.

    A range for which no launch is found keeps its counter values but is not attributed to any operator.

    Args:
        trace: the job.
        executor: processes each rank.

    Source: docs/reference/analyses/cupti_counters.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> ffma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    >>> place = {"ph": "X", "cat": "cuda_profiler_range", "pid": 0, "tid": 0}
    >>> trace = TraceBuilder().event(name="gemm", ts=0, dur=5, args={ffma: 10}, **place).build()
    >>> holotrace.cupti_counters(trace).per_kernel.select("name", "flop").rows()
    [('gemm', 20.0)]
    """
    return plan().run(trace, executor)


def plan() -> Plan[_Partial, CuptiCounters]:
    """Return the two functions of `cupti_counters`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(_one_rank, _combine)


def _one_rank(rank_trace: RankTrace) -> _Partial:
    ranges = _ranges(rank_trace)
    numbers = _numbers(rank_trace, ranges)
    values = numbers.filter(~pl.col("counter").is_in(_IDENTITIES))
    ranges = ranges.join(_correlations(numbers), on="event_index", how="left", maintain_order="left")
    launched = ranges.with_columns(_launches_of(rank_trace, ranges))
    measured = launched.join(_flop(values), on="event_index", how="left", maintain_order="left")
    stacked = measured.hstack(_operators(rank_trace, measured["launch_index"]))
    rank = pl.lit(rank_trace.rank, pl.Int32).alias("rank")
    return _Partial(
        stacked.with_columns(rank).select(pl.col(name).cast(kind) for name, kind in _PER_KERNEL.items()),
        values.with_columns(rank).select(pl.col(name).cast(kind) for name, kind in _COUNTERS.items()),
    )


def _ranges(rank_trace: RankTrace) -> pl.DataFrame:
    columns = ["event_index", "start_ns", "duration_ns", "name"]
    ranges = rank_trace.events_of([EventKind.PROFILER_RANGE], columns)
    return ranges.with_columns(rank_trace.texts(ranges["name"])).sort("start_ns", "event_index")


def _correlations(numbers: pl.DataFrame) -> pl.DataFrame:
    """Return the correlation number of each range that has one."""
    correlations = numbers.filter(pl.col("counter") == "correlation").unique(
        "event_index", keep="first", maintain_order=True
    )
    return correlations.select("event_index", pl.col("value").cast(pl.Int64).alias("correlation"))


def _numbers(rank_trace: RankTrace, ranges: pl.DataFrame) -> pl.DataFrame:
    values = rank_trace.table("counters", ["event_index", "key", "value"])
    of_ranges = ranges.select("event_index").join(values, on="event_index", maintain_order="left_right")
    return of_ranges.with_columns(rank_trace.texts(of_ranges["key"]).alias("counter"))


def _flop(values: pl.DataFrame) -> pl.DataFrame:
    """Return the floating-point operations of each range that has a counter for them."""
    weights = pl.DataFrame({"counter": list(FLOP_OF_COUNTER), "weight": list(FLOP_OF_COUNTER.values())})
    counted = values.join(weights, on="counter")
    return counted.group_by("event_index").agg((pl.col("value") * pl.col("weight")).sum().alias("flop"))


def _launches_of(rank_trace: RankTrace, ranges: pl.DataFrame) -> pl.Series:
    """Return the event_index of the launch of each range; null if unknown."""
    if ranges.is_empty():
        return pl.Series("launch_index", [], pl.UInt32)
    calls = _calls(rank_trace)
    by_correlation = calls.filter(pl.col("correlation") > 0).unique("correlation", keep="first", maintain_order=True)
    launch_index = ranges.join(by_correlation, on="correlation", how="left", maintain_order="left")["launch_index"]
    if launch_index.null_count() == len(ranges):
        launch_index = _by_name(rank_trace, ranges)
    if launch_index.null_count() == len(ranges) and len(calls) == len(ranges):
        launch_index = calls["launch_index"]
    return launch_index


def _calls(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls that launch kernels, sorted by start; driver calls inside runtime calls are left out."""
    calls = rank_trace.events_of(LAUNCH_KINDS, ["event_index", "start_ns", "name", "correlation"])
    named = calls.with_columns(rank_trace.texts(calls["name"]))
    ordered = named.filter(pl.col("name").str.contains(_LAUNCH_NAME)).sort("start_ns", "event_index")
    is_first = pl.col("correlation").is_first_distinct() | (pl.col("correlation").fill_null(0) <= 0)
    return ordered.filter(is_first).select(pl.col("event_index").alias("launch_index"), "correlation")


def _by_name(rank_trace: RankTrace, ranges: pl.DataFrame) -> pl.Series:
    """Return, for the n-th range of each kernel, the n-th launch of that kernel.

    Null if the kernel's number of launches differs from its number of ranges.
    """
    kernels = _launched_kernels(rank_trace)
    number, count = pl.int_range(pl.len()).over("name").alias("number"), pl.len().over("name").alias("count")
    numbered = kernels.with_columns(number, count)
    return ranges.with_columns(number, count).join(
        numbered, on=["name", "number", "count"], how="left", maintain_order="left"
    )["launch_index"]


def _launched_kernels(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the launches for which the kernel's name is known, sorted by start."""
    kernels = rank_trace.events_of([EventKind.KERNEL], ["event_index", "name"])
    by_kernel = kernels.join(launches(rank_trace), on="event_index").drop_nulls("launch_index")
    named = rank_trace.table("runtime_calls", ["event_index", "launched_kernel"]).drop_nulls("launched_kernel")
    calls = rank_trace.events_of(LAUNCH_KINDS, ["event_index", "start_ns"]).join(named, on="event_index")
    rows = [
        by_kernel.select("name", "launch_index", "launch_start_ns"),
        calls.select(
            pl.col("launched_kernel").alias("name"),
            pl.col("event_index").alias("launch_index"),
            pl.col("start_ns").alias("launch_start_ns"),
        ),
    ]
    launched = pl.concat(rows).unique("launch_index", keep="first", maintain_order=True)
    return launched.with_columns(rank_trace.texts(launched["name"])).sort("launch_start_ns", "launch_index")


def _operators(rank_trace: RankTrace, launch_index: pl.Series) -> pl.DataFrame:
    """Return `operator_stack`, `top_operator` and `operator` of each launch."""
    stacks = call_stacks(rank_trace) if len(launch_index) else pl.DataFrame(schema=_STACK_SCHEMA)
    parents, names = stacks["parent_row"].to_numpy(), stacks["name"]
    is_operator = (stacks["kind"] == EventKind.CPU_OP).to_numpy()
    rows = rows_of_events(stacks, launch_index)
    levels = []
    while (rows >= 0).any():
        known = np.where((rows >= 0) & is_operator[rows], rows, -1)
        levels.append(rank_trace.texts(gathered(names, known)))
        rows = np.where(rows >= 0, parents[rows], -1)
    return pl.DataFrame({"operator_stack": _outermost_first(levels, len(launch_index))}).with_columns(
        pl.col("operator_stack").list.first().alias("top_operator"),
        pl.col("operator_stack").list.last().alias("operator"),
    )


_STACK_SCHEMA = {"event_index": pl.UInt32, "parent_row": pl.Int64, "name": pl.UInt32, "kind": pl.UInt8}


def _outermost_first(levels: list[pl.Series], count: int) -> pl.Series:
    """Return each launch's names as a list, outermost first and without nulls; `levels` starts with the innermost."""
    if not levels:
        return pl.Series([[]] * count, dtype=pl.List(pl.String))
    table = pl.DataFrame({str(level): names for level, names in enumerate(reversed(levels))})
    return table.select(pl.concat_list(pl.all()).list.drop_nulls()).to_series()


def _combine(partials: dict[int, _Partial]) -> CuptiCounters:
    per_kernel = pl.concat([partial.per_kernel for partial in partials.values()])
    counters = pl.concat([partial.counters for partial in partials.values()])
    return CuptiCounters(per_kernel, counters, joined_findings({rank: _findings(of) for rank, of in partials.items()}))


def _findings(rank: _Partial) -> tuple[str, ...]:
    if rank.per_kernel.is_empty():
        option = "experimental_config=_ExperimentalConfig(profiler_metrics=[...])"
        return (f"no CUPTI counters were recorded; record with {option}",)
    if rank.per_kernel["launch_index"].null_count():
        return ("the launches of some ranges are unknown, so their operators are unknown, too",)
    return ()
