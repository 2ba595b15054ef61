"""For each line of code, measure how long devices have nothing to do while the line runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.clipping import clipped
from holotrace.algorithms.intervals import Intervals, gaps, intervals_of
from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.enrich.device.device_work import by_device
from holotrace.enrich.device.launches import launched_work
from holotrace.enrich.events.event_rows import of_events
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]


def idle_by_line(rank_trace: RankTrace, host: pl.DataFrame) -> pl.DataFrame:
    """Return how long devices had nothing to do while each line ran, in the columns line and device_idle_ns.

    A gap in a device's work ends when the next work begins or when the call that launches this work returns, whichever
    is earlier. The gap counts toward the line that runs on the thread of this call. While this thread is idle, the gap
    counts toward the line that runs on the main thread: the thread whose known lines take the most time in total. Time
    without a known line counts toward line -1.

    Args:
        rank_trace: the rank.
        host: track_id, start_ns, end_ns and line of the intervals on all host threads, sorted by track and time.
    """
    idle, main = _gaps(rank_trace), host.filter(pl.col("track_id").eq_missing(_main_track(host)))
    parts = [pl.DataFrame(schema={"line": pl.Int64, "device_idle_ns": pl.Int64})]
    for (track,), of_track in idle.group_by("track_id"):
        is_known = pl.lit(track is not None)
        parts.append(_of_thread(of_track, host.filter(pl.col("track_id").eq_missing(track)), main.filter(is_known)))
    return pl.concat(parts).group_by("line").agg(pl.col("device_idle_ns").sum())


def _gaps(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the gaps between work, each with its start, its end, and the thread that launches the next work."""
    work = launched_work(rank_trace)
    events = rank_trace.table("events", ["event_index", "track_id"])
    work = work.hstack(of_events(events, work["launch_index"]))
    tables = [_gaps_of(rows) for _, rows in by_device(work)] if len(work) else []
    return pl.concat([_gaps_of(work.clear()), *tables])


def _gaps_of(work: pl.DataFrame) -> pl.DataFrame:
    start, end = gaps(*intervals_of(work))
    ended_by = np.searchsorted(work["start_ns"].to_numpy(), end)
    after = work.select("track_id", "launch_end_ns")[ended_by]
    table = pl.DataFrame({"start_ns": start, "end_ns": end}).hstack(after)
    return table.select("track_id", "start_ns", pl.min_horizontal("end_ns", "launch_end_ns")).filter(
        pl.col("end_ns") > pl.col("start_ns")
    )


def _main_track(host: pl.DataFrame) -> int | None:
    lengths = host.filter(pl.col("line") != NO_PARENT).group_by("track_id").agg(pl.col("ns").sum())
    return next(iter(lengths.sort("ns", "track_id", descending=[True, False])["track_id"].head(1)), None)


def _of_thread(idle: pl.DataFrame, own: pl.DataFrame, main: pl.DataFrame) -> pl.DataFrame:
    begin, finish = idle["start_ns"].to_numpy(), idle["end_ns"].to_numpy()
    first = _cut(own, begin, finish)
    left = _without(begin, finish, own)
    second = _cut(main, *left)
    unknown_ns = int((finish - begin).sum()) - int(first["device_idle_ns"].sum()) - int(second["device_idle_ns"].sum())
    rest = pl.DataFrame({"line": [NO_PARENT], "device_idle_ns": [unknown_ns]}, schema=first.schema)
    return pl.concat([first, second, rest])


def _cut(host: pl.DataFrame, begin: _Rows, finish: _Rows) -> pl.DataFrame:
    cut = clipped(host["start_ns"].to_numpy(), host["end_ns"].to_numpy(), begin, finish)
    lines = host["line"].gather(cut.interval)
    return pl.DataFrame({"line": lines, "device_idle_ns": cut.end - cut.start})


def _without(begin: _Rows, finish: _Rows, own: pl.DataFrame) -> Intervals:
    """Return the parts of the windows (from `begin[i]` to `finish[i]`) that no interval in `own` covers."""
    ends = np.concatenate([[np.iinfo(np.int64).min], own["end_ns"].to_numpy()])
    starts = np.concatenate([own["start_ns"].to_numpy(), [np.iinfo(np.int64).max]])
    holes = starts > ends
    cut = clipped(ends[holes], starts[holes], begin, finish)
    return cut.start, cut.end
