"""Builds the graph of the events of a window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges, has_cycle, measured_binding
from holotrace.algorithms.graphs.threads import Points
from holotrace.enrich.critical_path.device_edges import device_edges, inferred_waits
from holotrace.enrich.critical_path.event_graph import EdgeType, EventGraph, PathClass
from holotrace.enrich.critical_path.graph_edges import GraphEdges, graph_edges, joined
from holotrace.enrich.critical_path.host_edges import host_edges
from holotrace.enrich.critical_path.implied_waits import implied_waits
from holotrace.enrich.critical_path.path_window import PathWindow
from holotrace.enrich.critical_path.window_activities import DATA_LOADING, WindowActivities, window_activities
from holotrace.store.trace import RankTrace

_FIRST_NODE = 0
_NODES_OF_THE_WINDOW = 2
_ALONG_A_TRACK = (EdgeType.OPERATOR, EdgeType.HOST_GAP, EdgeType.WINDOW)
_GRAPH_COLUMNS = (
    "event_index",
    "kind",
    "name",
    "track_id",
    "device",
    "stream",
    "kernel_kind",
    "start_ns",
    "end_ns",
    "is_waiting",
)


def event_graph(rank_trace: RankTrace, window: PathWindow, data_loading: Sequence[str] = DATA_LOADING) -> EventGraph:
    """Return the graph of a window; see `window_activities` for `data_loading`.

    The arrival time of an edge is the measured time of its source node plus the weight of the edge. Of the edges into a
    node, the one with the latest arrival time is the node's binding edge. The delay of a binding edge is the node's
    measured time minus the edge's arrival time. Therefore the longest path through the graph is exactly as long as the
    window.
    """
    return graph_of(rank_trace, window_activities(rank_trace, window, data_loading), window.track_id)


def graph_of(rank_trace: RankTrace, activities: WindowActivities, track_id: int | None) -> EventGraph:
    """Return the graph of these activities; for `track_id`, see `PathWindow`."""
    inferred = inferred_waits(rank_trace, activities)
    known = [*device_edges(rank_trace, activities), *host_edges(rank_trace, activities, track_id)]
    waits = [inferred, implied_waits(activities, inferred)]
    edges = _with_ends(activities, _without_cycle(activities.nodes, joined([*known, *waits])))
    return _graph(activities, edges, len(inferred.source))


def _without_cycle(nodes: Points, edges: GraphEdges) -> GraphEdges:
    """Break cycles, if there are any, by removing edges between tracks.

    First remove the edges that lead back in time. If cycles remain, also remove the edges that take no time.
    """
    if not _has_cycle(nodes, edges):
        return edges
    along_a_track = np.isin(edges.type, _ALONG_A_TRACK)
    lasts_ns = nodes.time_ns[edges.target] - nodes.time_ns[edges.source]
    kept = edges.where(along_a_track | (lasts_ns >= 0))
    return edges.where(along_a_track | (lasts_ns > 0)) if _has_cycle(nodes, kept) else kept


def _has_cycle(nodes: Points, edges: GraphEdges) -> bool:
    return has_cycle(Edges(len(nodes.time_ns), edges.source, edges.target))


def _with_ends(activities: WindowActivities, edges: GraphEdges) -> GraphEdges:
    """Connect nodes without a predecessor to the start of the window, and nodes without a successor to its end."""
    count = len(activities.nodes.time_ns)
    first, last = (_inner_nodes_without(side, count) for side in (edges.target, edges.source))
    begun = activities.nodes.activity[first]
    is_launched = activities.is_host[begun] | activities.table["launch_index"].is_not_null().to_numpy()[begun]
    before = np.where(is_launched, PathClass.LAUNCH_DELAY, PathClass.UNKNOWN).astype(np.uint8)
    beginning = np.full(len(first), _FIRST_NODE)
    if count == _NODES_OF_THE_WINDOW:
        last = np.array([_FIRST_NODE])
    end = np.full(len(last), count - 1)
    return joined(
        [
            graph_edges(last, end, EdgeType.WINDOW, PathClass.HOST_GAP),
            edges,
            graph_edges(beginning, first, EdgeType.WINDOW, before, activity=begun),
        ]
    )


def _inner_nodes_without(edge_ends: npt.NDArray[np.uint32], node_count: int) -> npt.NDArray[np.int64]:
    has_edge = np.zeros(node_count, np.bool_)
    has_edge[edge_ends] = True
    return 1 + np.flatnonzero(~has_edge[1:-1])


def _graph(activities: WindowActivities, edges: GraphEdges, inferred_wait_count: int) -> EventGraph:
    nodes = activities.nodes
    found = measured_binding(Edges(len(nodes.time_ns), edges.source, edges.target), nodes.time_ns, edges.weight_ns)
    return EventGraph(
        window_start_ns=activities.window_start_ns,
        window_end_ns=activities.window_end_ns,
        activities=activities.table.select(_GRAPH_COLUMNS),
        nodes=pl.DataFrame(
            {"activity": _optional(nodes.activity), "is_start": nodes.is_start, "time_ns": nodes.time_ns}
        ),
        edges=pl.DataFrame(
            {
                "source": edges.source,
                "target": edges.target,
                "type": edges.type,
                "weight_ns": edges.weight_ns,
                "delay_ns": found.delay,
                "path_class": edges.path_class,
                "activity": _optional(edges.activity),
            }
        ),
        binding=pl.Series("binding", found.binding),
        contradicted_count=found.contradicted_count,
        inferred_wait_count=inferred_wait_count,
        unknown_launch_count=activities.unknown_launch_count,
    )


def _optional(rows: np.ndarray) -> pl.Series:
    return pl.Series(rows).cast(pl.UInt32, strict=False)  # `NO_ACTIVITY` becomes null
