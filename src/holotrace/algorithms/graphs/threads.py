"""Sort the starts and ends of activities, and find dependencies between a main thread and threads that work for it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace import _native

_Int64: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]

NO_LANE = -1


class Points(NamedTuple):
    """The starts and ends of activities in time order; the first and the last point are the bounds of a window.

    start, end   points where each activity starts and ends
    time_ns      time of each point
    activity     activity of each point; -1 for the first and the last
    is_start     whether each point is the start of its activity; true for the first point, false for the last
    """

    start: _Int64
    end: _Int64
    time_ns: _Int64
    activity: _Int64
    is_start: _Flags


def sorted_points(start_ns: _Int64, end_ns: _Int64, first_ns: int, last_ns: int) -> Points:
    """Sort the starts and ends of activities within a window.

    At equal times, the ends of earlier activities come first, then starts, then activities without length.
    """
    return Points(*_native.sorted_points(start_ns, end_ns, first_ns, last_ns))


class Ranges(NamedTuple):
    """Activities; some of them are ranges on threads.

    lane        thread of each range, or a separate lane; `NO_LANE` for activities that are not on a thread
    thread      the thread that recorded the range
    parent      the range around each range in the same lane; -1 if there is none
    start_ns
    is_waiting  whether the thread waits during the range
    is_call     whether the range is a call during which other threads never work for its thread
    ends_on_thread  for a range in a separate lane: whether its end is the time at which `thread` stopped waiting
    """

    lane: _Int64
    thread: _Int64
    parent: _Int64
    start_ns: _Int64
    is_waiting: _Flags
    is_call: _Flags
    ends_on_thread: _Flags


class ThreadEdges(NamedTuple):
    """Edges between points.

    source, target  points
    weight_ns       the minimum time from source to target
    owner           the range that spends this time; -1 if there is none
    counts          the number of edges of each kind, in this order: from other lanes to the main thread; from the main
                    thread to other lanes; from the start of a wait to the end of the awaited range; along lanes; at the
                    ends of the window
    """

    source: npt.NDArray[np.uint32]
    target: npt.NDArray[np.uint32]
    weight_ns: _Int64
    owner: npt.NDArray[np.int32]
    counts: _Int64

    def between(self, begin: int, end: int) -> ThreadEdges:
        """Return the edges in the rows from `begin` up to, but not including, `end`."""
        rows = slice(begin, end)
        columns = (self.source[rows], self.target[rows], self.weight_ns[rows], self.owner[rows])
        return ThreadEdges(*columns, self.counts)


def thread_edges(ranges: Ranges, points: Points, main_lane: int, works_inside: _Int64, host_end_ns: int) -> ThreadEdges:
    """Return the dependencies along lanes, and between the main thread and lanes that work for it.

    The starts and ends of the main thread's ranges divide time into segments. A pause of another lane is a gap between
    its ranges that continues into a later segment. Between two pauses, the lane works without interruption.

    The main thread waits in a segment if a pause of another lane begins there, and if other lanes are busy for at least
    half of the segment. A lane is busy in its ranges; a lane in `works_inside` is also busy in the gaps that are not
    pauses. If the main thread is in a range during the segment, another rule applies:

    - In a range with `is_waiting`, other lanes need not be busy for half of the segment; any busy time is enough.
    - In a call (`is_call`), the main thread does not wait.
    - In any other range, only the busy time of the lanes in `works_inside` counts toward half of the segment.

    An edge along a lane has weight 0 in three cases: the main thread waits, another lane pauses, or the edge is inside
    a range with `is_waiting`.

    Args:
        ranges: the activities.
        points: their `sorted_points`.
        main_lane: the lane of the main thread.
        works_inside: lanes that the main thread may wait for even in a range whose `is_waiting` is false.
        host_end_ns: the end of the last segment.
    """
    of_points = (points.activity, points.is_start, points.time_ns)
    return ThreadEdges(*_native.thread_edges(ranges, of_points, main_lane, works_inside.tolist(), host_end_ns))
