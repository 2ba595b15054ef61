"""Apply changes to the time that threads spend in Python functions, outside operators and runtime calls."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, nesting
from holotrace.enrich.critical_path.event_graph import EdgeType, EventGraph, PathClass
from holotrace.enrich.critical_path.what_if import Remove, Replace, Replay, Scale
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_Int64: TypeAlias = npt.NDArray[np.int64]

_COLUMNS = ["event_index", "kind", "name", "track_id", "start_ns", "end_ns"]


def python_functions(rank_trace: RankTrace, graph: EventGraph) -> pl.DataFrame:
    """Return the Python functions in the window, with all columns to which a change's `where` can refer."""
    ranges = event_ranges(rank_trace, [EventKind.PYTHON_FUNCTION], _COLUMNS).filter(
        (pl.col("start_ns") < graph.window_end_ns) & (pl.col("end_ns") > graph.window_start_ns)
    )
    others = {name: kind for name, kind in graph.activities.schema.items() if name not in _COLUMNS}
    return ranges.with_columns(
        rank_trace.texts(ranges["name"]).alias("name"),
        (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
        *(pl.lit(None, kind).alias(name) for name, kind in others.items()),
    )


def with_python_time(
    graph: EventGraph, replay: Replay, functions: pl.DataFrame, change: Scale | Remove | Replace
) -> Replay | None:
    """Apply a change to the time of the functions that it selects; return None if it selects no functions.

    The time of a function excludes the operators and runtime calls in it. If one selected function calls another, only
    the outer one is changed.
    """
    chosen = functions.filter(change.where.fill_null(value=False))
    if chosen.is_empty():
        return None
    parent = nesting(*(chosen[name].to_numpy() for name in ("track_id", "start_ns", "end_ns"))).parent
    outermost = chosen.filter(pl.Series(parent == NO_PARENT))
    rows, track, begin_ns, end_ns = _host_edges(graph)
    owner = graph.edges["activity"].gather(rows)
    around = graph.activities.select("start_ns", "end_ns")[owner.fill_null(0)]
    is_gap = owner.is_null().to_numpy()
    length_ns = replay.length_ns.copy()
    for thread, starts, ends in outermost.select("track_id", "start_ns", "end_ns").iter_rows():
        first, last = np.searchsorted(track, [thread, thread + 1])
        near = slice(first + max(0, np.searchsorted(begin_ns[first:last], starts, side="right") - 1), None)
        near = slice(near.start, first + int(np.searchsorted(begin_ns[first:last], ends)))
        calls_it = is_gap[near] | (
            (around["start_ns"].to_numpy()[near] <= starts) & (around["end_ns"].to_numpy()[near] >= ends)
        )
        inside = np.minimum(end_ns[near], ends) - np.maximum(begin_ns[near], starts)
        own = np.where(calls_it, np.maximum(0, inside), 0)
        factor = _factor(change, int(own.sum()))
        edges = rows[near]
        length_ns[edges] = np.maximum(0, length_ns[edges] - np.where(length_ns[edges] > 0, own * (1 - factor), 0))
    return Replay(replay.edges, length_ns)


def _factor(change: Scale | Remove | Replace, own_ns: int) -> float:
    if isinstance(change, Scale):
        return change.factor
    return change.duration_ns / max(1, own_ns) if isinstance(change, Replace) else 0.0


def _host_edges(graph: EventGraph) -> tuple[_Int64, _Int64, _Int64, _Int64]:
    """Return the edges along threads or at the window's ends, sorted by thread and start.

    Each edge is returned as its row in `graph.edges`, its thread, its start and its end.
    """
    owner = graph.nodes["activity"]
    beside = owner.gather(graph.edges["source"]).fill_null(owner.gather(graph.edges["target"]))
    tracks = graph.activities["track_id"].cast(pl.Int64).gather(beside)
    is_of_host = graph.edges["path_class"] == PathClass.HOST_GAP
    to_window = (graph.edges["type"] == EdgeType.WINDOW) & is_of_host & (graph.edges["weight_ns"] > 0)
    is_along = graph.edges["type"].is_in([EdgeType.OPERATOR, EdgeType.HOST_GAP]) | to_window
    along = is_along & tracks.is_not_null()
    rows = along.arg_true().to_numpy().astype(np.int64)
    time_ns = graph.nodes["time_ns"].to_numpy()
    begin_ns, end_ns = (time_ns[graph.edges[side].to_numpy()[rows]] for side in ("source", "target"))
    track = tracks.gather(rows).to_numpy()
    order = np.lexsort((begin_ns, track))
    return rows[order], track[order], begin_ns[order], end_ns[order]
