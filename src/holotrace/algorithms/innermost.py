"""Which of several nested or overlapping intervals is the innermost at each moment: the shortest one that covers it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.nesting import Nesting, nesting
from holotrace.content_equality import EqualByContent

NO_OWNER = -1

_Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Innermost(EqualByContent):
    """Time cut into segments, each with the shortest interval that covers it.

    bounds  the moments at which the answer may change, in rising order
    owners  row of the innermost interval from each bound to the next, NO_OWNER where none covers; equally long
    """

    bounds: _Int64
    owners: _Int64

    def at(self, moments: _Int64) -> _Int64:
        """Return the row of the interval that is innermost at each moment, NO_OWNER where none covers it."""
        if not len(self.bounds):
            return np.full(len(moments), NO_OWNER, np.int64)
        segments = np.searchsorted(self.bounds, moments, side="right") - 1
        found: _Int64 = np.where(segments >= 0, self.owners[segments.clip(min=0)], NO_OWNER)
        return found

    def lengths(self, count: int) -> _Int64:
        """Return for how long each of the `count` intervals is the innermost one: its exclusive time."""
        owned = self.owners != NO_OWNER
        totals = np.zeros(count, np.int64)
        np.add.at(totals, self.owners[owned], np.diff(self.bounds, append=self.bounds[-1:])[owned])
        return totals


def innermost(start_ns: _Int64, end_ns: _Int64) -> Innermost:
    """Find the shortest half-open interval that covers each moment; of equally short ones the last row wins.

    Intervals may overlap in any way; those without length cover nothing. Takes O(n log n), all in numpy where each
    interval lies inside or beside every other, as calls of one thread do.
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
    """Return the times in rising order, each once; np.unique hashes since numpy 2.3, which takes far longer."""
    ordered = np.sort(times)
    distinct: _Int64 = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return distinct


def _nested(count: int, nested: Nesting, first: _Int64, last: _Int64) -> _Int64:
    """Own from each end on what lies around the outermost that ends, unless something starts: then its innermost."""
    owners = np.full(count, NO_OWNER, np.int64)
    outward = np.argsort(-nested.depth, kind="stable")
    owners[last[outward]] = nested.parent[outward]  # of several values for one place the last one stays
    owners[first[outward[::-1]]] = outward[::-1]
    return owners


def _painted(count: int, rows: list[int], first: list[int], last: list[int]) -> _Int64:
    """Let the shortest intervals take their segments first, and each longer one what is left.

    Whoever looks for the next free segment jumps over all that are taken.
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
    """Return the first free segment from this one on, and shorten the way there for the next caller."""
    found = segment
    while next_free[found] != found:
        found = next_free[found]
    while next_free[segment] != found and segment != found:
        next_free[segment], segment = found, next_free[segment]
    return found
