"""The events of one rank that overlap an area of the timeline, each with its time inside the area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.web.timeline.index import TimelineIndex
from holotrace.web.timeline.query import lanes_of

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AreaEvents:
    """The events that overlap an area, with their times inside the area.

    place     position of each event in the index, in ascending order
    parent    for each event, the position in `place` of the innermost event around it on the same row, or `NO_PARENT`
    total_ns  time of each event inside the area
    self_ns   total_ns minus the total_ns of the events directly inside the event
    """

    place: _Numbers
    parent: _Numbers
    total_ns: _Numbers
    self_ns: _Numbers


def area_events(index: TimelineIndex, rows: Sequence[int], start: int, end: int) -> AreaEvents:
    """Return the events of these rows in [start, end), in ns since the origin."""
    lanes = [lane for row in sorted(set(rows)) for lane in lanes_of(index, row)]
    place, _ = index.events.within(lanes, start, end)
    parent = _positions(index.parents()[place], place)
    total = index.events.end[place].clip(start, end) - index.events.start[place].clip(start, end)
    own = total.copy()
    has_parent = parent != NO_PARENT
    np.subtract.at(own, parent[has_parent], total[has_parent])
    return AreaEvents(place, parent, total, own)


def _positions(wanted: _Numbers, place: _Numbers) -> _Numbers:
    """Return each wanted value's position in the sorted array `place`; `NO_PARENT` if `place` lacks the value."""
    if not len(place):
        return wanted
    at = np.searchsorted(place, wanted).clip(max=len(place) - 1)
    return np.where(place[at] == wanted, at, NO_PARENT)
