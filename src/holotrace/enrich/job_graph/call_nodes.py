"""The event graph of a rank, with the nodes at which each communication call is requested, starts and ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.critical_path.event_graph import EventGraph
from holotrace.enrich.critical_path.graph_building import graph_of
from holotrace.enrich.critical_path.path_window import PathWindow
from holotrace.enrich.critical_path.window_activities import DATA_LOADING, WindowActivities, window_activities
from holotrace.store.trace import RankTrace


@dataclass(frozen=True, eq=False)
class CallGraph(EqualByContent):
    """The event graph of a rank for a window of time, and the communication calls in this window.

    graph  the event graph. A collective that the host performs is an activity in its own lane, apart from the thread
           that requested it. An edge leads from the requesting thread to the collective's start. If the thread waits
           for the collective, another edge leads from the collective's end back to the thread. If the wait begins after the
           collective's start, a third edge leads from the start of the wait to the collective's end.
    calls  the calls within the window, in the order of `of_rank(rank_trace).calls`:

        event_index  uint32  as in `of_rank(rank_trace).calls`
        activity     uint32  row of `graph.activities`
        asked_node   uint32  row of `graph.nodes`. For host calls, this is the last node of the requesting thread at or
                             before the time of the request. For kernels, asked_node equals start_node
        start_node   uint32  row of `graph.nodes`
        end_node     uint32  row of `graph.nodes`
    """

    graph: EventGraph
    calls: pl.DataFrame


def call_graph(rank_trace: RankTrace, window: PathWindow, data_loading: Sequence[str] = DATA_LOADING) -> CallGraph:
    """Return the event graph of a window and the calls in it; `data_loading` is passed to `window_activities`."""
    activities = window_activities(rank_trace, window, tuple(data_loading), collectives_apart=True)
    graph = graph_of(rank_trace, activities, window.track_id)
    return CallGraph(graph, _calls(rank_trace, activities))


def _calls(rank_trace: RankTrace, activities: WindowActivities) -> pl.DataFrame:
    calls = of_rank(rank_trace).calls.select("event_index", "asked_ns")
    rows = activities.rows_of(calls["event_index"])
    inside = rows >= 0
    calls, rows = calls.filter(inside), rows[inside]
    nodes = {
        "activity": rows,
        "asked_node": _asked(activities, calls["asked_ns"], rows),
        "start_node": activities.nodes.start[rows],
        "end_node": activities.nodes.end[rows],
    }
    return calls.select("event_index").with_columns(
        pl.Series(name, values, pl.UInt32) for name, values in nodes.items()
    )


def _asked(activities: WindowActivities, asked_ns: pl.Series, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return, for each call, the last node of the requesting thread at or before the time of the request.

    If the call is a kernel, or if the thread has no node that early, return the node at which the call starts. If
    the host performs the call, the call is on a separate lane, and the thread that recorded it requested it.
    """
    nodes, tracks, lanes = activities.nodes, activities.column("track_id"), activities.column("lane")
    asked: npt.NDArray[np.int64] = nodes.start[rows].copy()
    for track in np.unique(tracks[rows][activities.is_host[rows] & (lanes[rows] != tracks[rows])]):
        of_thread = 1 + np.flatnonzero((lanes == track)[nodes.activity[1:-1]])
        own = np.flatnonzero((tracks[rows] == track) & (lanes[rows] != track))
        wanted_ns = asked_ns.to_numpy()[own]
        last = np.searchsorted(nodes.time_ns[of_thread], wanted_ns, side="right") - 1
        asked[own[last >= 0]] = of_thread[last[last >= 0]]
    return asked
