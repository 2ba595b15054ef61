"""The forward and backward times of modules, by their position in the model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above, nearest_above, path_numbers, subtree_sums
from holotrace.algorithms.summary import sum_or_null
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.enrich.host.host_names import (
    LIGHTNING_MODULE_PREFIX,
    LIGHTNING_PROFILE_PREFIX,
    MODULE_PREFIX,
    NodeClass,
)
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.enrich.host.modules import backward_passes
from holotrace.enrich.host.node_times import node_times
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]

PATH_SEPARATOR = " > "
"""Separator between the modules of a path."""

SUMMED_TIMES = (
    "operator_call_count",
    *("host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"),
    *("backward_host_total_ns", "backward_host_self_ns", "backward_device_total_ns", "backward_device_self_ns"),
)
MODULE_TIMES: dict[str, pl.DataType] = {
    **dict.fromkeys(("path", "module"), pl.String()),
    "module_id": pl.Int64(),
    "depth": pl.Int32(),
    **dict.fromkeys(("call_count", *SUMMED_TIMES), pl.Int64()),
}
"""The columns of the tables of modules and hooks; `holotrace.analyses.modules.compute.Modules` describes them."""


class ModuleTimes(NamedTuple):
    """The modules of the model, and the hooks of PyTorch Lightning.

    Both tables have one row for each path, with the columns `MODULE_TIMES`.
    """

    per_module: pl.DataFrame
    lightning_hooks: pl.DataFrame


def module_times(rank_trace: RankTrace) -> ModuleTimes:
    """Sum the times of module calls by the path of the module.

    The time of a backward operator is added to the module of its forward operator.
    """
    nodes = host_nodes(rank_trace).hstack(node_times(rank_trace))
    has_modules = (nodes["node_class"] == NodeClass.MODULE).any()
    recorded = NodeClass.MODULE if has_modules else NodeClass.LIGHTNING_MODULE
    return ModuleTimes(
        _of_class(rank_trace, nodes, recorded), _of_class(rank_trace, nodes, NodeClass.LIGHTNING_PROFILE)
    )


def _of_class(rank_trace: RankTrace, nodes: pl.DataFrame, node_class: NodeClass) -> pl.DataFrame:
    is_module = (nodes["node_class"] == node_class).to_numpy()
    if not is_module.any():
        return pl.DataFrame(schema=MODULE_TIMES)
    calls, parent = _calls(rank_trace, nodes, is_module)
    path = path_numbers(parent, calls["key"].to_numpy())
    summed = calls.with_columns(
        pl.Series("number", path), pl.Series("above", np.append(path, NO_PARENT)[parent], pl.Int64)
    )
    modules = summed.group_by("number", maintain_order=True).agg(
        pl.col("name", "module_id", "above").first(),
        pl.len().cast(pl.Int64).alias("call_count"),
        *map(sum_or_null, SUMMED_TIMES),
    )
    return _in_tree_order(modules, _names(rank_trace, modules["name"])).select(*MODULE_TIMES)


def _calls(rank_trace: RankTrace, nodes: pl.DataFrame, is_module: _Bools) -> tuple[pl.DataFrame, _Rows]:
    """Return the module calls with their times, and for each call the row of the module call around it."""
    rows, around = np.flatnonzero(is_module), nodes["parent"].to_numpy()
    call_of = np.append(np.where(is_module, np.cumsum(is_module) - 1, NO_PARENT), NO_PARENT)
    parent = call_of[nearest_above(around, is_module, rows)]
    ids = described_events(rank_trace, "python_frames", ["event_index", "python_module_id"])
    calls = nodes[rows].join(ids, on="event_index", how="left", maintain_order="left")
    return calls.with_columns(
        pl.col("python_module_id").alias("module_id"),
        pl.struct("name", "python_module_id").rank("dense").cast(pl.Int64).alias("key"),
        pl.Series("operator_call_count", _operator_calls(nodes, is_module, call_of)),
        pl.Series("device_self_ns", _without_children(parent, calls["device_total_ns"].to_numpy())),
        *_backward(rank_trace, nodes, is_module, call_of, parent),
    ), parent


def _operator_calls(nodes: pl.DataFrame, is_module: _Bools, call_of: _Rows) -> _Rows:
    """Return how many operators each module call contains directly, not inside another operator or module call."""
    is_counted = nodes["is_counted"].to_numpy()
    around = nearest_above(nodes["parent"].to_numpy(), is_module | is_counted, np.flatnonzero(is_counted))
    call = call_of[around]
    counts: _Rows = np.bincount(call[call != NO_PARENT], minlength=int(is_module.sum())).astype(np.int64)
    return counts


def _without_children(parent: _Rows, total_ns: _Rows) -> _Rows:
    own = total_ns.copy()
    has_parent = parent != NO_PARENT
    np.subtract.at(own, parent[has_parent], total_ns[has_parent])
    return own


def _backward(
    rank_trace: RankTrace, nodes: pl.DataFrame, is_module: _Bools, call_of: _Rows, parent: _Rows
) -> list[pl.Series]:
    """Return the total and self times of the backward pass of each module call."""
    parts = backward_passes(rank_trace)
    call = call_of[itself_or_above(nodes["parent"].to_numpy(), is_module, parts["forward"].to_numpy())]
    is_in_module = call != NO_PARENT
    columns = []
    for where, time in (("host", "host_total_ns"), ("device", "device_total_ns")):
        own = np.zeros(len(parent), np.int64)
        np.add.at(own, call[is_in_module], nodes[time].gather(parts["node"]).to_numpy()[is_in_module])
        columns.append(pl.Series(f"backward_{where}_total_ns", subtree_sums(parent, own)))
        columns.append(pl.Series(f"backward_{where}_self_ns", own))
    if parts.is_empty():
        return [pl.Series(column.name, [None] * len(parent), pl.Int64) for column in columns]
    return columns


def _in_tree_order(modules: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """Sort every module after the module around it, and add depth, path and name."""
    row_of = {number: row for row, number in enumerate(modules["number"])}
    inside: dict[int, list[int]] = {}
    for row, above in enumerate(modules["above"]):
        inside.setdefault(row_of.get(above, NO_PARENT), []).append(row)
    order: list[int] = []
    paths: dict[int, str] = {}
    depth: list[int] = []
    open_rows = [(row, "", 0) for row in reversed(inside.get(NO_PARENT, []))]
    while open_rows:
        row, before, level = open_rows.pop()
        order.append(row)
        depth.append(level)
        paths[row] = before + names[row]
        open_rows.extend((child, paths[row] + PATH_SEPARATOR, level + 1) for child in reversed(inside.get(row, [])))
    return modules[order].with_columns(
        pl.Series("path", [paths[row] for row in order], pl.String),
        pl.Series("depth", depth, pl.Int32),
        names.gather(order).alias("module"),
    )


def _names(rank_trace: RankTrace, ids: pl.Series) -> pl.Series:
    """Return the names of modules without the prefixes that profilers add.

    Lightning's prefix contains the module's class: `[pl][module]Linear: net.fc` becomes `net.fc`.
    """
    plain = rank_trace.texts(ids).str.strip_prefix(MODULE_PREFIX).str.strip_prefix(LIGHTNING_PROFILE_PREFIX)
    marked = plain.str.starts_with(LIGHTNING_MODULE_PREFIX)
    named = plain.to_frame("text").select(
        pl.when(marked).then(pl.col("text").str.extract(r": (.*)$")).fill_null(pl.col("text")).alias("module")
    )
    return named["module"]
