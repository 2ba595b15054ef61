"""Finds the device work that CUDA and HIP graphs replay."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import of_events
from holotrace.schema import LAUNCH_KINDS
from holotrace.store.captures import is_graph_launch, replays_graphs
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_COLUMNS = (
    "event_index",
    "launch_index",
    "launch_start_ns",
    "track_id",
    "name",
    "kind",
    "stream",
    "start_ns",
    "end_ns",
)


@derived
def replayed_work(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the kernels, copies and memsets that graphs replay.

    Returns:
        Sorted by launch, then by start:

        event_index      uint32
        launch_index     uint32  the call that launched the graph
        launch_start_ns  int64
        track_id         uint32  thread of the call, a row of `tracks`
        name             uint32  string id
        kind             uint8   EventKind
        stream           int64
        start_ns, end_ns int64
    """
    if not replays_graphs(rank_trace.strings):
        return device_rows(rank_trace).clear().select(_empty())
    launched = launches(rank_trace)
    distinct = launched["launch_name"].unique().drop_nulls()
    of_graphs = distinct.filter(is_graph_launch(rank_trace.texts(distinct)))
    rows = device_rows(rank_trace).hstack(launched.drop("event_index"))
    replayed = rows.filter(pl.col("launch_name").is_in(of_graphs.implode()).fill_null(value=False))
    tracks = of_events(rank_trace.events_of(LAUNCH_KINDS, ["event_index", "track_id"]), replayed["launch_index"])
    return (
        replayed.hstack(tracks)
        .select(_COLUMNS)
        .sort("launch_start_ns", "launch_index", "start_ns", maintain_order=True)
    )


def _empty() -> list[pl.Expr]:
    types = {
        "event_index": pl.UInt32,
        "launch_index": pl.UInt32,
        "track_id": pl.UInt32,
        "name": pl.UInt32,
        "kind": pl.UInt8,
    }
    return [pl.lit(None, types.get(column, pl.Int64)).alias(column) for column in _COLUMNS]
