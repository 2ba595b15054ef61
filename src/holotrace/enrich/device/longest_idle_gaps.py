"""Finds the longest idle gaps of a device."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import gaps, intervals_of
from holotrace.enrich.device.device_work import by_device, device_work
from holotrace.enrich.device.launches import launches
from holotrace.store.trace import RankTrace

_SCHEMA = {"device": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64, "launch_start_ns": pl.Int64}


def longest_idle_gaps(rank_trace: RankTrace, *, shortest_ns: int, most: int) -> pl.DataFrame:
    """Return the longest idle gaps of each device, in descending order of length, at most `most` per device.

    Returns:
        one row per gap:

        device           int64
        start_ns, end_ns int64  at least `shortest_ns` apart
        launch_start_ns  int64  when the host launched the work after the gap; null if the launch was not recorded
    """
    work = device_work(rank_trace)
    launch = launches(rank_trace).select("event_index", "launch_start_ns")
    launched = work.join(launch, on="event_index", how="left", maintain_order="left")
    per_device = [_gaps_of(device, rows, most) for device, rows in by_device(launched)] if len(work) else []
    table = pl.concat([pl.DataFrame(schema=_SCHEMA), *per_device])
    return table.filter(pl.col("end_ns") - pl.col("start_ns") >= shortest_ns)


def _gaps_of(device: int, work: pl.DataFrame, most: int) -> pl.DataFrame:
    start, end = gaps(*intervals_of(work))
    longest = np.argsort(start - end, kind="stable")[:most]
    ended_by = work["launch_start_ns"].gather(np.searchsorted(work["start_ns"].to_numpy(), end[longest]))
    columns = {"start_ns": start[longest], "end_ns": end[longest], "launch_start_ns": ended_by}
    return pl.DataFrame({"device": [device] * len(longest), **columns}, schema=_SCHEMA)
