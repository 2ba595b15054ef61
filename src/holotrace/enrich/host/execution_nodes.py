"""The execution-trace node of each operator in a profiler trace."""

from __future__ import annotations

import polars as pl

from holotrace.ingest.execution_trace import ExecutionTrace
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
_BOOKKEEPING = r"\[pytorch\|profiler\|execution_(trace|graph)\|(thread|process)\]"


def execution_nodes(rank_trace: RankTrace, execution_trace: ExecutionTrace) -> pl.DataFrame:
    """Return the node of each operator and annotation that has one.

    Both recordings number operator calls: the execution trace as `rf_id`, the profiler as `Record function id` or, if
    no event has this number, as `External id`. The recordings may cover different times; calls that only one of them
    contains are left out. If several nodes have the same number, the first is used.

    Returns:
        In file order: `event_index` (uint32) and all columns of `ExecutionTrace.nodes`.
    """
    rows = node_rows(rank_trace, execution_trace)
    return pl.concat([rows.select("event_index"), execution_trace.nodes[rows["row"]]], how="horizontal")


def node_rows(rank_trace: RankTrace, execution_trace: ExecutionTrace) -> pl.DataFrame:
    """Return the `event_index` of each operator and annotation that has a node, and the `row` of its node.

    `row` is the row in `ExecutionTrace.nodes`.
    """
    nodes = execution_trace.nodes.select("record_function_id", pl.int_range(pl.len(), dtype=pl.UInt32).alias("row"))
    named = ~execution_trace.nodes["name"].str.contains(_BOOKKEEPING)
    first = nodes.filter(named & (nodes["record_function_id"] > 0)).unique("record_function_id", keep="first")
    return _numbers(rank_trace).join(first, on="record_function_id", maintain_order="left").drop("record_function_id")


def _numbers(rank_trace: RankTrace) -> pl.DataFrame:
    """Return `event_index` and `record_function_id` of the operators and annotations that have such an id."""
    events = rank_trace.events_of(_KINDS, ["event_index", "external_id"])
    own = rank_trace.table("operators", ["event_index", "record_function_id"]).filter(pl.col("record_function_id") > 0)
    if len(own):
        return events.join(own, on="event_index", maintain_order="left").drop("external_id")
    return events.filter(pl.col("external_id") > 0).rename({"external_id": "record_function_id"})
