"""Finds the innermost of several nested or overlapping intervals at each time: the shortest one that covers it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.nested.nesting import Nesting, nesting
from holotrace.content_equality import EqualByContent

NO_OWNER = -1

_Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Innermost(EqualByContent):
    """Time divided into segments, each with the shortest interval that covers it.

    bounds  the times at which the innermost interval may change, in ascending order
    owners  row of the innermost interval from each bound to the next, NO_OWNER if there is none; as long as `bounds`
    """

    bounds: _Int64
    owners: _Int64

    def at(self, moments: _Int64) -> _Int64:
        """Return the row of the innermost interval at each time; NO_OWNER if there is none."""
        if not len(self.bounds):
            return np.full(len(moments), NO_OWNER, np.int64)
        segments = np.searchsorted(self.bounds, moments, side="right") - 1
        owners: _Int64 = np.where(segments >= 0, self.owners[segments.clip(min=0)], NO_OWNER)
        return owners

    def lengths(self, count: int) -> _Int64:
        """Return how long each of the `count` intervals is the innermost one (its exclusive time)."""
        owned = self.owners != NO_OWNER
        totals = np.zeros(count, np.int64)
        np.add.at(totals, self.owners[owned], np.diff(self.bounds, append=self.bounds[-1:])[owned])
        return totals


def innermost(start_ns: _Int64, end_ns: _Int64) -> Innermost:
    """Find the shortest half-open interval that covers each time; if several are equally short, take the last row.

    Intervals may overlap in any way; intervals without length cover nothing. The search takes O(n log n) time, and runs
    entirely in numpy if the intervals are nested or disjoint, like the calls of one thread.
    """
    rows = np.flatnonzero(end_ns > start_ns)
    start, end = start_ns[rows], end_ns[rows]
    bounds = _distinct(np.concatenate([start, end]))
    first, last = np.searchsorted(bounds, start), np.searchsorted(bounds, end)
    nested = nesting(np.zeros(len(rows), np.int64), start, end)
    if nested.is_overlapping.any():
        order = np.lexsort((-rows, end - start))
        owners = _painted(len(bounds), *(values[order].tolist() for values in (np.arange(len(rows)), first, last)))
    else:
        owners = _nested(len(bounds), nested, first, last)
    return Innermost(bounds, np.where(owners == NO_OWNER, NO_OWNER, rows[owners]) if len(rows) else owners)


def _distinct(times: _Int64) -> _Int64:
    """Return the distinct times in ascending order; np.unique, which uses hashing since NumPy 2.3, is far slower."""
    ordered = np.sort(times)
    distinct: _Int64 = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return distinct


def _nested(count: int, nested: Nesting, first: _Int64, last: _Int64) -> _Int64:
    """Assign the segment that follows a start to the innermost interval that begins at this start.

    If no interval starts where an interval ends, the segment after this end belongs to the parent of the outermost
    interval that ends there.
    """
    owners = np.full(count, NO_OWNER, np.int64)
    outward = np.argsort(-nested.depth, kind="stable")
    owners[last[outward]] = nested.parent[outward]  # if several values go to one position, NumPy keeps the last one
    owners[first[outward[::-1]]] = outward[::-1]
    return owners


def _painted(count: int, rows: list[int], first: list[int], last: list[int]) -> _Int64:
    """Go through the intervals from short to long, and assign to each the segments inside it that are still free.

    The search for the next free segment skips all taken segments at once.
    """
    owners = [NO_OWNER] * count
    next_free = list(range(count + 1))
    for row, begin, end in zip(rows, first, last, strict=True):
        segment = _free(next_free, begin)
        while segment < end:
            owners[segment] = row
            next_free[segment] = segment + 1
            segment = _free(next_free, segment + 1)
    return np.array(owners, np.int64)


def _free(next_free: list[int], segment: int) -> int:
    """Return the first free segment at or after `segment`; make the segments on the way point directly to it."""
    free = segment
    while next_free[free] != free:
        free = next_free[free]
    while next_free[segment] != free and segment != free:
        next_free[segment], segment = free, next_free[segment]
    return free
