"""The critical path on the timeline: as a separate row, and as marks on its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holotrace.content_equality import EqualByContent
from holotrace.enrich.critical_path.event_graph import PathClass
from holotrace.enrich.critical_path.path_graph import PathGraph, critical_path_graph
from holotrace.store.trace import RankTrace
from holotrace.web.timeline.index import TimelineIndex
from holotrace.web.timeline.query import NAME_LENGTH, Window, steps_between
from holotrace.web.timeline.slices import Lanes, Slices, at_level

NOWHERE = -1

CLASSES = tuple(path_class.name.lower().replace("_", " ") for path_class in PathClass)

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PathOverlay(EqualByContent):
    """The critical path for drawing; times are in ns since the origin of the rank.

    window      text that describes the window
    along       the segments, except those of length 0, in order, in a single lane
    path_class  class of each segment
    place       position of the segment's event in the index; `NOWHERE` if the segment has no drawn event
    marks       the segments with drawn events, in the lanes of these events
    """

    window: str
    along: Lanes
    path_class: npt.NDArray[np.uint8]
    place: _Numbers
    marks: Lanes


def path_overlay(
    rank_trace: RankTrace,
    index: TimelineIndex,
    steps: tuple[int, int] | None = None,
    span: tuple[int, int] | None = None,
) -> PathOverlay:
    """Return the critical path of a span (ns since the origin), of steps, or of the default window of `critical_path`.

    Raises:
        InvalidOptionError: the step does not exist, or nothing was recorded in the span.
        MissingDataError: the rank has neither host ranges nor device work.
    """
    time_range = None if span is None else (span[0] + index.origin_ns, span[1] + index.origin_ns)
    graph = critical_path_graph(rank_trace, instance=None if span else steps, time_range_ns=time_range)
    lasting = graph.segments.filter(graph.segments["end_ns"] > graph.segments["start_ns"])
    start, end = (lasting[name].to_numpy() - index.origin_ns for name in ("start_ns", "end_ns"))
    place = _places(index, graph)[lasting["activity"].fill_null(len(graph.graph.activities)).to_numpy()]
    along = Lanes(np.array([0, len(start)], np.int64), start, end)
    return PathOverlay(graph.window, along, lasting["path_class"].to_numpy(), place, _marks(index, along, place))


def path_answer(index: TimelineIndex, overlay: PathOverlay, window: Window) -> dict[str, Any]:
    """Return the part of the path in a window; segments shorter than a pixel are merged, as events are.

    Returns:
        window   text that describes the window of the path
        start, end, count  start and end of the whole path, and the number of its segments, except those of length 0
        classes  [name, ns] of each class on the whole path, the longest first
        along    columns: start minus the previous end, length, number of merged segments, and five columns about the
                 longest of them: number of its class, number of its name, event_index, row and depth; the last four
                 are -1 if the segment has no drawn event
        path_classes, names  the texts for the numbers of classes and names
        marks    [row, depth, starts, lengths] of the path in each lane; each start is relative to the previous end
    """
    along = at_level(Slices.single(overlay.along, *overlay.along.within([0], window.start, window.end)), window.level)
    names, columns = _columns(index, overlay, along)
    bounds = overlay.along.start[:1].tolist() + overlay.along.end[-1:].tolist()
    return {
        "window": overlay.window,
        "start": bounds[0] if bounds else 0,
        "end": bounds[1] if bounds else 0,
        "count": len(overlay.along.start),
        "classes": _classes(overlay),
        "along": [steps_between(along.start, along.end - along.start).tolist(), *columns],
        "path_classes": CLASSES,
        "names": names,
        "marks": _drawn_marks(index, overlay.marks, window),
    }


def _places(index: TimelineIndex, graph: PathGraph) -> _Numbers:
    """Return, for each activity of the graph, its position in the timeline index.

    The last value is `NOWHERE`, for segments without an activity.
    """
    wanted = graph.graph.activities["event_index"].to_numpy()
    highest = int(max(wanted.max(initial=0), index.event_index.max(initial=0)))
    place_of = np.full(highest + 1, NOWHERE, np.int64)
    place_of[index.event_index] = np.arange(len(index.event_index))
    return np.append(place_of[wanted], NOWHERE)


def _marks(index: TimelineIndex, along: Lanes, place: _Numbers) -> Lanes:
    shown = np.flatnonzero(place != NOWHERE)
    lane = index.events.lane_of(place[shown])
    order = np.argsort(lane, kind="stable")
    bounds = np.searchsorted(lane[order], np.arange(len(index.events.bounds))).astype(np.int64)
    return Lanes(bounds, along.start[shown[order]], along.end[shown[order]])


def _classes(overlay: PathOverlay) -> list[tuple[str, int]]:
    lengths = overlay.along.end - overlay.along.start
    sums = np.bincount(overlay.path_class, weights=lengths, minlength=len(CLASSES)).astype(np.int64).tolist()
    return sorted(((name, ns) for name, ns in zip(CLASSES, sums, strict=True) if ns), key=lambda pair: -pair[1])


def _columns(index: TimelineIndex, overlay: PathOverlay, along: Slices) -> tuple[list[str], list[list[int]]]:
    place = overlay.place[along.longest]
    is_known = place != NOWHERE
    known = place[is_known]
    distinct, numbers = np.unique(index.name[known], return_inverse=True)
    rows, depths = index.rows_of(known)
    of_event = (numbers, index.event_index[known], rows, depths)
    columns = [along.end - along.start, along.count, overlay.path_class[along.longest]]
    columns += [_where(is_known, column) for column in of_event]
    return [index.text(int(name))[:NAME_LENGTH] for name in distinct], [column.tolist() for column in columns]


def _where(is_known: npt.NDArray[np.bool_], column: npt.NDArray[np.integer]) -> _Numbers:
    """Return the values of `column`, in order, where `is_known` is true, and `NOWHERE` elsewhere."""
    whole = np.full(len(is_known), NOWHERE, np.int64)
    whole[is_known] = column
    return whole


def _drawn_marks(index: TimelineIndex, marks: Lanes, window: Window) -> list[list[Any]]:
    lanes = range(len(marks.bounds) - 1)
    places, bounds = marks.within(lanes, window.start, window.end)
    slices = at_level(Slices.single(marks, places, bounds), window.level)
    lane_places = [(at, depth) for at, row in enumerate(index.rows) for depth in range(row.lane_count)]
    drawn = []
    for lane in np.flatnonzero(np.diff(slices.bounds)).tolist():
        start, end = (times[slices.bounds[lane] : slices.bounds[lane + 1]] for times in (slices.start, slices.end))
        drawn.append([*lane_places[lane], steps_between(start, end - start).tolist(), (end - start).tolist()])
    return drawn
