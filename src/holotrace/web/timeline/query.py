"""Answers for the browser: the slices in a window, and the events that match a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holotrace.enrich.kernels.kernel_kind import name_classifier
from holotrace.schema import DEVICE_WORK_KINDS, EventKind, KernelKind
from holotrace.web.timeline.index import FEW_EVENTS, TimelineIndex
from holotrace.web.timeline.slices import Slices, at_level

MOST_MERGED = 5_000
"""If an answer has more merged slices than this, neighbouring slices are merged further."""

MOST_PIXELS_MERGED = 6
"""Events are merged into one slice only if they start in the same interval of 2^MOST_PIXELS_MERGED pixels."""

NAME_LENGTH = 160
MOST_FOUND = 2_000

_COLOUR_CLASSES = {
    EventKind.GPU_MEMCPY: "memory",
    EventKind.GPU_MEMSET: "memory",
    EventKind.COLLECTIVE_COMM: "communication",
    EventKind.CPU_OP: "operator",
    EventKind.USER_ANNOTATION: "annotation",
    EventKind.GPU_USER_ANNOTATION: "annotation",
    EventKind.RUNTIME: "call",
    EventKind.DRIVER: "call",
    EventKind.PYTHON_FUNCTION: "python",
    EventKind.SYNCHRONISATION: "wait",
}


@dataclass(frozen=True)
class Window:
    """A time range in ns since the origin of the rank, and its width in pixels."""

    start: int
    end: int
    pixels: int

    @property
    def level(self) -> int:
        """The largest n for which 2^n ns is at most the width of a pixel."""
        return max(0, ((self.end - self.start) // self.pixels).bit_length() - 1)


def visible(index: TimelineIndex, rows: Iterable[int], window: Window) -> Slices:
    """Return the slices of these rows, lane by lane.

    An event at least as long as a pixel has a separate slice; shorter events that start within about a pixel share a
    slice.
    """
    lanes = [lane for row in rows for lane in lanes_of(index, row)]
    bounds = (window.start, window.end)
    if index.events.count_within(lanes, *bounds) <= FEW_EVENTS:
        slices = at_level(Slices.single(index.events, *index.events.within(lanes, *bounds)), window.level)
    else:
        level = index.level(window.level)
        slices = level.only(*level.within(lanes, *bounds))
    coarser = 1
    while np.count_nonzero(slices.count > 1) > MOST_MERGED and coarser < MOST_PIXELS_MERGED:
        coarser += 1
        slices = at_level(slices, window.level, coarser=coarser)
    return slices


def slices_answer(index: TimelineIndex, rows: Sequence[int], window: Window, text: str = "") -> dict[str, Any]:
    """Return `visible` as JSON; `text` is the search text.

    Returns:
        lanes  [row, depth, events, merged] of each lane that is not empty:
               events  columns: start minus the previous end, length, number of the name, event_index
               merged  columns: start and length as in `events`, busy ns, count, name and event_index of the longest
                       event
        names  [beginning of the text, colour class, whether the text contains the search text] of each name
    """
    slices = visible(index, rows, window)
    names, number = _names(index, slices.longest, text.lower())
    where = [(row, depth) for row in rows for depth in range(index.rows[row].lane_count)]
    columns = (
        slices.start,
        slices.end - slices.start,
        slices.busy,
        slices.count,
        number,
        index.event_index[slices.longest],
    )
    lanes = [
        [row, depth, *_lane(*(column[first:last] for column in columns))]
        for (row, depth), first, last in zip(where, slices.bounds[:-1], slices.bounds[1:], strict=True)
        if last > first
    ]
    return {"lanes": lanes, "names": names}


def search(index: TimelineIndex, rows: Iterable[int], text: str) -> dict[str, Any]:
    """Find events whose names contain a string, ignoring case.

    Returns:
        count    number of matches
        found    [row, depth, start, length, event_index] of the first `MOST_FOUND`, sorted by start
        longest  the longest match, in the same form; null if there is none
    """
    holds = index.strings.str.to_lowercase().str.contains(text.lower(), literal=True).fill_null(value=False).to_numpy()
    wanted = np.zeros(len(index.events.bounds) - 1, np.bool_)
    wanted[[lane for row in rows for lane in lanes_of(index, row)]] = True
    places = np.flatnonzero(holds[index.name])
    places = places[wanted[index.events.lane_of(places)]]
    start, length = index.events.start[places], (index.events.end - index.events.start)[places]
    first = places[np.argsort(start, kind="stable")[:MOST_FOUND]]
    longest = places[np.argmax(length)] if len(places) else None
    return {
        "count": len(places),
        "found": [located(index, int(place)) for place in first],
        "longest": None if longest is None else located(index, int(longest)),
    }


def located(index: TimelineIndex, place: int) -> list[int]:
    """Return the row, depth, start, length and event_index of an event."""
    start, end = int(index.events.start[place]), int(index.events.end[place])
    return [*index.row_of(place), start, end - start, int(index.event_index[place])]


def lanes_of(index: TimelineIndex, row: int) -> range:
    """Return the lanes of a row."""
    first = index.rows[row].first_lane
    return range(first, first + index.rows[row].lane_count)


def _lane(*columns: npt.NDArray[Any]) -> tuple[list[list[int]], list[list[int]]]:
    is_merged = columns[3] > 1
    start, length, busy, count, name, event = (column[is_merged] for column in columns)
    merged = (steps_between(start, length), length, busy, count, name, event)
    start, length, _, _, name, event = (column[~is_merged] for column in columns)
    alone = (steps_between(start, length), length, name, event)
    return [column.tolist() for column in alone], [column.tolist() for column in merged]


def steps_between(start: npt.NDArray[np.int64], length: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the distance of each start from the previous end; these small numbers make the JSON short."""
    return start - np.concatenate([[0], (start + length)[:-1]])


def _names(
    index: TimelineIndex, places: npt.NDArray[np.int32], wanted: str
) -> tuple[list[list[Any]], npt.NDArray[np.int64]]:
    """Return `names` (see `slices_answer`) and, for each slice, the index of its name in `names`."""
    combined = index.name[places].astype(np.int64) * len(EventKind) + index.kind[places]
    distinct, number = np.unique(combined, return_inverse=True)
    classifiers = {kind: name_classifier(kind) for kind in DEVICE_WORK_KINDS}
    names = []
    for name, kind in zip(*np.divmod(distinct, len(EventKind)), strict=True):
        text = index.text(int(name))
        drawn_as = _colour_class(classifiers, EventKind(kind), text)
        names.append([text[:NAME_LENGTH], drawn_as, wanted in text.lower()])
    return names, number


def colour_class(kind: EventKind, name: str) -> str:
    """Return the class that determines the colour of an event."""
    return _colour_class({kind: name_classifier(kind)} if kind in DEVICE_WORK_KINDS else {}, kind, name)


def _colour_class(classifiers: dict[EventKind, Any], kind: EventKind, name: str) -> str:
    if kind in _COLOUR_CLASSES or kind not in classifiers:
        return _COLOUR_CLASSES.get(kind, "other")
    kernel_kind = classifiers[kind](name)
    return "wait" if kernel_kind is None else KernelKind(kernel_kind).name.lower()
