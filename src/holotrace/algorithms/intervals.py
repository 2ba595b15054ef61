"""Sets of half-open intervals [start, end) of whole nanoseconds, as pairs of int64 arrays.

Unless a function says otherwise, intervals may overlap and be in any order. Intervals without length (end <= start)
cover nothing and are ignored. `tests/helpers/truths/oracles.py` has slow, obviously correct versions
of these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace import _native

Int64Array: TypeAlias = npt.NDArray[np.int64]
Intervals: TypeAlias = tuple[Int64Array, Int64Array]
"""An array of starts and an array of ends, of equal length."""


def intervals_of(table: pl.DataFrame) -> Intervals:
    """Return start_ns and end_ns of the rows of a table."""
    return table["start_ns"].to_numpy(), table["end_ns"].to_numpy()


def union_of(table: pl.DataFrame) -> Intervals:
    """Return the time that the rows of a table cover, as disjoint intervals in order."""
    return union(*intervals_of(table))


def union(start_ns: Int64Array, end_ns: Int64Array) -> Intervals:
    """Merge overlapping and touching intervals into disjoint ones, in order."""
    return _native.union(*_contiguous((start_ns, end_ns)))


def covered_length(start_ns: Int64Array, end_ns: Int64Array) -> int:
    """Return the total length of the union of the intervals, in nanoseconds."""
    return _length(union(start_ns, end_ns))


def intersection_length(first: Intervals, second: Intervals) -> int:
    """Return the total length of the intersection of two sets, in nanoseconds."""
    return _length(intersection(first, second))


class Overlaps(NamedTuple):
    """The overlaps of two sets: start_ns, end_ns, and the row of the interval in the first and in the second set."""

    start_ns: Int64Array
    end_ns: Int64Array
    first: Int64Array
    second: Int64Array


def overlaps(first: Intervals, second: Intervals) -> Overlaps:
    """Return each interval in which an interval of the first set overlaps one of the second, in order.

    The intervals of each set must be disjoint and in order.

    >>> a = np.array([0, 10]), np.array([5, 20])
    >>> b = np.array([3]), np.array([12])
    >>> [column.tolist() for column in overlaps(a, b)]
    [[3, 10], [5, 12], [0, 1], [0, 0]]
    """
    starts, ends, rows, others = _pieces(first, second)
    both = (rows >= 0) & (others >= 0)
    return Overlaps(starts[both], ends[both], rows[both], others[both])


def difference(first: Intervals, second: Intervals) -> Intervals:
    """Return the time that only the first set covers, as disjoint intervals in order."""
    return _native.difference(_contiguous(first), _contiguous(second))


def intersection(first: Intervals, second: Intervals) -> Intervals:
    """Return the time that both sets cover, as disjoint intervals in order."""
    return _native.intersection(_contiguous(first), _contiguous(second))


def covered_before(disjoint: Intervals, moments: Int64Array) -> Int64Array:
    """Return, for each time, how many of the nanoseconds before it are covered by the intervals.

    The intervals must be disjoint and sorted.
    """
    starts, ends = disjoint
    if not len(starts):
        return np.zeros(len(moments), np.int64)
    lengths = ends - starts
    last = np.searchsorted(starts, moments, side="right") - 1
    whole = np.concatenate([[0], np.cumsum(lengths)])[last.clip(min=0)]
    before: Int64Array = whole + np.clip(moments - starts[last], 0, lengths[last]) * (last >= 0)
    return before


def holding(intervals: Intervals, moments: Int64Array) -> Int64Array:
    """Return, for each time, the row of the interval that contains it, or -1 if none does.

    Starts must ascend. For each time, only the last interval that began by then is checked. An earlier, longer interval
    that also contains the time is not found.
    """
    starts, ends = intervals
    return _native.holding(*_contiguous((starts, ends)), np.ascontiguousarray(moments))


def gaps(start_ns: Int64Array, end_ns: Int64Array) -> Intervals:
    """Return the gaps between the first start and the last end, as disjoint intervals in order."""
    starts, ends = union(start_ns, end_ns)
    return ends[:-1], starts[1:]


def gap_begins(start_ns: Int64Array, end_ns: Int64Array, group_starts: Sequence[int] | Int64Array) -> Int64Array:
    """Return the time at which the gap before each interval began; the gap's length is `start_ns` minus this time.

    Args:
        start_ns: sorted within each group.
        end_ns: the ends of the same intervals; they need not be sorted.
        group_starts: row of the first interval of each group; groups are contiguous.

    Returns:
        For each interval, the latest end of the earlier intervals of its group. If there is no gap, or if the interval
        is the first of its group, the result is the start of the interval.
    """
    begins = start_ns.copy()
    for first, last in pairwise([*map(int, group_starts), len(start_ns)]):
        latest_end = np.maximum.accumulate(end_ns[first:last])[:-1]
        begins[first + 1 : last] = np.minimum(latest_end, start_ns[first + 1 : last])
    return begins


def states(classes: Sequence[Intervals]) -> Int64Array:
    """Return how long each combination of classes was active.

    Args:
        classes: k sets of intervals. A class is active while at least one of its intervals runs.

    Returns:
        2**k durations in ns. Bit j of the index is set if class j was active. The duration at
        index 0 is the time between the first start and the last end in which no class was active.
    """
    merged = [union(*intervals) for intervals in classes]
    moments = np.concatenate([np.concatenate(intervals) for intervals in merged]) if merged else np.empty(0, np.int64)
    changes = np.concatenate([_changes(1 << bit, len(starts)) for bit, (starts, _) in enumerate(merged)] or [moments])
    order = np.argsort(moments)
    active = np.cumsum(changes[order])
    durations = np.zeros(1 << len(classes), np.int64)
    np.add.at(durations, active[:-1], np.diff(moments[order]))
    return durations


def concatenated(sets: Iterable[Intervals]) -> Intervals:
    """Concatenate several sets of intervals."""
    starts, ends = zip(*sets, strict=True)
    return np.concatenate(starts), np.concatenate(ends)


def distinct_times(*times: Int64Array) -> Int64Array:
    """Return the distinct times in ascending order.

    Times usually consist of a few sorted runs, which a stable sort merges quickly: 0.05 s for 7 million
    timestamps. np.unique took 11 s, because it hashes integers in NumPy 2.3 and later.
    """
    ordered = np.sort(np.concatenate(times), kind="stable")
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _pieces(first: Intervals, second: Intervals) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Cut the time at each interval's start and end; return each piece's start and end, and its interval in each set.

    The interval that covers a piece is given by its row in the set; the row is -1 if no interval covers the piece.
    """
    moments = distinct_times(*first, *second)
    starts, ends = moments[:-1], moments[1:]
    return starts, ends, holding(first, starts), holding(second, starts)


def _contiguous(intervals: Intervals) -> Intervals:
    starts, ends = intervals
    return np.ascontiguousarray(starts), np.ascontiguousarray(ends)


def _length(intervals: Intervals) -> int:
    starts, ends = intervals
    return int(np.sum(ends - starts))


def _changes(bit: int, count: int) -> Int64Array:
    """Return how `count` starts (`bit` each) and then `count` ends (`-bit` each) change the mask of active classes."""
    return np.repeat(np.array([bit, -bit], np.int64), count)
