"""The trees of host calls, and the node that caused each device activity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, depths, itself_or_above
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.graph_attribution.grafts import Grafts, grafts, may_graft
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.recorded_host.nodes import recorded_device_owner, recorded_nodes, recorded_runtime_owner
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

_ROOT_NAME = "CallTreeRoot"
_BACKWARD_SUFFIX = ".backward"


def host_nodes(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the nodes of the host trees: the operators, annotations, modules and steps of each thread.

    Nodes nest as in `call_stacks`: if a range begins inside another range but ends after it, the two are siblings.
    Module calls are nodes; other Python functions, runtime calls, and annotations inside an operator are not.

    Returns:
        Sorted by tree and start; among equal starts, the longest node comes first. A node therefore
        comes after all nodes that contain it:

        node          uint32  the row number
        event_index   uint32  null on nodes that are not events: roots and backward nodes of the TensorBoard plugin
        tree          int32   the thread
        parent        int64   row of the innermost node that contains it; -1 if there is none
        depth         int32   number of nodes that contain it
        node_class    uint8   NodeClass
        name          uint32  string id of the name; null for roots; backward nodes have the module's name
        start_ns      int64
        end_ns        int64
        of_parent_ns  int64   the node's time that overlaps no earlier sibling; subtracted from the parent's self time
        is_counted    bool    whether operator tables count it; false for steps, data loaders, optimizers, DDP wrappers
    """
    return _with_replayed(rank_trace).nodes if may_graft(rank_trace) else recorded_nodes(rank_trace)


def runtime_owner(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the innermost node around each runtime or driver call.

    Returns:
        event_index   uint32
        node          int64   row of `host_nodes`; -1 if none is known
        of_parent_ns  int64   the part of the call's time that is subtracted from the node's self time; 0 if the call is
                              inside another call, because the time of the outer call is already subtracted
    """
    return _with_replayed(rank_trace).runtime if may_graft(rank_trace) else recorded_runtime_owner(rank_trace)


def device_owner(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the node that caused each kernel, copy and memset.

    This is the innermost node around the launch on the same thread. If no operator is around the launch, or the launch
    is unknown, the operator with the same external id is used instead.

    Returns:
        event_index   uint32  of the device row
        node          int64   row of `host_nodes`; -1 if none is known
        operator      int64   row of the node if it is an operator, else of the innermost operator around it; -1 if none
        launch_index  uint32  the call that launched the work; null if unknown
    """
    return _with_replayed(rank_trace).device if may_graft(rank_trace) else recorded_device_owner(rank_trace)


def node_texts(rank_trace: RankTrace, nodes: pl.DataFrame) -> pl.Series:
    """Return the display names of these rows of `host_nodes`."""
    is_backward = pl.col("node_class") == NodeClass.BACKWARD
    text = pl.when(is_backward).then(pl.col("name") + _BACKWARD_SUFFIX).otherwise("name").fill_null(_ROOT_NAME)
    return nodes.select("node_class", rank_trace.texts(nodes["name"])).select(text.alias("name"))["name"]


class _Trees(NamedTuple):
    nodes: pl.DataFrame
    runtime: pl.DataFrame
    device: pl.DataFrame


@derived
def _with_replayed(rank_trace: RankTrace) -> _Trees:
    """Add the operators and modules that graphs replay to the recorded trees, and update the owners' row numbers."""
    recorded, replayed = recorded_nodes(rank_trace), grafts(rank_trace)
    runtime, device = recorded_runtime_owner(rank_trace), recorded_device_owner(rank_trace)
    if replayed.nodes.is_empty():
        return _Trees(recorded, runtime, device)
    nodes = pl.concat([recorded, _nodes_of(replayed, recorded, runtime)])
    order = np.lexsort((nodes["start_ns"].to_numpy(), nodes["tree"].to_numpy()))
    row_of = np.append(np.argsort(order), NO_PARENT)
    nodes = nodes[order]
    parent = row_of[nodes["parent"].to_numpy()]
    nodes = nodes.with_columns(
        node=pl.int_range(pl.len(), dtype=pl.UInt32), parent=pl.Series(parent), depth=pl.Series(depths(parent))
    )
    moved = runtime.with_columns(node=pl.Series(row_of[runtime["node"].to_numpy()]))
    return _Trees(nodes, moved, _owners(nodes, device, replayed, row_of, recorded.height))


def _nodes_of(replayed: Grafts, recorded: pl.DataFrame, runtime: pl.DataFrame) -> pl.DataFrame:
    """Return the replayed nodes with the columns of `host_nodes`.

    `parent` is a row number in the combined table, which contains the recorded nodes, followed by the replayed nodes.
    """
    nodes = replayed.nodes
    above = nodes["above"].to_numpy()
    around = np.append(runtime["node"].to_numpy(), NO_PARENT)[rows_of_events(runtime, nodes["launch_index"])]
    parent = np.where(above == NO_PARENT, around, above + recorded.height)
    return nodes.with_columns(
        pl.lit(0, pl.UInt32).alias("node"),
        pl.col("track_id").cast(pl.Int32).alias("tree"),
        pl.Series("parent", parent),
        pl.lit(0, pl.Int32).alias("depth"),
        pl.col("start_ns").alias("end_ns"),
        pl.lit(0, pl.Int64).alias("of_parent_ns"),
    ).select(recorded.columns)


def _owners(
    nodes: pl.DataFrame, device: pl.DataFrame, replayed: Grafts, row_of: _Rows, recorded_count: int
) -> pl.DataFrame:
    """Return `device` with its owners as rows of `nodes`; replayed work is owned by its replayed node, if that is known."""
    graft = np.append(replayed.owners["graft"].to_numpy(), NO_PARENT)[
        rows_of_events(replayed.owners, device["event_index"])
    ]
    node = np.where(graft == NO_PARENT, device["node"].to_numpy(), graft + recorded_count)
    node = row_of[node]
    is_operator = (nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    above = itself_or_above(nodes["parent"].to_numpy(), is_operator, node)
    operator = np.where(graft == NO_PARENT, row_of[device["operator"].to_numpy()], above)
    return device.with_columns(node=pl.Series(node), operator=pl.Series(operator))
