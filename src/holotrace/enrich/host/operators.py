"""The operator of each piece of device work."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.nesting import NO_PARENT, furthest_above, nearest_above
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace


@derived
def launching_operator(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the operators around the launch of every device row.

    They are on the thread of the call that launched the row. If no operator contains the call, or the call is unknown,
    take the operator with the same external id, and the operators around it.

    Returns:
        The rows of `launches`, in the same order:

        event_index         uint32
        launch_index        uint32  null if the launch is unknown
        operator_index      uint32  innermost operator; null if unknown
        operator_name       uint32  its name, a string id
        top_operator_index  uint32  outermost operator; null if unknown
    """
    stacks, launched = call_stacks(rank_trace), launches(rank_trace)
    is_operator = (stacks["kind"] == EventKind.CPU_OP).to_numpy()
    parent = stacks["parent_row"].to_numpy()
    calls = rows_of_events(stacks, launched["launch_index"])
    inner, outer = nearest_above(parent, is_operator, calls), furthest_above(parent, is_operator, calls)
    unknown = np.flatnonzero(inner == NO_PARENT)
    if len(unknown):
        same_id = same_external_id(rank_trace, launched[unknown])
        inner[unknown] = rows_of_events(stacks, same_id)
        above = furthest_above(parent, is_operator, inner[unknown])
        outer[unknown] = np.where(above == NO_PARENT, inner[unknown], above)
    return launched.select("event_index", "launch_index").with_columns(
        gathered(stacks["event_index"], inner).alias("operator_index"),
        gathered(stacks["name"], inner).alias("operator_name"),
        gathered(stacks["event_index"], outer).alias("top_operator_index"),
    )


def same_external_id(rank_trace: RankTrace, launched: pl.DataFrame) -> pl.Series:
    """Return the first operator in the file with the external id of each device row."""
    kinds_wanted = pl.col("kind") == EventKind.CPU_OP
    events = rank_trace.table("events", ["event_index", "kind", "external_id"]).filter(pl.col("external_id") > 0)
    operators = events.filter(kinds_wanted).unique("external_id", keep="first", maintain_order=True)
    by_id = operators.select("external_id", pl.col("event_index").alias("operator_index"))
    ids = launched.join(events, on="event_index", how="left", maintain_order="left").select("external_id")
    return ids.join(by_id, on="external_id", how="left", maintain_order="left")["operator_index"]
