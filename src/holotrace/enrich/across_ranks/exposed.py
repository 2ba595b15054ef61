"""Divides exposed communication time (not hidden by computation) among the calls that cause it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Int64Array, Intervals, distinct_times, holding, union


def uncovered(intervals: Intervals, cover: Intervals) -> Intervals:
    """Return the parts of `intervals` that `cover` does not cover, disjoint and in order.

    >>> uncovered((np.array([0]), np.array([10])), (np.array([2, 6]), np.array([4, 7])))
    (array([0, 4, 7]), array([ 2,  6, 10]))
    """
    outer, inner = union(*intervals), union(*cover)
    bounds = distinct_times(*outer, *inner)
    starts, ends = bounds[:-1], bounds[1:]
    is_exposed = (holding(outer, starts) >= 0) & (holding(inner, starts) < 0)
    return union(starts[is_exposed], ends[is_exposed])


def divided_among_calls(exposed: pl.DataFrame, calls: pl.DataFrame, priority: Sequence[str]) -> pl.DataFrame:
    """Assign every exposed nanosecond of a rank to one call, which either waits or transfers at that time.

    If calls of several axes run at the same time, the time is assigned to the first axis in `priority`. Within an axis,
    calls that transfer at that time have precedence over calls that wait. If several calls still compete, the earliest
    one gets the time. It is unknown whether a call without a counterpart waits or transfers, so its time is reported as
    unmatched.

    Args:
        exposed: disjoint ranges of one rank: start_ns, end_ns, step.
        calls: the calls of this rank: row (any number that identifies the call), axis, start_ns, end_ns and wait_ns (null if
            unknown).
        priority: all axes, the one with the highest priority first.

    Returns:
        row, step, wait_ns, transfer_ns and unmatched_ns, one row per call and step. Additional
        rows, whose `row` is null, give the exposed time that no call covers as unmatched_ns, so all times add up to the
        exposed time.
    """
    pieces = _pieces(calls, priority)
    edges = [table[name].to_numpy() for table in (exposed, pieces) for name in ("start_ns", "end_ns")]
    bounds = distinct_times(*edges)
    owner = _painted(bounds, pieces)
    segment, step = _segments_of(exposed, bounds)
    parts = _NO_CALL.vstack(pieces.select("row", "part"))[owner[segment] + 1].with_columns(
        exposed["step"][step], pl.Series("length", np.diff(bounds)[segment])
    )
    sums = [pl.col("length").filter(pl.col("part") == part).sum().alias(name) for part, name in enumerate(PARTS)]
    return parts.group_by("row", "step").agg(sums).sort("row", "step", nulls_last=True)


PARTS = ("transfer_ns", "wait_ns", "unmatched_ns")
"""The parts of exposed time.

If calls of one axis overlap, the time of the overlap is added to only one part: the part that comes first in this list.
For example, if one call transfers while another waits, the time is added to `transfer_ns`.
"""

_TRANSFER, _WAIT, _UNMATCHED = range(len(PARTS))
_NO_CALL = pl.DataFrame({"row": [None], "part": [_UNMATCHED]}, {"row": pl.Int64, "part": pl.Int32})


def _pieces(calls: pl.DataFrame, priority: Sequence[str]) -> pl.DataFrame:
    """Return the waiting, transfer and unmatched times of each call, sorted so that later rows have precedence."""
    places = {axis: place for place, axis in enumerate(priority)}
    known = calls.with_columns(
        pl.col("row").cast(pl.Int64), pl.col("axis").replace_strict(places, return_dtype=pl.Int64).alias("place")
    )
    begins = pl.col("start_ns") + pl.col("wait_ns")
    unmatched = known.filter(pl.col("wait_ns").is_null())
    pieces = (
        (known, begins, "end_ns", _TRANSFER),
        (known, "start_ns", begins, _WAIT),
        (unmatched, "start_ns", "end_ns", _UNMATCHED),
    )
    all_pieces = pl.concat(
        table.select("row", "place", pl.lit(part, pl.Int32).alias("part"), start_ns=start, end_ns=end)
        for table, start, end, part in pieces
    )
    return all_pieces.filter(pl.col("end_ns") > pl.col("start_ns")).sort(
        "place", "part", "start_ns", "row", descending=True
    )


def _painted(bounds: Int64Array, pieces: pl.DataFrame) -> Int64Array:
    """Return, for each segment between consecutive bounds, the last row of `pieces` that covers it; -1 if no row does."""
    owner = np.full(max(0, len(bounds) - 1), -1, np.int64)
    first = np.searchsorted(bounds, pieces["start_ns"].to_numpy()).tolist()
    last = np.searchsorted(bounds, pieces["end_ns"].to_numpy()).tolist()
    for piece, (begin, end) in enumerate(zip(first, last, strict=True)):
        owner[begin:end] = piece
    return owner


def _segments_of(exposed: pl.DataFrame, bounds: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the index i of each exposed segment, and the row of `exposed` that contains the segment.

    Segment i is the time from bound i to bound i + 1.
    """
    first = np.searchsorted(bounds, exposed["start_ns"].to_numpy())
    counts = np.searchsorted(bounds, exposed["end_ns"].to_numpy()) - first
    row = np.repeat(np.arange(len(counts)), counts)
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + first[row], row
