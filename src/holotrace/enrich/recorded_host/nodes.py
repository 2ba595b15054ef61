"""Build the trees of host calls in a file, and find the node that launched the work of each device row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import (
    NO_PARENT,
    depths,
    itself_or_above,
    nearest_above,
    nesting,
    nesting_order,
)
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.host.host_names import MODULE_PREFIX, NodeClass, classes_by_name, is_counted_name
from holotrace.enrich.recorded_host.calls import CALL_KINDS
from holotrace.enrich.recorded_host.external_ids import same_external_id
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

_CLASS_OF_KIND = {
    EventKind.CPU_OP: NodeClass.OPERATOR,
    EventKind.USER_ANNOTATION: NodeClass.ANNOTATION,
    EventKind.PYTHON_FUNCTION: NodeClass.MODULE,
}


@derived
def recorded_nodes(rank_trace: RankTrace) -> pl.DataFrame:
    """Return `host_nodes` without nodes from graph replays."""
    ranges = _nested_ranges(rank_trace)
    is_node = ranges["is_node"].to_numpy()
    rows = np.flatnonzero(is_node)
    nodes = ranges[rows]
    is_operator = (nodes["kind"] == EventKind.CPU_OP) & (nodes["node_class"] == NodeClass.OPERATOR)
    parent = _node_of_row(is_node)[nearest_above(ranges["parent"].to_numpy(), is_node, rows)]
    return nodes.select(
        pl.Series("node", np.arange(len(rows), dtype=np.uint32)),
        "event_index",
        pl.col("track_id").cast(pl.Int32).alias("tree"),
        pl.Series("parent", parent),
        pl.Series("depth", depths(parent)),
        "node_class",
        "name",
        "start_ns",
        "end_ns",
        "of_parent_ns",
        is_operator.alias("is_counted") & pl.Series(is_counted_name(nodes["name"], rank_trace.strings)),
    )


@derived
def recorded_runtime_owner(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the innermost node (row of `recorded_nodes`) around each runtime or driver call; see `runtime_owner`."""
    ranges = _nested_ranges(rank_trace)
    is_node = ranges["is_node"].to_numpy()
    rows = np.flatnonzero(_is_call(ranges))
    around = nearest_above(ranges["parent"].to_numpy(), is_node, rows)
    return ranges[rows].select("event_index", pl.Series("node", _node_of_row(is_node)[around]), "of_parent_ns")


@derived
def recorded_device_owner(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the node (row of `recorded_nodes`) around the launch of each device row; see `device_owner`."""
    nodes, calls = recorded_nodes(rank_trace), recorded_runtime_owner(rank_trace)
    launched = launches(rank_trace)
    is_operator = (nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    node = np.append(calls["node"].to_numpy(), NO_PARENT)[rows_of_events(calls, launched["launch_index"])]
    operator = itself_or_above(nodes["parent"].to_numpy(), is_operator, node)
    unknown = np.flatnonzero(operator == NO_PARENT)
    if len(unknown):
        same_id = rows_of_events(nodes, same_external_id(rank_trace, launched[unknown]))
        operator[unknown] = np.where(np.append(is_operator, False)[same_id], same_id, NO_PARENT)
        node[unknown] = np.where(operator[unknown] == NO_PARENT, node[unknown], same_id)
    return launched.select("event_index", pl.Series("node", node), pl.Series("operator", operator), "launch_index")


@derived
def _nested_ranges(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the host calls and modules, parents first; `is_node` marks the rows that are nodes of the call tree.

    An annotation inside an operator is not a node; work launched inside such an annotation belongs to the operator.
    """
    columns = ["event_index", "track_id", "kind", "name", "start_ns", "end_ns"]
    ranges = pl.concat([_module_calls(rank_trace, columns), event_ranges(rank_trace, CALL_KINDS, columns)])
    ranges = ranges[nesting_order(*_extents(ranges))]
    parent, _, is_overlapping = nesting(*_extents(ranges))
    node_class, is_call = _classes(rank_trace, ranges), _is_call(ranges)
    is_node = ~is_call & ~_is_within_operator(parent, node_class, is_call)
    charges = is_node | is_call
    around = nearest_above(parent, charges, np.arange(ranges.height))
    is_charged = charges & ~((around != NO_PARENT) & is_call[around])
    return ranges.with_columns(
        pl.Series("parent", parent),
        pl.Series("node_class", node_class),
        pl.Series("is_node", is_node),
        pl.Series("of_parent_ns", np.where(is_charged, _taken_from_parent(ranges, parent, is_overlapping), 0)),
    )


def _extents(ranges: pl.DataFrame) -> tuple[_Rows, _Rows, _Rows]:
    return ranges["track_id"].to_numpy(), ranges["start_ns"].to_numpy(), ranges["end_ns"].to_numpy()


def _is_within_operator(
    parent: _Rows, node_class: npt.NDArray[np.uint8], is_call: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which annotations are inside an operator.

    An annotation counts as inside an operator even if other annotations or runtime or driver calls lie between the
    operator and the annotation, but not if a module lies between them.
    """
    is_annotation = (node_class == NodeClass.ANNOTATION) & ~is_call
    rows = np.flatnonzero(is_annotation)
    around = nearest_above(parent, ~is_annotation & ~is_call, rows)
    answers = np.zeros(len(parent), np.bool_)
    answers[rows] = (around != NO_PARENT) & (node_class[around] == NodeClass.OPERATOR)
    return answers


def _module_calls(rank_trace: RankTrace, columns: list[str]) -> pl.DataFrame:
    """Return the module calls.

    In the table of ranges, module calls must come before all other ranges, because the first of two equal ranges becomes the parent.
    """
    ids = rank_trace.strings.str.starts_with(MODULE_PREFIX).arg_true().cast(pl.UInt32)
    if ids.is_empty():
        return event_ranges(rank_trace, (), columns)
    return event_ranges(rank_trace, [EventKind.PYTHON_FUNCTION], columns, names=ids)


def _taken_from_parent(ranges: pl.DataFrame, parent: _Rows, is_overlapping: npt.NDArray[np.bool_]) -> _Rows:
    """Return, for each range, the time (ns) to subtract from its parent's self time.

    If a range overlaps earlier siblings, the overlap is left out, because it is already subtracted for those siblings.
    """
    start_ns, end_ns = ranges["start_ns"].to_numpy(), ranges["end_ns"].to_numpy()
    taken: _Rows = end_ns - start_ns
    if is_overlapping.any():
        crowded = np.flatnonzero(np.isin(parent, np.unique(parent[is_overlapping])))
        siblings = pl.DataFrame({"parent": parent[crowded], "end_ns": end_ns[crowded]})
        earlier = pl.col("end_ns").shift(1).cum_max().over("parent")
        begins = np.maximum(start_ns[crowded], siblings.select(earlier.fill_null(strategy="zero"))["end_ns"].to_numpy())
        taken[crowded] = (end_ns[crowded] - begins).clip(min=0)
    return taken


def _is_call(ranges: pl.DataFrame) -> npt.NDArray[np.bool_]:
    return np.isin(ranges["kind"].to_numpy(), [int(kind) for kind in LAUNCH_KINDS])


def _node_of_row(is_node: npt.NDArray[np.bool_]) -> _Rows:
    """Return the node number of each row; the numbers of rows that are not nodes have no meaning.

    An extra last entry is -1 (no node), so that looking up row -1 returns "no node".
    """
    return np.append(np.cumsum(is_node) - 1, NO_PARENT)


def _classes(rank_trace: RankTrace, nodes: pl.DataFrame) -> npt.NDArray[np.uint8]:
    by_kind = np.zeros(max(EventKind) + 1, np.uint8)
    by_kind[list(_CLASS_OF_KIND)] = list(_CLASS_OF_KIND.values())
    return classes_by_name(nodes["name"], by_kind[nodes["kind"].to_numpy()], rank_trace.strings)
