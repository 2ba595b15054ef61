"""Divide one rank's part of a job's critical path into events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import distinct_times
from holotrace.algorithms.nested.innermost import NO_OWNER
from holotrace.enrich.critical_path.event_graph import EventGraph
from holotrace.enrich.critical_path.path_window import PathWindow
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.host.annotations import innermost_of
from holotrace.enrich.host.host_names import MODULE_PREFIX, without_addresses
from holotrace.enrich.job_graph.call_nodes import call_graph
from holotrace.enrich.job_graph.job_path import EXPANDED
from holotrace.enrich.job_graph.rank_graph import OpenGraph, before_each, opened
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]


def expansion(
    rank_trace: RankTrace,
    window: PathWindow,
    wanted: Sequence[tuple[int, int, int]],
    data_loading: Sequence[str] = DATA_LOADING,
) -> pl.DataFrame:
    """Divide the path's legs within a rank into segments: the events on the path, and the gaps between them.

    A leg is an edge of the job's critical path, defined in `holotrace.enrich.job_graph.job_path.legs`. A leg within a
    rank represents a chain of edges of the rank's `EventGraph`, each of which determined when its target took place.

    Args:
        rank_trace: the rank.
        window: the window that was passed to `holotrace.enrich.job_graph.rank_graph.rank_graph`.
        wanted: for each leg, in time order: its number, first node and last node.
        data_loading: as in `window_activities`.

    Returns:
        In time order:

        leg          int64   number of the leg, as in `wanted`
        start_ns, end_ns  int64  on the rank's own clock
        path_class   uint8   PathClass
        event_index  uint32  null outside all events
        name         str     name of the event or, outside all events, of the innermost Python function; null if unknown
        module       str     innermost `nn.Module` around the segment; null if unknown
    """
    known = call_graph(rank_trace, window, data_loading)
    table = _segments(known.graph, opened(known), wanted)
    return _named(rank_trace, known.graph, table).select(pl.col(name).cast(kind) for name, kind in EXPANDED.items())


def _segments(graph: EventGraph, open_graph: OpenGraph, wanted: Sequence[tuple[int, int, int]]) -> pl.DataFrame:
    """Return the edges of each chain, with start and end times; edges that lead back in time get length 0."""
    chains = _chains(open_graph, wanted)
    rows = np.array([edge for _, chain in chains for edge in chain], np.int64)
    legs = np.repeat([leg for leg, _ in chains], [len(chain) for _, chain in chains]).astype(np.int64)
    time_ns = graph.nodes["time_ns"].to_numpy()
    source, target = open_graph.edges.source[rows], open_graph.edges.target[rows]
    edges = graph.edges[open_graph.rows[rows]]
    return pl.DataFrame(
        {"leg": legs, "source": source, "target": target, "start_ns": time_ns[source], "end_ns": time_ns[target]}
    ).with_columns(edges["path_class"], edges["activity"], pl.col("start_ns").clip(upper_bound="end_ns"))


def _chains(open_graph: OpenGraph, wanted: Sequence[tuple[int, int, int]]) -> list[tuple[int, list[int]]]:
    """Return, for each leg, its number and its edges in time order.

    For each leg, walk back along the binding edges from its last node, and stop at the first point of `RankGraph`: the
    request, start or end of a call, or the start of the window.
    """
    before, binding = before_each(open_graph).tolist(), open_graph.binding.tolist()
    is_point = open_graph.is_point.tolist()
    chains = []
    for leg, _, last in wanted:
        chain, node = [], last
        while binding[node] >= 0 and (node == last or not is_point[node]):
            chain.append(binding[node])
            node = before[node]
        chains.append((leg, chain[::-1]))
    return chains


def _named(rank_trace: RankTrace, graph: EventGraph, table: pl.DataFrame) -> pl.DataFrame:
    activities = graph.activities.with_columns(
        without_addresses(rank_trace.texts(graph.activities["name"])).alias("text")
    )
    functions = _functions(rank_trace, graph)
    table = _cut_at_functions(table.with_columns(_thread(graph, table)), functions)
    inside = activities[["event_index", "text", "track_id", "start_ns", "device"]][table["activity"]]
    launched = of_events(launches(rank_trace), inside["event_index"])["launch_index"]
    calls = of_events(rank_trace.events_of(LAUNCH_KINDS, ["event_index", "track_id", "start_ns"]), launched)
    is_gap = table["activity"].is_null()
    middle = (table["start_ns"] + table["end_ns"]) // 2
    moments = pl.DataFrame(
        {
            "track_id": calls["track_id"]
            .zip_with(calls["track_id"].is_not_null(), inside["track_id"])
            .zip_with(~is_gap, table["thread"]),
            "moment": calls["start_ns"].zip_with(calls["start_ns"].is_not_null(), middle),
        }
    )
    return table.with_columns(
        inside["event_index"],
        inside["text"].zip_with(~is_gap, _python_function(rank_trace, functions, moments, is_gap)).alias("name"),
        _module(rank_trace, functions, moments),
    )


def _thread(graph: EventGraph, table: pl.DataFrame) -> pl.Series:
    """Return each edge's thread: the thread of its source or, at the start of the window, the thread of its target."""
    from_source, from_target = (graph.nodes["activity"].gather(table[end]) for end in ("source", "target"))
    near = from_source.zip_with(from_source.is_not_null(), from_target)
    return graph.activities["track_id"].gather(near).alias("thread")


def _cut_at_functions(table: pl.DataFrame, functions: pl.DataFrame) -> pl.DataFrame:
    """Split gaps between events wherever a Python function of the thread starts or ends, so each part gets one name."""
    cuts = [np.empty(0, np.int64)]
    first, last = (np.zeros(len(table), np.int64) for _ in range(2))
    start, end = (table[name].to_numpy() for name in ("start_ns", "end_ns"))
    thread = table["thread"].fill_null(-1).to_numpy()
    is_gap = table["activity"].is_null().to_numpy()
    for (track,), of_thread in functions.partition_by("track_id", as_dict=True).items():
        times = distinct_times(of_thread["start_ns"].to_numpy(), of_thread["end_ns"].to_numpy())
        gaps = np.flatnonzero(is_gap & (thread == track))
        offset = sum(map(len, cuts))
        first[gaps] = offset + np.searchsorted(times, start[gaps], side="right")
        last[gaps] = offset + np.maximum(np.searchsorted(times, end[gaps]), first[gaps] - offset)
        cuts.append(times)
    counts = last - first + 1
    rows = np.repeat(np.arange(len(table)), counts)
    position = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    bounds = np.append(np.concatenate(cuts), 0)
    before, after = (bounds[np.minimum(first[rows] + position - back, len(bounds) - 1)] for back in (1, 0))
    return table[rows].with_columns(
        start_ns=np.where(position == 0, start[rows], before),
        end_ns=np.where(position == counts[rows] - 1, end[rows], after),
    )


def _python_function(
    rank_trace: RankTrace, functions: pl.DataFrame, moments: pl.DataFrame, wanted: pl.Series
) -> pl.Series:
    """Return the innermost Python function at each wanted time; null at other times and outside all functions."""
    asked = moments.with_columns(pl.when(wanted).then("moment").alias("moment"))
    return _innermost_text(rank_trace, functions, asked)


def _module(rank_trace: RankTrace, functions: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    ids = rank_trace.strings.str.starts_with(MODULE_PREFIX).arg_true().cast(pl.UInt32)
    modules = functions.filter(pl.col("name").is_in(ids.implode()))
    return _innermost_text(rank_trace, modules, moments).str.strip_prefix(MODULE_PREFIX).alias("module")


def _functions(rank_trace: RankTrace, graph: EventGraph) -> pl.DataFrame:
    ranges = event_ranges(rank_trace, [EventKind.PYTHON_FUNCTION], ["name", "track_id", "start_ns", "end_ns"])
    return ranges.filter((pl.col("start_ns") <= graph.window_end_ns) & (pl.col("end_ns") >= graph.window_start_ns))


def _innermost_text(rank_trace: RankTrace, ranges: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    rows = innermost_of(ranges, moments, ["track_id"])
    names = ranges["name"].gather(pl.Series(rows).replace(NO_OWNER, None).cast(pl.UInt32))
    return without_addresses(rank_trace.texts(names))
