"""Dependencies of host work: within each thread, and between threads that wait for each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holotrace.enrich.critical_path.event_graph import EdgeType, PathClass
from holotrace.enrich.critical_path.graph_edges import NO_ACTIVITY, GraphEdges, graph_edges, joined, same_as_before
from holotrace.enrich.critical_path.window_activities import WindowActivities
from holotrace.enrich.host.forward_backward import forward_of
from holotrace.schema import LAUNCH_KINDS
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

_FIRST_NODE = 0


@dataclass(frozen=True)
class _Threads:
    """The points of all threads, thread by thread and in order within each.

    node      node of each point
    track     track of each point
    owner     the innermost activity from each point to the next one of its thread; -1 in gaps and after the last point
    length_ns ns from each point to the next; 0 after the last point
    is_last   whether a point is the last one of its thread
    time_ns   time of each point
    """

    node: _Rows
    track: _Rows
    owner: _Rows
    length_ns: _Rows
    is_last: _Mask
    time_ns: _Rows


def host_edges(rank_trace: RankTrace, activities: WindowActivities, track_id: int | None) -> list[GraphEdges]:
    """Return the edges of the host; of edges that arrive at the same time, the first binds.

    The points of a thread are the starts and ends of its ranges. The time between two points is the weight of the edge
    between them, except while the thread waits: in a call that waits for a device; in a gap of the main thread in which
    other threads work; and, in other threads, between the parts of their work that the main thread starts. The main
    thread is `track_id` or, if that has no points, the thread with the most ranges.

    Another thread works in a gap of the main thread if it ends its work within the gap and is busy for at least half of
    it. If a thread runs the backward operators of forward operators of the main thread, its gaps count as work, and it
    may also work inside an operator of the main thread, because the main thread requests the backward pass and waits
    for it.
    """
    threads = _threads(activities)
    if not len(threads.node):
        return []
    others = _Others.of(activities, threads, threads.track == _main_track(threads, track_id))
    waits = _segments_others_work_in(rank_trace, activities, threads, others)
    awaited = _awaited_later(activities, threads, others, waits)
    return [
        _back_to_main(threads, others, waits),
        _from_main(threads, others),
        _in_order(activities, threads, others),
        _waiting_for(threads, others, awaited),
        _along_threads(activities, threads, others, waits, awaited),
        _to_the_window(threads, others, waits),
    ]


def _threads(activities: WindowActivities) -> _Threads:
    nodes = activities.nodes
    host_nodes = 1 + np.flatnonzero(activities.is_host[nodes.activity[1:-1]])
    tracks = activities.column("lane")[nodes.activity[host_nodes]]
    order = np.argsort(tracks, kind="stable")
    node, track = host_nodes[order], tracks[order]
    time_ns = nodes.time_ns[node]
    is_last = np.roll(~same_as_before(track), -1)
    length_ns = np.where(is_last, 0, np.roll(time_ns, -1) - time_ns)
    return _Threads(node, track, _owners(activities, node, is_last), length_ns, is_last, time_ns)


def _owners(activities: WindowActivities, node: _Rows, is_last: _Mask) -> _Rows:
    """Return the innermost activity after each point.

    After a start, it is the activity that starts; after an end, the activity that ends next or surrounds the next start.
    """
    activity, is_start = activities.nodes.activity[node], activities.nodes.is_start[node]
    following, following_starts = np.roll(activity, -1), np.roll(is_start, -1)
    around_next = activities.column("parent")[following]
    after_end = np.where(following_starts, around_next, following)
    return np.where(is_last, NO_ACTIVITY, np.where(is_start, activity, after_end))


def _main_track(threads: _Threads, track_id: int | None) -> int:
    if track_id is not None and (threads.track == track_id).any():
        return track_id
    return int(np.argmax(np.bincount(threads.track)))


@dataclass(frozen=True)
class _Others:
    """The points of other threads, located in the segments between points of the main thread.

    The first segment begins with the window, the last one ends with the window, and points of the main thread separate
    them.

    node     nodes of the start of the window, of each point of the main thread, and of the end of the window
    time_ns  times of these nodes, but for the last one the end of the host's part of the window
    segment  for each point, the segment that contains it, including the end of the segment
    is_main  for each point, whether it belongs to the main thread
    begins   for each point, whether work of another thread begins there, released by the main thread
    ends     for each point, whether work of another thread ends there, which the main thread waits for
    """

    node: _Rows
    time_ns: _Rows
    segment: _Rows
    is_main: _Mask
    begins: _Mask
    ends: _Mask

    @classmethod
    def of(cls, activities: WindowActivities, threads: _Threads, is_main: _Mask) -> _Others:
        node = np.concatenate([[_FIRST_NODE], threads.node[is_main], [len(activities.nodes.time_ns) - 1]])
        time_ns = np.concatenate([[activities.window_start_ns], threads.time_ns[is_main], [activities.host_end_ns]])
        segment = np.maximum(np.searchsorted(time_ns, threads.time_ns, side="left") - 1, 0)
        rests = (threads.owner == NO_ACTIVITY) & (threads.is_last | (np.roll(segment, -1) != segment))
        ends = ~is_main & rests
        begins = ~is_main & (~same_as_before(threads.track) | np.roll(ends, 1))
        return cls(node, time_ns, segment, is_main, begins, ends)


def _segments_others_work_in(
    rank_trace: RankTrace, activities: WindowActivities, threads: _Threads, others: _Others
) -> _Mask:
    """Return whether the main thread waits for other threads in each of its segments."""
    length_ns = np.diff(others.time_ns)
    if others.is_main.all():
        return np.zeros(len(length_ns), np.bool_)
    is_backward = ~others.is_main & _is_backward(rank_trace, activities, threads, others)
    owned = ~others.is_main & (threads.owner != NO_ACTIVITY)
    backward_ns = _busy_ns(threads, others, is_backward & ~others.ends)
    busy_ns = backward_ns + _busy_ns(threads, others, owned & ~is_backward)
    owner = np.concatenate([[NO_ACTIVITY], threads.owner[others.is_main]])
    in_call = np.isin(activities.column("kind")[owner], LAUNCH_KINDS)
    is_waiting = activities.column("is_waiting")[owner] & (owner != NO_ACTIVITY) & ~in_call
    counted_ns = np.where((owner == NO_ACTIVITY) | is_waiting, busy_ns, np.where(in_call, 0, backward_ns))
    someone_ends = np.bincount(others.segment[others.ends], minlength=len(length_ns)) > 0
    waits: _Mask = someone_ends & (counted_ns > 0) & (is_waiting | (2 * counted_ns >= length_ns))
    return waits


def _is_backward(rank_trace: RankTrace, activities: WindowActivities, threads: _Threads, others: _Others) -> _Mask:
    """Return whether the thread of each point computes gradients of operators of the main thread."""
    links, tracks = forward_of(rank_trace), activities.column("lane")
    backward, forward = activities.rows_of(links["event_index"]), activities.rows_of(links["forward_index"])
    main_track = threads.track[others.is_main][0]
    known = (backward >= 0) & ((forward < 0) | (tracks[forward] == main_track))
    return np.isin(threads.track, np.flatnonzero(np.bincount(tracks[backward[known]])))


def _busy_ns(threads: _Threads, others: _Others, chosen: _Mask) -> _Rows:
    """Return how much time the chosen parts of other threads take in each segment of the main thread."""
    ends = np.flatnonzero(chosen & ~threads.is_last) + 1
    segment = others.segment[ends]
    begin_ns = np.maximum(threads.time_ns[ends - 1], others.time_ns[segment])
    lasting = np.maximum(0, threads.time_ns[ends] - begin_ns)
    return np.bincount(segment, lasting, len(others.node) - 1).astype(np.int64)


def _back_to_main(threads: _Threads, others: _Others, waits: _Mask) -> GraphEdges:
    """Return edges from the ends of other threads' work to the point at which the main thread continues."""
    ends = np.flatnonzero(others.ends & waits[others.segment])
    target = others.node[others.segment[ends] + 1]
    return graph_edges(threads.node[ends], target, EdgeType.HAND_OVER, PathClass.HOST_GAP)


def _from_main(threads: _Threads, others: _Others) -> GraphEdges:
    """Return edges from the main thread to the beginnings of other threads' work."""
    source = others.node[others.segment[others.begins]]
    return graph_edges(source, threads.node[others.begins], EdgeType.HAND_OVER, PathClass.HOST_GAP)


def _awaited_later(activities: WindowActivities, threads: _Threads, others: _Others, waits: _Mask) -> _Rows:
    """Return the points at which collectives beside the main thread end, if it began to wait for them after their start.

    The range `gloo:send` of PyTorch ends when the thread has waited for it, however early the message was sent.
    """
    main_track = threads.track[others.is_main][0]
    is_apart = _is_apart(activities) & (activities.column("track_id") == main_track)
    activity = activities.nodes.activity[threads.node]
    ends = np.flatnonzero(others.ends & waits[others.segment] & is_apart[activity])
    began_ns = activities.column("start_ns")[activity[ends]]
    return ends[began_ns < others.time_ns[others.segment[ends]]]


def _is_apart(activities: WindowActivities) -> _Mask:
    """Return whether each activity is a collective beside the thread that recorded it."""
    apart: _Mask = activities.is_host & (activities.column("lane") != activities.column("track_id"))
    return apart


def _in_order(activities: WindowActivities, threads: _Threads, others: _Others) -> GraphEdges:
    """Return edges between consecutive collectives of each thread that performs them for the main thread."""
    tracks = activities.column("track_id").astype(np.int64)
    rows = np.flatnonzero(_is_apart(activities) & (tracks != threads.track[others.is_main][0]))
    rows = rows[np.argsort(tracks[rows], kind="stable")]
    begins_after = activities.column("end_ns")[np.roll(rows, 1)] <= activities.column("start_ns")[rows]
    later = np.flatnonzero(same_as_before(tracks[rows]) & begins_after)
    before, after = activities.nodes.end[rows[later - 1]], activities.nodes.start[rows[later]]
    return graph_edges(before, after, EdgeType.HAND_OVER, PathClass.HOST_GAP)


def _waiting_for(threads: _Threads, others: _Others, awaited: _Rows) -> GraphEdges:
    """Return edges from the point at which the main thread begins to wait for a collective to the end of the collective."""
    segment = others.segment[awaited]
    return graph_edges(
        others.node[segment],
        threads.node[awaited],
        EdgeType.OPERATOR,
        PathClass.COMMUNICATION,
        activity=threads.owner[awaited - 1],
        weight_ns=threads.time_ns[awaited] - others.time_ns[segment],
    )


def _along_threads(
    activities: WindowActivities, threads: _Threads, others: _Others, waits: _Mask, awaited: _Rows
) -> GraphEdges:
    """Return the edges from each point to the next one of its thread."""
    rests = others.ends.copy()
    rests[others.is_main] = waits[1:]
    rests[awaited - 1] = True
    rows = np.flatnonzero(~threads.is_last)
    owner = threads.owner[rows]
    waiting = rests[rows] | (activities.column("is_waiting")[owner] & (owner != NO_ACTIVITY))
    edges = graph_edges(
        threads.node[rows],
        threads.node[rows + 1],
        EdgeType.OPERATOR,
        _classes(activities, owner),
        activity=owner,
        weight_ns=np.where(waiting, 0, threads.length_ns[rows]),
    )
    edges.type[owner == NO_ACTIVITY] = EdgeType.HOST_GAP
    return edges


def _classes(activities: WindowActivities, owner: _Rows) -> npt.NDArray[np.uint8]:
    by_activity = np.select(
        [activities.column("is_loading"), activities.column("is_waiting"), activities.column("is_collective")],
        [PathClass.DATA_LOADING, PathClass.SYNCHRONISATION_WAIT, PathClass.COMMUNICATION],
        PathClass.CPU_OPERATOR,
    ).astype(np.uint8)
    return np.where(owner == NO_ACTIVITY, np.uint8(PathClass.HOST_GAP), by_activity[owner])


def _to_the_window(threads: _Threads, others: _Others, waits: _Mask) -> GraphEdges:
    """Connect the last points of other threads to the end of the window, and the main thread to its start and end."""
    last = np.flatnonzero(threads.is_last & ~others.is_main)
    main = graph_edges(
        others.node[[0, -2]],
        others.node[[1, -1]],
        EdgeType.WINDOW,
        PathClass.HOST_GAP,
        weight_ns=np.where(waits, 0, np.diff(others.time_ns))[[0, -1]],
    )
    sink = np.full(len(last), others.node[-1])
    return joined([graph_edges(threads.node[last], sink, EdgeType.WINDOW, PathClass.HOST_GAP), main])
