"""Find steps in which the profiler's own work takes time, or in which the profiler starts or stops."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from holotrace.algorithms.intervals import covered_before
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.steps.steps import steps
from holotrace.enrich.trust.doubts import Doubt, listed, times_of
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace
from holotrace.units import counted, duration_text, percent_text

LARGEST_OVERHEAD = 0.05
"""A step is reported if the profiler's own work takes more than this fraction of the step's time."""

_START = "Iteration Start"
_END = "Record Window End"
"""Name prefixes of the instant events that Kineto writes at the start and end of the recording."""


def profiler_overhead(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about steps in which the profiler's own work takes more than 5 % of the time.

    An example of such work is a request for buffers.

    Source: https://docs.nvidia.com/cupti/api/structCUpti__ActivityOverhead3.html; Kineto writes these records.
    """
    rows = event_ranges(rank_trace, [EventKind.OVERHEAD], ["event_index", "start_ns", "end_ns"])
    whole = _steps(rank_trace) if len(rows) else pl.DataFrame()
    if whole.is_empty():
        return
    overhead = times_of(rows)
    taken = covered_before(overhead, whole["end_ns"].to_numpy()) - covered_before(
        overhead, whole["start_ns"].to_numpy()
    )
    slowed = whole.with_columns(pl.Series("taken_ns", taken)).filter(
        pl.col("taken_ns") > LARGEST_OVERHEAD * (pl.col("end_ns") - pl.col("start_ns"))
    )
    if slowed.is_empty():
        return
    inside = rows.join_where(
        slowed.select("start_ns", "end_ns").rename({"start_ns": "from_ns", "end_ns": "to_ns"}),
        pl.col("start_ns") < pl.col("to_ns"),
        pl.col("end_ns") > pl.col("from_ns"),
    ).sort("start_ns")
    clipped = inside.with_columns(
        pl.max_horizontal("start_ns", "from_ns").alias("start_ns"), pl.min_horizontal("end_ns", "to_ns").alias("end_ns")
    )
    taken_ns = int(slowed["taken_ns"].sum())
    share = taken_ns / int((slowed["end_ns"] - slowed["start_ns"]).sum())
    yield Doubt(
        "profiler_overhead",
        f"The profiler itself takes {duration_text(taken_ns)} ({percent_text(share)}) of {_steps_text(slowed)}; durations "
        "measured there include this work",
        count=len(slowed),
        event_index=clipped.item(0, "event_index"),
        times=times_of(clipped),
    )


def steps_with_profiler_start(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about steps in which the profiler starts or stops, because this can take seconds."""
    whole, marks = _steps(rank_trace), _marks(rank_trace)
    if whole.is_empty() or marks.is_empty():
        return
    touched = (
        whole.join_where(marks, pl.col("start_ns") < pl.col("moment_ns"), pl.col("end_ns") > pl.col("moment_ns"))
        .unique("step", keep="first")
        .sort("start_ns")
    )
    if touched.is_empty():
        return
    yield Doubt(
        "steps_with_profiler_start",
        f"The profiler starts or stops inside {_steps_text(touched)}: this can account for much of the measured time",
        count=len(touched),
        event_index=touched.item(0, "event_index"),
        times=times_of(touched),
    )


def _steps(rank_trace: RankTrace) -> pl.DataFrame:
    """Return start_ns and end_ns of each step, sorted by start."""
    bounds = pl.col("start_ns").min(), pl.col("end_ns").max()
    return steps(rank_trace).group_by("step").agg(*bounds).sort("start_ns")


def _marks(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the events that mark the start and the end of the recording, with `moment_ns`."""
    names = names_matching(rank_trace, f"^({_START}|{_END})")
    columns = ["event_index", "start_ns"]
    return event_ranges(rank_trace, [EventKind.INSTANT], columns, names=names).rename({"start_ns": "moment_ns"})


def _steps_text(chosen: pl.DataFrame) -> str:
    numbers = [f"{number}" for number in chosen["step"].to_list()]
    return f"step {numbers[0]}" if len(numbers) == 1 else f"{counted(len(numbers), 'step')} ({listed(numbers)})"
