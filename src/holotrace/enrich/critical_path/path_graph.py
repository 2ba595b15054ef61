"""Finds the longest path through the graph of the events of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from holotrace.algorithms.graphs.longest_path import path_to, slacks
from holotrace.content_equality import EqualByContent
from holotrace.enrich.critical_path.event_graph import EventGraph
from holotrace.enrich.critical_path.graph_building import event_graph
from holotrace.enrich.critical_path.path_window import path_window
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.store.trace import RankTrace


@dataclass(frozen=True, eq=False)
class PathGraph(EqualByContent):
    """The graph of one rank with its critical path.

    graph     the dependencies
    window    name of the window, such as `ProfilerStep#3`
    names     the text of each name in `graph.activities`: name uint32, text str
    segments  the path, in time order; the segments cover the window without gaps:

        edge         uint32  row of `graph.edges`
        start_ns     int64
        end_ns       int64
        path_class   uint8   PathClass
        activity     uint32  row of `graph.activities`; null in gaps

    slack_ns  int64, one value per node: how much later the node could be without delaying the end of the window; 0 on
              the path

    >>> import holotrace
    >>> import polars as pl
    >>> from holotrace.testing import small_job
    >>> graph = holotrace.critical_path_graph(small_job().ranks[1])
    >>> graph.segments.select((pl.col("end_ns") - pl.col("start_ns")).sum()).item()
    1000000
    """

    graph: EventGraph
    window: str
    names: pl.DataFrame
    segments: pl.DataFrame
    slack_ns: pl.Series


def critical_path_graph(
    rank_trace: RankTrace,
    *,
    annotation: str | None = None,
    instance: int | tuple[int, int] | None = None,
    time_range_ns: tuple[int, int] | None = None,
    data_loading: Sequence[str] = DATA_LOADING,
) -> PathGraph:
    """Return the graph of one rank with its critical path; see `holotrace.critical_path` for arguments and errors.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.critical_path_graph(small_job().ranks[1]).window
    'ProfilerStep#1'
    """
    window = path_window(rank_trace, annotation=annotation, instance=instance, time_range_ns=time_range_ns)
    graph = event_graph(rank_trace, window, tuple(data_loading))
    used = graph.activities["name"].unique().sort()
    names = used.to_frame().with_columns(rank_trace.texts(used).alias("text"))
    return PathGraph(graph, window.name, names, _segments(graph), _slack(graph))


def _segments(graph: EventGraph) -> pl.DataFrame:
    """Walk back from the end of the window along the binding edges.

    Because times are rounded or clocks differ, an edge can end before it begins. Such an edge gets a segment of length
    0 at its end, and the segment before it also ends there.
    """
    edges = graph.order()
    way = path_to(edges.node_count - 1, edges, graph.binding.to_numpy())
    nodes = np.append(edges.source[way], edges.node_count - 1)
    times = np.minimum.accumulate(graph.nodes["time_ns"].to_numpy()[nodes][::-1])[::-1]
    return pl.DataFrame(
        {"edge": way, "start_ns": times[:-1], "end_ns": times[1:]},
        schema={"edge": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64},
    ).hstack(graph.edges[way].select("path_class", "activity"))


def _slack(graph: EventGraph) -> pl.Series:
    times, edges = graph.nodes["time_ns"].to_numpy(), graph.order()
    taken = graph.edges.select(pl.col("weight_ns") + pl.col("delay_ns")).to_series().to_numpy()
    spare = np.maximum(0, times[edges.target] - times[edges.source] - taken)
    return pl.Series("slack_ns", slacks(edges, spare))
