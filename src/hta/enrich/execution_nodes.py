"""Which node of an execution trace each operator of a profiler trace is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from hta.schema import EventKind

if TYPE_CHECKING:
    from hta.ingest.execution_trace import ExecutionTrace
    from hta.store.trace import RankTrace

_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
_BOOKKEEPING = r"\[pytorch\|profiler\|execution_(trace|graph)\|(thread|process)\]"


def execution_nodes(rank_trace: RankTrace, execution_trace: ExecutionTrace) -> pl.DataFrame:
    """Return the node of each operator and annotation that has one.

    Both recordings number the calls of operators: the execution trace as `rf_id`, the profiler as `Record function id`
    or, where no event carries that, as `External id`. The two need not cover the same time; what only one of them has
    is left out. Of several nodes with one number the first counts.

    Returns:
        In file order: `event_index` (uint32) and all columns of `ExecutionTrace.nodes`.
    """
    nodes = execution_trace.nodes.filter(
        (pl.col("record_function_id") > 0) & ~pl.col("name").str.contains(_BOOKKEEPING)
    ).unique("record_function_id", keep="first", maintain_order=True)
    numbered = _numbers(rank_trace)
    joined = numbered.join(nodes, on="record_function_id", maintain_order="left")
    return joined.select("event_index", *execution_trace.nodes.columns)


def _numbers(rank_trace: RankTrace) -> pl.DataFrame:
    """Return `event_index` and `record_function_id` of the operators and annotations that have one."""
    events = rank_trace.events_of(_KINDS, ["event_index", "external_id"])
    own = rank_trace.table("operators", ["event_index", "record_function_id"]).filter(pl.col("record_function_id") > 0)
    if len(own):
        return events.join(own, on="event_index", maintain_order="left").drop("external_id")
    return events.filter(pl.col("external_id") > 0).rename({"external_id": "record_function_id"})
