"""Finds the dependencies of host work: within each thread, and between threads that wait for each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.threads import NO_LANE, Ranges, ThreadEdges, thread_edges
from holotrace.enrich.critical_path.event_graph import EdgeType, PathClass
from holotrace.enrich.critical_path.graph_edges import NO_ACTIVITY, GraphEdges, graph_edges, same_as_before
from holotrace.enrich.critical_path.window_activities import WindowActivities
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.host.forward_backward import forward_of, threads_joined_by_arrows
from holotrace.schema import LAUNCH_KINDS
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

_ENDS_ON_THREAD = r"^gloo:(send|recv)"


def host_edges(rank_trace: RankTrace, activities: WindowActivities, track_id: int | None) -> list[GraphEdges]:
    """Return the edges of the host.

    If several edges reach a node at the same time, the first in the list is its binding edge.

    The nodes of a thread are the starts and ends of its ranges. An edge leads from each node to the next, and its
    weight is the time between them, except while the thread waits:

    - every thread waits in calls that wait for a device;
    - the main thread waits in gaps in which other threads work;
    - any other thread waits from the end of its work until the main thread gives it more work.

    The main thread is `track_id` or, if that thread has no ranges here, the thread with the most ranges.

    Another thread is assumed to work in a gap of the main thread if its work ends within the gap and it is busy for at
    least half of the gap. A thread that runs the backward operators of the main thread's forward operators is treated
    as busy even between its ranges. Such a backward thread may also work while the main thread is inside an operator,
    because this operator may have started the backward pass and may be waiting for the pass to end.

    If the main thread begins to wait for a collective that has already started on another lane, an edge leads from the
    start of the wait to the end of the collective. PyTorch's ranges `gloo:send` and `gloo:recv` always end in such a
    wait, even if the message arrived earlier:
    https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupGloo.cpp (`SendWork::wait`).
    """
    if not activities.is_host.any():
        return []
    main = _main_lane(activities, track_id)
    edges = thread_edges(
        _ranges(rank_trace, activities),
        activities.nodes,
        main,
        _backward_lanes(rank_trace, activities, main),
        activities.host_end_ns,
    )
    back, from_main, waiting, along, to_window = _kinds(edges)
    return [
        _typed(back, EdgeType.HAND_OVER),
        _typed(from_main, EdgeType.HAND_OVER),
        _in_order(activities, main),
        _typed(waiting, EdgeType.OPERATOR, PathClass.COMMUNICATION),
        _along_threads(activities, along),
        _typed(to_window, EdgeType.WINDOW),
    ]


def _main_lane(activities: WindowActivities, track_id: int | None) -> int:
    lanes = activities.column("lane")[activities.is_host]
    if track_id is not None and (lanes == track_id).any():
        return track_id
    return int(np.argmax(np.bincount(lanes)))


def _ranges(rank_trace: RankTrace, activities: WindowActivities) -> Ranges:
    ends_on_thread = names_matching(rank_trace, _ENDS_ON_THREAD).to_numpy()
    return Ranges(
        np.where(activities.is_host, activities.column("lane"), NO_LANE),
        activities.column("track_id").astype(np.int64),
        activities.column("parent"),
        activities.column("start_ns"),
        activities.column("is_waiting"),
        np.isin(activities.column("kind"), LAUNCH_KINDS),
        np.isin(activities.column("name"), ends_on_thread),
    )


def _backward_lanes(rank_trace: RankTrace, activities: WindowActivities, main: int) -> _Rows:
    """Return the lanes that run the backward pass of the main thread's operators."""
    others = np.setdiff1d(activities.column("lane")[activities.is_host], main)
    if not len(others):
        return others
    pairs = threads_joined_by_arrows(rank_trace).filter(pl.col("forward_track_id") == main)
    known = np.intersect1d(others, pairs["track_id"].to_numpy())
    unknown = np.setdiff1d(_lanes_with_backward_operators(rank_trace, activities), [main, *known])
    return np.union1d(known, _linked_lanes(rank_trace, activities, main)) if len(unknown) else known


def _lanes_with_backward_operators(rank_trace: RankTrace, activities: WindowActivities) -> _Rows:
    operators = rank_trace.table("operators", ["event_index", "forward_thread_id"])
    rows = activities.rows_of(operators.filter(pl.col("forward_thread_id") > 0)["event_index"])
    return np.unique(activities.column("lane")[rows[rows >= 0]])


def _linked_lanes(rank_trace: RankTrace, activities: WindowActivities, main: int) -> _Rows:
    """Return lanes that run a backward operator whose forward operator ran on the main thread or outside the window."""
    lanes, links = activities.column("lane"), forward_of(rank_trace)
    backward, forward = activities.rows_of(links["event_index"]), activities.rows_of(links["forward_index"])
    known = (backward >= 0) & ((forward < 0) | (lanes[forward] == main))
    return np.unique(lanes[backward[known]])


def _kinds(edges: ThreadEdges) -> list[ThreadEdges]:
    """Split the edges by kind."""
    ends = np.cumsum(edges.counts).tolist()
    return [edges.between(begin, end) for begin, end in pairwise([0, *ends])]


def _typed(
    edges: ThreadEdges, edge_type: EdgeType, path_class: PathClass | npt.NDArray[np.uint8] = PathClass.HOST_GAP
) -> GraphEdges:
    return graph_edges(
        edges.source, edges.target, edge_type, path_class, activity=edges.owner, weight_ns=edges.weight_ns
    )


def _along_threads(activities: WindowActivities, along: ThreadEdges) -> GraphEdges:
    """Return the edges between consecutive points of each thread."""
    edges = _typed(along, EdgeType.OPERATOR, _classes(activities, along.owner))
    edges.type[along.owner == NO_ACTIVITY] = EdgeType.HOST_GAP
    return edges


def _classes(activities: WindowActivities, owner: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    by_activity = np.select(
        [activities.column("is_loading"), activities.column("is_waiting"), activities.column("is_collective")],
        [PathClass.DATA_LOADING, PathClass.SYNCHRONISATION_WAIT, PathClass.COMMUNICATION],
        PathClass.CPU_OPERATOR,
    )
    # Gaps have the owner -1, which selects the last element of the array: HOST_GAP.
    return np.append(by_activity, PathClass.HOST_GAP).astype(np.uint8)[owner]


def _in_order(activities: WindowActivities, main: int) -> GraphEdges:
    """Return edges between consecutive collectives of each thread that performs collectives for the main thread."""
    tracks = activities.column("track_id").astype(np.int64)
    is_apart = activities.is_host & (activities.column("lane") != tracks)
    rows = np.flatnonzero(is_apart & (tracks != main))
    rows = rows[np.argsort(tracks[rows], kind="stable")]
    begins_after = activities.column("end_ns")[np.roll(rows, 1)] <= activities.column("start_ns")[rows]
    later = np.flatnonzero(same_as_before(tracks[rows]) & begins_after)
    before, after = activities.nodes.end[rows[later - 1]], activities.nodes.start[rows[later]]
    return graph_edges(before, after, EdgeType.HAND_OVER, PathClass.HOST_GAP)
