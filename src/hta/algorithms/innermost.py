"""Which of several nested or overlapping intervals is the innermost at each moment: the shortest one that covers it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NO_OWNER = -1

_Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Innermost:
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

    Intervals may overlap in any way; those without length cover nothing. The shortest intervals take their segments
    first, and each longer one what is left: whoever looks for the next free segment jumps over all that are taken,
    so this is O(n log n).
    """
    bounds = np.unique(np.concatenate([start_ns, end_ns]))
    order = np.lexsort((-np.arange(len(start_ns)), end_ns - start_ns))
    first = np.searchsorted(bounds, start_ns[order]).tolist()
    last = np.searchsorted(bounds, end_ns[order]).tolist()
    return Innermost(bounds, _painted(len(bounds), order.tolist(), first, last))


def _painted(count: int, rows: list[int], first: list[int], last: list[int]) -> _Int64:
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
