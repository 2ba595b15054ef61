"""The next and the previous event on the same row, or with the same name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from holotrace.errors import InvalidOptionError
from holotrace.web.timeline.index import TimelineIndex
from holotrace.web.timeline.query import lanes_of, located


def neighbour(index: TimelineIndex, event_index: int, by: int, *, of: str, rows: Sequence[int]) -> dict[str, Any]:
    """Return the event that is `by` events after a given event, or -`by` events before it if `by` is negative.

    `of` selects the events to count, in the order of their starts: "row" selects the events at the same depth of the
    same row, "name" selects the events with the same name in `rows`.

    Returns:
        at      row, depth, start, length and event_index of the event; null if there is no such event
        number  number of the event among the counted events, from 1; if `at` is null, the number of the given event
        count   number of counted events

    Raises:
        InvalidOptionError: the event is not on the timeline.
    """
    place = index.place_of(event_index)
    if place is None:
        message = f"event {event_index:,} is not on the timeline of this rank"
        raise InvalidOptionError(message)
    places = _in_lane(index, place) if of == "row" else _of_name(index, place, rows)
    number = int(np.flatnonzero(places == place)[0])
    is_inside = 0 <= number + by < len(places)
    return {
        "at": located(index, int(places[number + by])) if is_inside else None,
        "number": number + 1 + (by if is_inside else 0),
        "count": len(places),
    }


def _in_lane(index: TimelineIndex, place: int) -> npt.NDArray[np.int64]:
    lane = int(index.events.lane_of(place))
    return np.arange(index.events.bounds[lane], index.events.bounds[lane + 1])


def _of_name(index: TimelineIndex, place: int, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    is_shown = np.zeros(len(index.events.bounds) - 1, np.bool_)
    is_shown[[lane for row in rows for lane in lanes_of(index, row)]] = True
    places = np.flatnonzero(index.name == index.name[place])
    places = places[is_shown[index.events.lane_of(places)] | (places == place)]
    return places[np.argsort(index.events.start[places], kind="stable")]
