"""Finds first calls, which take long because they create the device's context, or load libraries and kernels."""

from __future__ import annotations

import polars as pl

from holotrace.algorithms.intervals import Intervals, covered_before, union_of
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.steps.steps import steps, window_of, windows
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_LONG_NS = 1_000_000
"""Runtime calls usually take microseconds. In the traces of examples/gpu, the only calls that take this long while the
devices are idle are waits."""

_MOST_BUSY = 0.5
"""If the devices are busy for more than this fraction of a call, the call may be waiting because
the launch queue is full."""

_RUNTIMES = r"^(cuda|cu[A-Z]|hip|ze[A-Z])"
_WAITS = r"(?i)synchroni[sz]e|memcpy|copy|wait"
_ALLOCATES = r"(?i)malloc|free|mem_?(alloc|create|map|unmap|release)"
_EMPTY = r"^aten::empty(_strided|_like)?$"
"""Matches operators that only allocate memory. The call that initialises the device may run inside such an operator,
but old recordings omit this call."""

_FEW = 2
_COLUMNS = ("event_index", "name", "start_ns", "end_ns")


@derived
def first_calls(rank_trace: RankTrace) -> pl.DataFrame:
    """Return calls that do not repeat and that take at least 1 ms while the devices are mostly idle.

    They are runtime calls that neither wait nor copy, and operators that only allocate memory.

    In a recording with steps, runtime calls that allocate or free memory are ignored, because they may repeat only
    every few steps. If more than half of the steps contain the start of a remaining long call, no call is returned.

    In a recording without steps, calls with the same name are left out if at least two of them are long, and more than
    half of them are long.

    Returns:
        Sorted by start_ns; if calls are nested, only the innermost one is returned:

        event_index  uint32
        name         uint32  string id
        start_ns     int64
        end_ns       int64
    """
    ranges = event_ranges(rank_trace, (EventKind.CPU_OP, *LAUNCH_KINDS), ["kind", *_COLUMNS])
    calls = ranges.filter(_may_be_first(rank_trace))
    long = _while_idle(rank_trace, calls.filter(pl.col("end_ns") - pl.col("start_ns") >= _LONG_NS))
    first = _not_repeated(rank_trace, long, calls).sort("start_ns", "event_index")
    is_innermost = (pl.col("start_ns").shift(-1) >= pl.col("end_ns")).fill_null(value=True)
    return first.filter(is_innermost).select(_COLUMNS)


def _may_be_first(rank_trace: RankTrace) -> pl.Expr:
    """Select the runtime calls that neither wait nor copy, and the operators that only allocate memory."""
    runtimes, waits, empty = (names_matching(rank_trace, pattern).implode() for pattern in (_RUNTIMES, _WAITS, _EMPTY))
    is_call = pl.col("kind").is_in([int(kind) for kind in LAUNCH_KINDS])
    of_runtime = is_call & pl.col("name").is_in(runtimes) & ~pl.col("name").is_in(waits)
    if not steps(rank_trace).is_empty():
        of_runtime &= ~pl.col("name").is_in(names_matching(rank_trace, _ALLOCATES).implode())
    return of_runtime | (~is_call & pl.col("name").is_in(empty))


def _while_idle(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.DataFrame:
    """Return the calls during which the devices are mostly idle; return none if no device work was recorded."""
    work: Intervals = union_of(device_rows(rank_trace))
    if not len(work[0]):
        return calls.clear()
    busy_ns = covered_before(work, calls["end_ns"].to_numpy()) - covered_before(work, calls["start_ns"].to_numpy())
    return calls.filter(pl.Series(busy_ns) <= _MOST_BUSY * (pl.col("end_ns") - pl.col("start_ns")))


def _not_repeated(rank_trace: RankTrace, long: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    announced = windows(rank_trace)
    if len(announced) >= _FEW and not steps(rank_trace).is_empty():
        touched = window_of(announced, long["start_ns"]).drop_nulls().n_unique()
        return long.clear() if 2 * touched > len(announced) else long
    count = calls.group_by("name").agg(pl.len().alias("count"))
    counted = long.join(count, on="name", how="left", maintain_order="left").with_columns(
        pl.len().over("name").alias("long")
    )
    return counted.filter((pl.col("long") < _FEW) | (2 * pl.col("long") <= pl.col("count")))
