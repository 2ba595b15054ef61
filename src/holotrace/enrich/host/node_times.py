"""How long the nodes of the host trees took, on the host and on devices, with and without what is inside them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nesting import NO_PARENT, levels, subtree_sums
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.host_names import Compat, NodeClass
from holotrace.enrich.host.host_nodes import own_device_owner, own_host_nodes, own_runtime_owner
from holotrace.enrich.kernels.kernel_kind import active_rules as active_kernel_rules
from holotrace.enrich.kernels.tensor_cores import active_rules, is_tensor_core_eligible, uses_tensor_cores
from holotrace.enrich.tensorboard_plugin.trees import (
    plugin_durations,
    plugin_trees,
    summed_device_owner,
    summed_runtime_owner,
    summed_trees,
)
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.trace import RankTrace

_Int64 = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


def node_times(rank_trace: RankTrace, compat: Compat | None = None) -> pl.DataFrame:
    """Return the times of every node of `host_nodes`, in its order.

    With the children of a node those directly inside it, and its calls and its device work those that
    `holotrace.enrich.host.attribution` gives it:

        host_total = end - start
        host_self = host_total - what children and calls take of it
        device_self = summed duration of its kernels, copies and memsets; parallel ones both count
        device_total = device_self + sum of device_total over the children

    A node is eligible for tensor cores if its name says so, if its own kernels used them, or, for operators, if a
    child is eligible.

    Returns:
        host_total_ns, host_self_ns                  int64
        device_total_ns, device_self_ns              int64
        tensor_core_total_ns, tensor_core_self_ns    int64  of these, in kernels that use tensor or matrix cores
        tensor_core_unknown_total_ns, tensor_core_unknown_self_ns
                                                     int64  of these, in kernels whose name does not tell it
        is_tensor_core_eligible                      bool
    """
    remembered, key = rank_trace.derive(_times_by_rules), (compat, active_rules(), active_kernel_rules())
    if key not in remembered:
        remembered[key] = _own_times(rank_trace) if compat is None else _plugin_times(rank_trace)
    return remembered[key]


def _times_by_rules(_: RankTrace) -> dict[object, pl.DataFrame]:
    """Make the place where `node_times` is remembered."""
    return {}


def _own_times(rank_trace: RankTrace) -> pl.DataFrame:
    calls, work = rank_trace.derive(own_runtime_owner), rank_trace.derive(own_device_owner)
    return _times(rank_trace, rank_trace.derive(own_host_nodes), calls, work, None)


def _plugin_times(rank_trace: RankTrace) -> pl.DataFrame:
    """Sum over the plugin's trees as they were then, and over its backward nodes as it made them."""
    calls, work = rank_trace.derive(summed_runtime_owner), rank_trace.derive(summed_device_owner)
    summed = _times(rank_trace, rank_trace.derive(summed_trees), calls, work, "torch_tb_profiler")
    trees = rank_trace.derive(plugin_trees)
    is_made = (trees["summed_row"] == NO_PARENT).to_numpy()
    if not is_made.any():
        return summed
    times = summed[np.maximum(trees["summed_row"].to_numpy(), 0)]
    return _with_backward_nodes(trees, times, is_made)


def _times(
    rank_trace: RankTrace, nodes: pl.DataFrame, calls: pl.DataFrame, work: pl.DataFrame, compat: Compat | None
) -> pl.DataFrame:
    parent = nodes["parent"].to_numpy()
    device_ns, tensor_core_ns, unknown_ns = _work_of_nodes(rank_trace, nodes, work, compat)
    by_level = levels(parent)
    total_ns = (nodes["end_ns"] - nodes["start_ns"]).to_numpy()
    taken_ns = _sum_by(parent, nodes["of_parent_ns"].to_numpy(), len(parent)) + _sum_by(
        calls["node"].to_numpy(), calls["of_parent_ns"].to_numpy(), len(parent)
    )
    return pl.DataFrame(
        {
            "host_total_ns": total_ns,
            "host_self_ns": total_ns - taken_ns,
            "device_total_ns": subtree_sums(parent, device_ns, by_level),
            "device_self_ns": device_ns,
            "tensor_core_total_ns": subtree_sums(parent, tensor_core_ns, by_level),
            "tensor_core_self_ns": tensor_core_ns,
            "tensor_core_unknown_total_ns": subtree_sums(parent, unknown_ns, by_level),
            "tensor_core_unknown_self_ns": unknown_ns,
            "is_tensor_core_eligible": _eligible(rank_trace, nodes, tensor_core_ns > 0, by_level, compat),
        }
    )


def _work_of_nodes(
    rank_trace: RankTrace, nodes: pl.DataFrame, work: pl.DataFrame, compat: Compat | None
) -> tuple[_Int64, _Int64, _Int64]:
    """Return the summed duration of each node's own device work, and the parts on tensor cores and on unknown ones."""
    durations = rank_trace.derive(device_durations if compat is None else plugin_durations)
    answers = uses_tensor_cores(rank_trace, compat).with_columns(is_kernel=pl.lit(value=True))
    timed = work.join(durations, on="event_index", how="left", maintain_order="left").join(
        answers, on="event_index", how="left", maintain_order="left"
    )
    node, duration_ns = timed["node"].to_numpy(), timed["duration_ns"].to_numpy()
    uses = timed["uses_tensor_cores"].fill_null(value=False).to_numpy()
    unknown = (timed["is_kernel"].is_not_null() & timed["uses_tensor_cores"].is_null()).to_numpy()
    parts = (np.ones(len(node), np.bool_), uses, unknown)
    whole, on_tensor_cores, on_unknown = (_sum_by(node[part], duration_ns[part], nodes.height) for part in parts)
    return whole, on_tensor_cores, on_unknown


def device_durations(rank_trace: RankTrace) -> pl.DataFrame:
    """Return event_index uint32 and duration_ns int64 of every device row, in file order."""
    rows = event_ranges(rank_trace, DEVICE_WORK_KINDS, ["event_index", "start_ns", "end_ns"])
    return rows.select("event_index", (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"))


def _sum_by(row: _Int64, values: _Int64, count: int) -> _Int64:
    """Return the sum of the values of each row; those of row -1 are nobody's."""
    sums = np.zeros(count, np.int64)
    known = row != NO_PARENT
    np.add.at(sums, row[known], values[known])
    return sums


def _eligible(
    rank_trace: RankTrace, nodes: pl.DataFrame, used: _Bools, by_level: list[_Int64], compat: Compat | None
) -> _Bools:
    parent, is_operator = nodes["parent"].to_numpy(), (nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    distinct = nodes["name"].unique().drop_nulls()
    by_id = np.zeros(len(rank_trace.strings) + 1, np.bool_)
    by_id[distinct.to_numpy()] = is_tensor_core_eligible(rank_trace.texts(distinct), compat).to_numpy()
    eligible: _Bools = by_id[nodes["name"].fill_null(len(by_id) - 1).to_numpy()] | (used & is_operator)
    for rows in reversed(by_level):
        around = parent[rows[eligible[rows]]]
        eligible[around[is_operator[around]]] = True
    return eligible


def _with_backward_nodes(trees: pl.DataFrame, times: pl.DataFrame, is_made: _Bools) -> pl.DataFrame:
    """Complete the plugin's backward nodes: sums of their children, whose own sums are known."""
    parent, columns = trees["parent"].to_numpy(), {name: times[name].to_numpy().copy() for name in times.columns}
    length_ns = (trees["end_ns"] - trees["start_ns"]).to_numpy()
    for name, values in columns.items():
        values[is_made] = length_ns[is_made] if name in {"host_total_ns", "host_self_ns"} else 0
    for rows in reversed(levels(parent)):
        rows = rows[is_made[parent[rows]]]  # noqa: PLW2901 -- only sums of made nodes are open
        for name in ("device_total_ns", "tensor_core_total_ns", "tensor_core_unknown_total_ns"):
            np.add.at(columns[name], parent[rows], columns[name][rows])
        np.subtract.at(columns["host_self_ns"], parent[rows], length_ns[rows])
        np.logical_or.at(columns["is_tensor_core_eligible"], parent[rows], columns["is_tensor_core_eligible"][rows])
    return pl.DataFrame(columns)
