"""Reduce the graph of one rank to the points that matter to other ranks: its calls, and the ends of the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges, contracted, measured_binding
from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above
from holotrace.enrich.critical_path.path_window import PathWindow
from holotrace.enrich.critical_path.replayed_lengths import replayed_lengths_ns
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.enrich.job_graph.call_nodes import CallGraph, call_graph
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]


class RankGraph(NamedTuple):
    """The points of a rank and the longest paths between them; they take a few hundred bytes per call.

    window      the window, extended to the end of its device work
    node        per point: its row in `EventGraph.nodes`
    time_ns     the measured time of each point, on the rank's own clock; the first and last point are the window's ends
    source, target, length_ns  the edges between points. No edge leads from a call's start to its own end, because other
                               ranks may delay the end. If an edge leads to the end of a call, its length excludes the
                               time between the last event before this end and the end itself.
    reached_from  per point: the point where its binding chain begins; -1 for the first point, and for the end of a
                  call if only communication delays this end
    chain_ns    per point: the length of its binding chain
    calls       event_index, and the points where the call was requested (asked), began (start) and ended (end), all of
                them uint32
    contradicted_count, unknown_launch_count, inferred_wait_count   as in `EventGraph`
    """

    window: PathWindow
    node: _Rows
    time_ns: _Rows
    source: npt.NDArray[np.uint32]
    target: npt.NDArray[np.uint32]
    length_ns: _Rows
    reached_from: _Rows
    chain_ns: _Rows
    calls: pl.DataFrame
    contradicted_count: int
    unknown_launch_count: int
    inferred_wait_count: int


class OpenGraph(NamedTuple):
    """The graph of a rank, without edges from the start of a call to its end.

    edges      the edges that remain
    rows       per edge: its row in `EventGraph.edges`
    length_ns  per edge: weight plus delay; 0 for edges to the ends of calls
    is_to_end  per edge: whether it leads to the end of a call
    binding    per node: the edge among `edges` that arrives last, -1 if there is none
    is_point   per node: whether it is a point of `RankGraph`
    """

    edges: Edges
    rows: _Rows
    length_ns: _Rows
    is_to_end: npt.NDArray[np.bool_]
    binding: _Rows
    is_point: npt.NDArray[np.bool_]


def rank_graph(rank_trace: RankTrace, window: PathWindow, data_loading: Sequence[str] = DATA_LOADING) -> RankGraph:
    """Return the reduced graph of a rank within a window; `data_loading` is passed to `window_activities`."""
    known = call_graph(rank_trace, window, data_loading)
    return reduced(known, opened(known), window)


def opened(known: CallGraph) -> OpenGraph:
    """Return the graph of a rank without the edges that lead from the start of a call to the end of the same call."""
    graph = known.graph
    count = len(graph.nodes)
    is_point, start_of = points(known)
    source, target = graph.edges["source"].to_numpy(), graph.edges["target"].to_numpy()
    rows = np.flatnonzero(source != start_of[target])
    edges = Edges(count, source[rows], target[rows])
    is_to_end = start_of[edges.target] != NO_PARENT
    weight_ns = graph.edges["weight_ns"].to_numpy()[rows]
    time_ns = graph.nodes["time_ns"].to_numpy()
    return OpenGraph(
        edges,
        rows,
        np.where(is_to_end, 0, replayed_lengths_ns(graph)[rows]),
        is_to_end,
        measured_binding(edges, time_ns, np.where(is_to_end, 0, weight_ns)).binding,
        is_point,
    )


def points(known: CallGraph) -> tuple[npt.NDArray[np.bool_], _Rows]:
    """Return for each node: whether it is a point of `RankGraph`; the start node of the call that ends there, or -1."""
    count = len(known.graph.nodes)
    is_point = np.zeros(count, np.bool_)
    is_point[[0, -1]] = True
    for name in ("asked_node", "start_node", "end_node"):
        is_point[known.calls[name].to_numpy()] = True
    start_of = np.full(count, NO_PARENT)
    start_of[known.calls["end_node"].to_numpy()] = known.calls["start_node"].to_numpy()
    return is_point, start_of


def reduced(known: CallGraph, graph: OpenGraph, window: PathWindow) -> RankGraph:
    """Return the points of a graph and the longest paths between them."""
    short = contracted(graph.edges, graph.length_ns, graph.is_point)
    kept = graph.is_point.copy()
    kept[short.source] = kept[short.target] = True
    nodes = np.flatnonzero(kept)
    number = np.cumsum(kept) - 1
    time_ns = known.graph.nodes["time_ns"].to_numpy()
    before = before_each(graph)
    reached = np.where(before[nodes] == NO_PARENT, NO_PARENT, reached_point(graph, before, before[nodes]))
    is_reached = reached != NO_PARENT
    arrives_ns = np.where(_is_end(known, nodes), time_ns[before[nodes]], time_ns[nodes])
    calls = known.calls
    return RankGraph(
        window=PathWindow(window.name, known.graph.window_start_ns, known.graph.window_end_ns, window.track_id),
        node=nodes,
        time_ns=time_ns[nodes],
        source=number[short.source].astype(np.uint32),
        target=number[short.target].astype(np.uint32),
        length_ns=short.weight,
        reached_from=np.where(is_reached, number[reached], NO_PARENT),
        chain_ns=np.where(is_reached, arrives_ns - time_ns[reached], 0),
        calls=calls.select(
            "event_index",
            *(
                pl.Series(name, number[calls[f"{name}_node"].to_numpy()], pl.UInt32)
                for name in ("asked", "start", "end")
            ),
        ),
        contradicted_count=known.graph.contradicted_count,
        unknown_launch_count=known.graph.unknown_launch_count,
        inferred_wait_count=known.graph.inferred_wait_count,
    )


def before_each(graph: OpenGraph) -> _Rows:
    """Return the source of each node's binding edge; -1 if the node has none."""
    return np.where(graph.binding == NO_PARENT, NO_PARENT, graph.edges.source[graph.binding].astype(np.int64))


def reached_point(graph: OpenGraph, before: _Rows, nodes: _Rows) -> _Rows:
    """Return the nearest point on the way back from each node along binding edges, or -1 if there is none.

    For a node that is itself a point, this is the node itself.
    """
    return itself_or_above(before, graph.is_point, nodes)


def _is_end(known: CallGraph, nodes: _Rows) -> npt.NDArray[np.bool_]:
    is_end = np.zeros(len(known.graph.nodes), np.bool_)
    is_end[known.calls["end_node"].to_numpy()] = True
    ends: npt.NDArray[np.bool_] = is_end[nodes]
    return ends
