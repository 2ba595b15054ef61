"""Divide the time of several threads among their innermost ranges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.nested.nesting import NO_PARENT, Nesting, nesting, nesting_order

_Int64 = npt.NDArray[np.int64]


class Segments(NamedTuple):
    """Disjoint segments, sorted by group and time; the segments of a group cover the same time as its intervals.

    group
    start, end
    owner   row of the innermost interval
    """

    group: npt.NDArray[np.integer]
    start: _Int64
    end: _Int64
    owner: _Int64


def segments(group: npt.NDArray[np.integer], start: _Int64, end: _Int64) -> Segments:
    """Divide the time that the intervals of each group cover into segments, each with one innermost interval.

    If two intervals overlap only partly, the later one is treated as the inner one while both run. Intervals without
    length are ignored.

    >>> parts = segments(np.array([0, 0]), np.array([0, 4]), np.array([10, 6]))
    >>> parts.start.tolist(), parts.end.tolist(), parts.owner.tolist()
    ([0, 4, 6], [4, 6, 10], [0, 1, 0])
    """
    rows = np.flatnonzero(end > start)
    rows = rows[nesting_order(group[rows], start[rows], end[rows])]
    own = group[rows], start[rows], end[rows]
    nested = nesting(*own)
    time, place, is_end = _bounds(*own, nested.depth)
    after, groups = place[1:], own[0][place]
    before_next = np.where(is_end[1:], after, _around_starts(own[0], own[2], nested)[after])
    owner = np.where(is_end[:-1], before_next, place[:-1])
    kept = (time[1:] > time[:-1]) & (groups[1:] == groups[:-1]) & (owner != NO_PARENT)
    return Segments(groups[:-1][kept], time[:-1][kept], time[1:][kept], rows[owner[kept]])


def _bounds(
    group: npt.NDArray[np.integer], start: _Int64, end: _Int64, depth: npt.NDArray[np.int32]
) -> tuple[_Int64, _Int64, npt.NDArray[np.bool_]]:
    """Return time, row and `is_end` of all starts and ends, sorted by group and time.

    At equal times, ends come before starts, and the ends of inner intervals before those of outer ones.
    """
    rows = np.arange(len(start))
    by_end = np.lexsort((-depth, end, group))
    time, place = np.concatenate([end[by_end], start]), np.concatenate([by_end, rows])
    order = np.lexsort((np.repeat([0, 1], len(rows)), time, group[place]))
    return time[order], place[order], order < len(rows)


def _around_starts(group: npt.NDArray[np.integer], end: _Int64, nested: Nesting) -> _Int64:
    """Return the row in which each row begins: its parent or, if earlier siblings overlap it, the last of them to end."""
    parent, overlaps = nested.parent, nested.is_overlapping
    if not overlaps.any():
        return parent
    rows = np.flatnonzero(np.isin(parent, np.unique(parent[overlaps])))
    rows = rows[np.argsort(parent[rows], kind="stable")]
    begins_family = (np.diff(parent[rows], prepend=-2) != 0) | (np.diff(group[rows].astype(np.int64), prepend=-1) != 0)
    around = parent.copy()
    around[rows] = _latest_siblings(rows, end[rows], np.cumsum(begins_family))
    return np.where(overlaps, around, parent)


def _latest_siblings(rows: _Int64, end: _Int64, family: _Int64) -> _Int64:
    """Return, for each row, which of its earlier siblings ends last; rows with equal `family` are siblings.

    The first row of a family has no earlier sibling; its result is arbitrary.
    """
    # Compare the positions of the ends in sorted order (`rank`), not the end times: each family adds an offset, and a
    # time plus such an offset could overflow.
    by_end = np.argsort(end, kind="stable")
    rank = np.empty(len(rows), np.int64)
    rank[by_end] = np.arange(len(rows))
    latest = np.maximum.accumulate(rank + family * len(rows)) - family * len(rows)
    siblings = rows[by_end[latest]]
    return np.append(siblings[:1], siblings[:-1])
