"""Computes how long each edge of an event graph takes in a replay."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.critical_path.event_graph import EdgeType, EventGraph, PathClass

_OF_DEVICES = (EdgeType.LAUNCH, EdgeType.STREAM_ORDER, EdgeType.EVENT_WAIT, EdgeType.HOST_SYNCHRONISATION)
_USUAL_QUANTILE = 0.1
"""The usual delay of an edge is this quantile of the measured delays; longer delays may have additional causes."""
_FEWEST = 8
"""If fewer delays than this were measured, the usual delay of an edge is unknown."""


def replayed_lengths_ns(graph: EventGraph) -> npt.NDArray[np.int64]:
    """Return how long each edge takes in a replay: binding edges as long as measured, others at least their weight.

    There is always some delay between two kernels on a stream, between a launch and its kernel, and between device work
    and the host that waits for it. But the recording shows this delay only for binding edges. In a replay, other edges
    may become binding. Each of them therefore gets a delay, too: the 10th percentile of the delays of all binding edges
    of the same type. But no edge gets longer than the measured time between its nodes, so a replay without changes
    reproduces every measured time.
    """
    times = graph.nodes["time_ns"]
    edges = graph.edges.select(
        "type",
        "delay_ns",
        (pl.col("weight_ns") + pl.col("delay_ns")).alias("length_ns"),
        (pl.Series(times.gather(graph.edges["target"])) - times.gather(graph.edges["source"])).alias("most_ns"),
        _may_be_delayed().alias("may_be_delayed"),
    ).with_columns(is_binding=_is_binding(graph))
    measured = edges.filter("is_binding", "may_be_delayed")
    usual = measured.group_by("type").agg(
        pl.col("delay_ns").quantile(_USUAL_QUANTILE, "lower"), pl.len().alias("count")
    )
    known = dict(usual.filter(pl.col("count") >= _FEWEST).select("type", "delay_ns").iter_rows())
    least = pl.col("type").replace_strict(known, default=0.0, return_dtype=pl.Float64).cast(pl.Int64)
    waits = pl.col("may_be_delayed") & ~pl.col("is_binding")
    length = pl.col("length_ns") + pl.when(waits).then(
        pl.min_horizontal(least, pl.col("most_ns") - pl.col("length_ns"))
    )
    return edges.select(pl.coalesce(length.clip(pl.col("length_ns")), "length_ns")).to_series().to_numpy()


def _may_be_delayed() -> pl.Expr:
    """Return which edges begin or end on a device and therefore have a delay.

    Two kinds of launch edges have no delay:

    - edges to work that starts within the launching call, because the time of the edge is then assigned to the call
    - edges whose time has an unknown cause
    """
    own = (pl.col("type") == EdgeType.LAUNCH) & (pl.col("path_class") != PathClass.LAUNCH_DELAY)
    return pl.col("type").is_in([int(kind) for kind in _OF_DEVICES]) & ~own


def _is_binding(graph: EventGraph) -> pl.Series:
    binds = np.zeros(len(graph.edges), np.bool_)
    rows = graph.binding.to_numpy()
    binds[rows[rows >= 0]] = True
    return pl.Series(binds)
