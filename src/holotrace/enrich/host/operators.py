"""The operator that launched each device activity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above, itself_or_above, nearest_above
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.graph_attribution.grafts import grafts, may_graft
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.recorded_host.external_ids import same_external_id
from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]


@derived
def launching_operator(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the operators around the launch of every device activity.

    These operators contain the call that launched the activity. If the call is unknown, or if no operator contains it,
    the innermost operator is the one with the same external id as the activity.

    Returns:
        One row for each row of `launches`, in the same order:

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
    if may_graft(rank_trace):
        _replace_by_replayed(rank_trace, stacks, launched["event_index"], inner, outer)
    return launched.select("event_index", "launch_index").with_columns(
        gathered(stacks["event_index"], inner).alias("operator_index"),
        gathered(stacks["name"], inner).alias("operator_name"),
        gathered(stacks["event_index"], outer).alias("top_operator_index"),
    )


def _replace_by_replayed(
    rank_trace: RankTrace, stacks: pl.DataFrame, work: pl.Series, inner: _Rows, outer: _Rows
) -> None:
    """For work of replayed graphs, set `inner` and `outer` to the operators that launched it during the capture."""
    replayed = grafts(rank_trace)
    is_operator = (replayed.nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    graft = np.append(replayed.owners["graft"].to_numpy(), NO_PARENT)[rows_of_events(replayed.owners, work)]
    operator = itself_or_above(replayed.nodes["above"].to_numpy(), is_operator, graft)
    known = np.flatnonzero(operator != NO_PARENT)
    inner[known] = rows_of_events(stacks, replayed.nodes["event_index"].gather(operator[known]))
    is_operator = (stacks["kind"] == EventKind.CPU_OP).to_numpy()
    above = furthest_above(stacks["parent_row"].to_numpy(), is_operator, inner[known])
    outer[known] = np.where(above == NO_PARENT, inner[known], above)
