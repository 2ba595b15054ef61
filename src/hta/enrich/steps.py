"""The training steps of a rank: `ProfilerStep#N` ranges on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from hta.enrich.event_ranges import event_ranges
from hta.enrich.launches import launches
from hta.schema import EventKind

if TYPE_CHECKING:
    from hta.store.trace import RankTrace

_STEP_NAME = r"^ProfilerStep\s*#\s*(\d+)"

_STEP_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
"""Host ranges only: the profiler repeats steps on the device (GPU_USER_ANNOTATION), where they begin and end later."""


def steps(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the steps that the host announced; use with `rank_trace.derive`.

    Returns:
        One row for each range, so several for a step that several threads announce; sorted by start_ns:

        step      int64   the N of ProfilerStep#N
        start_ns  int64
        end_ns    int64
        track_id  uint32  process and thread, a row of `tracks`
    """
    numbers = _step_numbers(rank_trace)
    ranges = event_ranges(rank_trace, _STEP_KINDS, ["name", "start_ns", "end_ns", "track_id"])
    named = ranges.join(numbers, on="name")
    return named.select("step", "start_ns", "end_ns", "track_id").sort("start_ns", "step", "track_id")


def before_last_step(rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
    """Say of each event whether it belongs before the last step; a selection for `Trace.where`.

    The last step is often cut short, or the profiler itself slows it down. The last step is the one that begins last;
    with fewer than two distinct steps every event is kept. Host events are kept when they begin before the last step
    does. Device work follows the call that launched it, so that it counts for the step that asked for it; device
    rows without a known launch are kept when they begin before the last step does.
    """
    start_ns = rank_trace.table("events", ["start_ns"])["start_ns"].to_numpy()
    boundary = _start_of_last_step(rank_trace.derive(steps))
    if boundary is None:
        return np.ones(len(start_ns), np.bool_)
    return _with_launch_starts(rank_trace, start_ns) < boundary


def _start_of_last_step(known: pl.DataFrame) -> int | None:
    """Return when the first thread begins the step that begins last; None unless a step comes before it."""
    starts = known.group_by("step").agg(pl.col("start_ns").min(), pl.col("start_ns").max().alias("latest_ns"))
    *earlier, last = starts.sort("latest_ns", "step")["start_ns"].to_list() or [None]
    return last if earlier else None


def _with_launch_starts(rank_trace: RankTrace, start_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the start of every event, on launched device rows that of the launch."""
    launched = rank_trace.derive(launches).drop_nulls("launch_start_ns")
    event_index = rank_trace.table("events", ["event_index"])["event_index"].to_numpy()
    row_of = np.zeros(int(event_index.max(initial=0)) + 1, np.int64)
    row_of[event_index] = np.arange(len(event_index))
    starts = start_ns.copy()
    starts[row_of[launched["event_index"].to_numpy()]] = launched["launch_start_ns"].to_numpy()
    return starts


def _step_numbers(rank_trace: RankTrace) -> pl.DataFrame:
    """Return string id and number of every name of a step."""
    texts = rank_trace.strings
    ids = texts.str.starts_with("ProfilerStep").arg_true().cast(pl.UInt32)
    numbers = rank_trace.texts(ids).str.extract(_STEP_NAME).cast(pl.Int64, strict=False)
    return pl.DataFrame({"name": ids, "step": numbers}).drop_nulls()
