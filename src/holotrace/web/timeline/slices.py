"""Slices in lanes, at full detail and at coarser levels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lanes:
    """Intervals in lanes, sorted by lane and time; intervals of one lane do not overlap.

    bounds      position of the first interval of each lane, then the number of all intervals
    start, end  ns
    """

    bounds: _Numbers
    start: _Numbers
    end: _Numbers

    def lane_of(self, places: npt.ArrayLike) -> _Numbers:
        """Return the lane of the interval at each of these positions."""
        return np.asarray(np.searchsorted(self.bounds, places, side="right") - 1)

    def within(self, lanes: Iterable[int], start: int, end: int) -> tuple[_Numbers, _Numbers]:
        """Return the positions of intervals in these lanes that overlap a window, and where each lane begins among them.

        The second array has the form of `bounds`: its last value is the number of returned positions.
        """
        ranges = [self._range(lane, start, end) for lane in lanes]
        places = np.concatenate([np.arange(0), *(np.arange(*bounds) for bounds in ranges)])
        return places, np.concatenate([[0], np.cumsum([last - first for first, last in ranges])]).astype(np.int64)

    def count_within(self, lanes: Iterable[int], start: int, end: int) -> int:
        """Return the number of intervals in these lanes that overlap a window."""
        ranges = [self._range(lane, start, end) for lane in lanes]
        return sum(last - first for first, last in ranges)

    def _range(self, lane: int, start: int, end: int) -> tuple[int, int]:
        first, last = int(self.bounds[lane]), int(self.bounds[lane + 1])
        begin = first + int(np.searchsorted(self.end[first:last], start, side="right"))
        while begin > first and self.start[begin - 1] == start:  # an event of length 0 at the window's start is inside
            begin -= 1
        return begin, max(begin, first + int(np.searchsorted(self.start[first:last], end, side="left")))


@dataclass(frozen=True, eq=False)
class Slices(Lanes):
    """Intervals, each of which shows one event or several short events.

    busy        total length of the events
    count       number of events
    longest     index position of the longest event
    longest_ns  length of the longest event
    """

    busy: _Numbers
    count: npt.NDArray[np.int32]
    longest: npt.NDArray[np.int32]
    longest_ns: _Numbers

    @classmethod
    def single(cls, lanes: Lanes, places: _Numbers, bounds: _Numbers) -> Slices:
        """Return the chosen intervals as slices of one event each."""
        start, end = lanes.start[places], lanes.end[places]
        one = np.broadcast_to(np.int32(1), len(start))
        return cls(bounds, start, end, end - start, one, places.astype(np.int32), end - start)

    def only(self, places: _Numbers, bounds: _Numbers) -> Slices:
        """Return the chosen slices."""
        return Slices(
            bounds,
            self.start[places],
            self.end[places],
            self.busy[places],
            self.count[places],
            self.longest[places],
            self.longest_ns[places],
        )


def at_level(slices: Slices, level: int, *, coarser: int = 1) -> Slices:
    """Merge events of a lane that are shorter than 2^level ns and start in the same interval of 2^(level + coarser) ns.

    Longer events are not merged, and events before a longer event are not merged with events after it. Merging does
    not change the busy time of a lane.
    """
    if not len(slices.start):
        return slices
    is_alone = (slices.count == 1) & (slices.longest_ns >= 1 << level)
    begins = is_alone.copy()
    begins[1:] |= is_alone[:-1]
    bins = slices.start >> (level + coarser)
    begins[1:] |= bins[1:] != bins[:-1]
    starts_of_lanes = slices.bounds[:-1]
    begins[starts_of_lanes[starts_of_lanes < len(begins)]] = True
    first = np.flatnonzero(begins)
    last = np.concatenate([first[1:], [len(begins)]]) - 1
    bounds = np.searchsorted(first, slices.bounds).astype(np.int64)
    longest = _longest(slices.longest_ns, first, last)
    return Slices(
        bounds,
        slices.start[first],
        slices.end[last],
        np.add.reduceat(slices.busy, first),
        np.add.reduceat(slices.count, first).astype(np.int32),
        slices.longest[longest],
        slices.longest_ns[longest],
    )


def _longest(length: _Numbers, first: _Numbers, last: _Numbers) -> _Numbers:
    """Return the position of the longest item of each group (the first, if several are equally long)."""
    longest = np.maximum.reduceat(length, first)
    places = np.flatnonzero(length == np.repeat(longest, last - first + 1))
    group = np.searchsorted(first, places, side="right") - 1
    return places[np.flatnonzero(np.diff(group, prepend=-1))]
