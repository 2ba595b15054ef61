"""Compute the total and self times of the nodes in the plugin's trees."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, levels
from holotrace.enrich.host.node_times import Bools, eligible_by_name, summed_times, timed_work
from holotrace.enrich.tensorboard_plugin.tensor_cores import plugin_is_eligible, plugin_uses_tensor_cores
from holotrace.enrich.tensorboard_plugin.trees import (
    plugin_durations,
    plugin_trees,
    summed_device_owner,
    summed_runtime_owner,
    summed_trees,
)
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace


@derived
def plugin_node_times(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the times of the plugin's nodes.

    The times are first summed over the original trees, in which no backward operator has been moved. Then the times of
    the added backward nodes are filled in.
    """
    summed = _summed(rank_trace)
    trees = plugin_trees(rank_trace)
    is_made = (trees["summed_row"] == NO_PARENT).to_numpy()
    if not is_made.any():
        return summed
    times = summed[np.maximum(trees["summed_row"].to_numpy(), 0)]
    return _with_backward_nodes(trees, times, is_made)


def _summed(rank_trace: RankTrace) -> pl.DataFrame:
    nodes, calls = summed_trees(rank_trace), summed_runtime_owner(rank_trace)
    owners, durations = summed_device_owner(rank_trace), plugin_durations(rank_trace)
    work = timed_work(owners, durations, plugin_uses_tensor_cores(rank_trace))
    return summed_times(nodes, calls, work, eligible_by_name(rank_trace, nodes, plugin_is_eligible))


def _with_backward_nodes(trees: pl.DataFrame, times: pl.DataFrame, is_made: Bools) -> pl.DataFrame:
    """Fill in the times of added nodes: a host total is the node's length, a device total the sum over its children."""
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
