"""The total time and self time of each node of the host trees, on the host and on devices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, levels, subtree_sums
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.host_nodes import device_owner, host_nodes, runtime_owner
from holotrace.enrich.kernels.tensor_cores import is_tensor_core_eligible, uses_tensor_cores
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.derived import derived, derived_under_rules
from holotrace.store.trace import RankTrace

_Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@derived_under_rules
def node_times(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the times of every node of `host_nodes`, in its order.

    The children of a node are the nodes directly inside it. `runtime_owner` assigns runtime calls to nodes, and
    `device_owner` assigns device work:

        host_total = end - start
        host_self = host_total - the time of its children and runtime calls
        device_self = summed duration of its kernels, copies and memsets, even if they overlap
        device_total = device_self + sum of device_total over the children

    A node is eligible for tensor cores if its name identifies work that can use them. An operator is also eligible if
    its kernels used tensor cores, or if a child is eligible.

    Returns:
        host_total_ns, host_self_ns                  int64
        device_total_ns, device_self_ns              int64
        tensor_core_total_ns, tensor_core_self_ns    int64  time in kernels that use tensor or matrix cores
        tensor_core_unknown_total_ns, tensor_core_unknown_self_ns
                                                     int64  time in kernels whose names do not show whether they
                                                            use tensor or matrix cores
        is_tensor_core_eligible                      bool
    """
    work = timed_work(device_owner(rank_trace), device_durations(rank_trace), uses_tensor_cores(rank_trace))
    nodes, calls = host_nodes(rank_trace), runtime_owner(rank_trace)
    return summed_times(nodes, calls, work, eligible_by_name(rank_trace, nodes, is_tensor_core_eligible))


def timed_work(owners: pl.DataFrame, durations: pl.DataFrame, uses_tensor_cores: pl.DataFrame) -> pl.DataFrame:
    """Add the columns duration_ns, uses_tensor_cores and is_kernel to `owners`.

    uses_tensor_cores is null for copies, and for kernels for which it is unknown.
    """
    answers = uses_tensor_cores.with_columns(is_kernel=pl.lit(value=True))
    return owners.join(durations, on="event_index", how="left", maintain_order="left").join(
        answers, on="event_index", how="left", maintain_order="left"
    )


def eligible_by_name(
    rank_trace: RankTrace, nodes: pl.DataFrame, is_eligible: Callable[[pl.Series], pl.Series]
) -> Bools:
    """Return whether `is_eligible` accepts each node's name; it is called only once, with all distinct names."""
    distinct = nodes["name"].unique().drop_nulls()
    by_id = np.zeros(len(rank_trace.strings) + 1, np.bool_)
    by_id[distinct.to_numpy()] = is_eligible(rank_trace.texts(distinct)).to_numpy()
    eligible: Bools = by_id[nodes["name"].fill_null(len(by_id) - 1).to_numpy()]
    return eligible


def summed_times(nodes: pl.DataFrame, calls: pl.DataFrame, work: pl.DataFrame, eligible: Bools) -> pl.DataFrame:
    """Return the columns of `node_times` for the given trees.

    Args:
        nodes: the result of `host_nodes`.
        calls: the result of `runtime_owner`.
        work: the result of `timed_work`.
        eligible: which nodes are eligible for tensor cores, judging by their names.
    """
    parent = nodes["parent"].to_numpy()
    device_ns, tensor_core_ns, unknown_ns = _work_of_nodes(nodes, work)
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
            "is_tensor_core_eligible": _eligible(nodes, eligible, tensor_core_ns > 0, by_level),
        }
    )


def _work_of_nodes(nodes: pl.DataFrame, work: pl.DataFrame) -> tuple[_Int64, _Int64, _Int64]:
    """Return each node's own device time: the total, the part on tensor cores, and the part that may be on them."""
    node, duration_ns = work["node"].to_numpy(), work["duration_ns"].to_numpy()
    uses = work["uses_tensor_cores"].fill_null(value=False).to_numpy()
    unknown = (work["is_kernel"].is_not_null() & work["uses_tensor_cores"].is_null()).to_numpy()
    parts = (np.ones(len(node), np.bool_), uses, unknown)
    whole, on_tensor_cores, on_unknown = (_sum_by(node[part], duration_ns[part], nodes.height) for part in parts)
    return whole, on_tensor_cores, on_unknown


@derived
def device_durations(rank_trace: RankTrace) -> pl.DataFrame:
    """Return event_index uint32 and duration_ns int64 of every device activity, in file order."""
    rows = event_ranges(rank_trace, DEVICE_WORK_KINDS, ["event_index", "start_ns", "end_ns"])
    return rows.select("event_index", (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"))


def _sum_by(row: _Int64, values: _Int64, count: int) -> _Int64:
    """Return the sum of the values for each row number; values for row -1 are left out."""
    sums = np.zeros(count, np.int64)
    known = row != NO_PARENT
    np.add.at(sums, row[known], values[known])
    return sums


def _eligible(nodes: pl.DataFrame, by_name: Bools, used: Bools, by_level: list[_Int64]) -> Bools:
    parent, is_operator = nodes["parent"].to_numpy(), (nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    eligible: Bools = by_name | (used & is_operator)
    for rows in reversed(by_level):
        around = parent[rows[eligible[rows]]]
        eligible[around[is_operator[around]]] = True
    return eligible
