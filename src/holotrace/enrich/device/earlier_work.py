"""Finds times when devices probably still ran work from before the recording, although they seem idle."""

from __future__ import annotations

import polars as pl

from holotrace.algorithms.intervals import Intervals, difference, union, union_of
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import launches
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_SHORTEST_NS = 1_000_000
"""Waits that are shorter than this are ignored, because the stream may have waited for another stream or rank."""

_AT_THE_START = 0.05
"""A stream is assumed to run work from before the recording only if its first recorded work was launched within this
first fraction of the recording."""


@derived
def earlier_work(rank_trace: RankTrace) -> Intervals:
    """Return the intervals in which streams probably still ran work from before the recording; disjoint, in time order.

    A stream runs its work in order. If its first recorded work was launched in the first 5 % of the recording but
    started later, the stream was therefore probably still running earlier work between the launch and the start. Parts
    of this time in which any device has recorded work are removed. Of the rest, return intervals of at least 1 ms.
    """
    events = rank_trace.unselected.table("events", ["start_ns", "duration_ns"])
    rows = device_rows(rank_trace).hstack(launches(rank_trace).select("launch_end_ns"))
    if rows.is_empty():
        return union_of(rows)
    first_ns, last_ns = events.select(
        pl.col("start_ns").min(), (pl.col("start_ns") + pl.col("duration_ns")).max().alias("end_ns")
    ).row(0)
    firsts = rows.sort("start_ns", "event_index").unique(["device", "stream"], keep="first", maintain_order=True)
    waiting = firsts.filter(
        pl.col("launch_end_ns") < first_ns + _AT_THE_START * (last_ns - first_ns),
        pl.col("launch_end_ns") < pl.col("start_ns"),
    )
    waits = union(waiting["launch_end_ns"].to_numpy(), waiting["start_ns"].to_numpy())
    begins, ends = difference(waits, union_of(rows))
    is_long = ends - begins >= _SHORTEST_NS
    return begins[is_long], ends[is_long]
