"""The nesting of operators, annotations, runtime and driver calls on each thread."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, depths, nearest_above
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.graph_attribution.grafts import grafts, may_graft
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.recorded_host.calls import CALL_KINDS, recorded_calls, recorded_frames
from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

__all__ = ["CALL_KINDS", "call_stacks", "called_names", "python_stacks"]

python_stacks = recorded_frames


def call_stacks(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the caller of each operator, annotation, runtime and driver call.

    The caller (parent) is the innermost event of the same process and thread that begins no later and ends no earlier
    than the call. Of two events with equal times, the first in the file is the outer one. If an event begins inside
    another event but ends after it, the two are siblings. Python functions are left out (see `python_stacks`), so
    depths are the same whether or not Python was recorded. The operators that graphs replay are inside the launch of
    their graph and take no time; see `holotrace.enrich.graph_attribution.grafts`.

    Returns:
        In file order, followed by the operators that graphs replay:

        event_index     uint32
        track_id        uint32  process and thread, a row of `tracks`
        kind            uint8   EventKind
        name            uint32  string id
        start_ns        int64
        end_ns          int64
        parent_row      int64   row of the parent in this table; -1 if no event contains it
        depth           int32   number of events around this one; 0 for roots
        is_overlapping  bool    whether the event began inside a sibling but ended after that sibling
    """
    return _with_replayed(rank_trace) if may_graft(rank_trace) else recorded_calls(rank_trace)


@derived
def called_names(rank_trace: RankTrace) -> pl.Series:
    """Return the distinct names (string ids) in `call_stacks`, sorted."""
    counts = np.bincount(call_stacks(rank_trace)["name"].to_numpy())
    return pl.Series("name", np.flatnonzero(counts), dtype=pl.UInt32)


@derived
def _with_replayed(rank_trace: RankTrace) -> pl.DataFrame:
    recorded, nodes = recorded_calls(rank_trace), grafts(rank_trace).nodes
    is_operator = (nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    rows = np.flatnonzero(is_operator)
    if not len(rows):
        return recorded
    place = np.append(np.cumsum(is_operator) - 1 + recorded.height, NO_PARENT)
    above = place[nearest_above(nodes["above"].to_numpy(), is_operator, rows)]
    operators = nodes[rows]
    launch = rows_of_events(recorded, operators["launch_index"])
    added = operators.select(
        "event_index",
        "track_id",
        pl.lit(EventKind.CPU_OP, pl.UInt8).alias("kind"),
        "name",
        "start_ns",
        pl.col("start_ns").alias("end_ns"),
        pl.Series("parent_row", np.where(above == NO_PARENT, launch, above)),
        pl.lit(0, pl.Int32).alias("depth"),
        pl.lit(value=False).alias("is_overlapping"),
    )
    stacks = pl.concat([recorded, added])
    return stacks.with_columns(pl.Series("depth", depths(stacks["parent_row"].to_numpy())))
