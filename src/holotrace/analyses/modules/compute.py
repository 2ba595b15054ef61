"""Which modules of the model take the time, forward and backward?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nesting import NO_PARENT, itself_or_above, nearest_above, path_numbers, subtree_sums
from holotrace.content_equality import EqualByContent
from holotrace.enrich.compat import Compat
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.host.host_names import (
    LIGHTNING_MODULE_PREFIX,
    LIGHTNING_PROFILE_PREFIX,
    MODULE_PREFIX,
    NodeClass,
)
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.enrich.host.modules import backward_passes
from holotrace.enrich.host.node_times import node_times
from holotrace.enrich.job.findings import joined_findings
from holotrace.enrich.tensorboard_plugin.modules import plugin_modules
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.store.trace import RankTrace, Trace

_Rows = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]

PATH_SEPARATOR = " > "
"""Between the modules of a path."""

_DEVICE = ("device_total_ns", "device_self_ns", "backward_device_total_ns", "backward_device_self_ns")
_TIMES = (
    *("host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"),
    *("backward_host_total_ns", "backward_host_self_ns", "backward_device_total_ns", "backward_device_self_ns"),
)
_SUMMED = ("operator_call_count", *_TIMES)
_PER_MODULE: dict[str, pl.DataType] = {
    "rank": pl.Int32(),
    **dict.fromkeys(("path", "module"), pl.String()),
    "module_id": pl.Int64(),
    "depth": pl.Int32(),
    **dict.fromkeys(("call_count", *_SUMMED), pl.Int64()),
}


@dataclass(frozen=True, eq=False)
class Modules(EqualByContent):
    """The time of the modules of a model.

    per_module       one row for each rank and place of a module in the model, sorted by rank, each behind the module
                     around it and in the order of their first calls:

        rank                      int32
        path                      str    names from the outermost to this one, joined by ` > `
        module                    str    such as `Linear_3`: the class and which instance of it
        module_id                 int64  which instance of the class; null where the file does not say
        depth                     int32  number of modules around it
        call_count                int64
        operator_call_count       int64  operators called in the module itself: not within another operator or module
        host_total_ns             int64  summed over the calls
        host_self_ns              int64  outside operators, annotations, runtime calls and modules inside it: Python
        device_total_ns           int64  kernels, copies and memsets launched inside, parallel ones both
        device_self_ns            int64  of these, not launched inside a module inside it
        backward_host_total_ns    int64  backward pass of the operators called inside, on autograd's threads
        backward_host_self_ns     int64  of these, not called inside a module inside it
        backward_device_total_ns  int64  device work launched in that backward pass
        backward_device_self_ns   int64

    lightning_hooks  the same of the ranges by which PyTorch Lightning marks its hooks, such as `run_training_batch`

    findings         what was not recorded

    The columns of devices are null on ranks where nothing ran on a device, those of the backward pass on ranks where
    none is linked with the forward pass.
    """

    per_module: pl.DataFrame
    lightning_hooks: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_module: pl.DataFrame
    lightning_hooks: pl.DataFrame
    findings: tuple[str, ...]


def modules(trace: Trace, *, compat: Compat | None = None, executor: Executor = IN_PROCESS) -> Modules:
    """Sum the time of every module by its place in the model, with the backward pass of what it called.

    Modules are recorded with `with_stack=True`, by PyTorch Lightning as ranges `[pl][module]`. A backward operator
    belongs to the module of its forward operator, by the profiler's arrows or their sequence number.

    Args:
        trace: the job.
        compat: "torch_tb_profiler" lists modules as the TensorBoard plugin's last source did: by their Python parents,
            one row a call within the parent, each with the totals of all calls, and no backward times.
        executor: where the ranks are worked on.

    Source: docs/reference/analyses/modules.md derives it and compares other tools.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "X", "cat": "python_function", "pid": 1000, "tid": 1}
    >>> trace = TraceBuilder().event(name="nn.Module: Linear_0", ts=0, dur=30, **place)
    >>> trace = trace.kernel("gemm", start_us=40, duration_us=9, launch_us=5).build()
    >>> holotrace.modules(trace).per_module.select("path", "call_count", "host_total_ns", "device_total_ns").rows()
    [('Linear_0', 1, 30000, 9000)]
    """
    partials = trace.map(partial(_one_rank, compat=compat), executor)
    return Modules(
        pl.concat([each.per_module for each in partials.values()]),
        pl.concat([each.lightning_hooks for each in partials.values()]),
        joined_findings({rank: each.findings for rank, each in partials.items()}),
    )


def summed_modules(table: pl.DataFrame) -> pl.DataFrame:
    """Return `per_module` or `lightning_hooks` summed over the ranks, in the order of the first rank that has each."""
    keys = ["path", "module", "module_id", "depth"]
    return table.group_by(keys, maintain_order=True).agg(pl.col("call_count").sum(), *map(_sum_or_null, _SUMMED))


def _one_rank(rank_trace: RankTrace, *, compat: Compat | None) -> _Partial:
    if compat is not None:
        listed = _in_columns(rank_trace, plugin_modules(rank_trace, PATH_SEPARATOR))
        return _Partial(listed, listed.clear(), ())
    nodes = host_nodes(rank_trace).hstack(node_times(rank_trace))
    classes = nodes["node_class"]
    recorded = NodeClass.MODULE if (classes == NodeClass.MODULE).any() else NodeClass.LIGHTNING_MODULE
    per_module, hooks = (_per_place(rank_trace, nodes, each) for each in (recorded, NodeClass.LIGHTNING_PROFILE))
    return _Partial(per_module, hooks, _findings(rank_trace, per_module))


def _per_place(rank_trace: RankTrace, nodes: pl.DataFrame, node_class: NodeClass) -> pl.DataFrame:
    is_module = (nodes["node_class"] == node_class).to_numpy()
    if not is_module.any():
        return pl.DataFrame(schema=_PER_MODULE)
    calls, parent = _calls(rank_trace, nodes, is_module)
    path = path_numbers(parent, calls["key"].to_numpy())
    summed = calls.with_columns(
        pl.Series("number", path), pl.Series("above", np.append(path, NO_PARENT)[parent], pl.Int64)
    )
    places = summed.group_by("number", maintain_order=True).agg(
        pl.col("name", "module_id", "above").first(),
        pl.len().cast(pl.Int64).alias("call_count"),
        *map(_sum_or_null, _SUMMED),
    )
    return _in_columns(rank_trace, _in_tree_order(places, _names(rank_trace, places["name"])))


def _calls(rank_trace: RankTrace, nodes: pl.DataFrame, is_module: _Bools) -> tuple[pl.DataFrame, _Rows]:
    """Return the calls of modules, with their times, and the row of the call around each."""
    rows, around = np.flatnonzero(is_module), nodes["parent"].to_numpy()
    call_of = np.append(np.where(is_module, np.cumsum(is_module) - 1, NO_PARENT), NO_PARENT)
    parent = call_of[nearest_above(around, is_module, rows)]
    ids = rank_trace.table("python_frames", ["event_index", "python_module_id"])
    calls = nodes[rows].join(ids, on="event_index", how="left", maintain_order="left")
    return calls.with_columns(
        pl.col("python_module_id").alias("module_id"),
        pl.struct("name", "python_module_id").rank("dense").cast(pl.Int64).alias("key"),
        pl.Series("operator_call_count", _operator_calls(nodes, is_module, call_of)),
        pl.Series("device_self_ns", _without_children(parent, calls["device_total_ns"].to_numpy())),
        *_backward(rank_trace, nodes, is_module, call_of, parent),
    ), parent


def _operator_calls(nodes: pl.DataFrame, is_module: _Bools, call_of: _Rows) -> _Rows:
    """Return how many operators each call holds that are in no other operator or module inside it."""
    is_counted = nodes["is_counted"].to_numpy()
    around = nearest_above(nodes["parent"].to_numpy(), is_module | is_counted, np.flatnonzero(is_counted))
    call = call_of[around]
    counts: _Rows = np.bincount(call[call != NO_PARENT], minlength=int(is_module.sum())).astype(np.int64)
    return counts


def _sum_or_null(name: str) -> pl.Expr:
    """Sum what is known; null where nothing is."""
    return pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name)


def _without_children(parent: _Rows, total_ns: _Rows) -> _Rows:
    own = total_ns.copy()
    has_parent = parent != NO_PARENT
    np.subtract.at(own, parent[has_parent], total_ns[has_parent])
    return own


def _backward(
    rank_trace: RankTrace, nodes: pl.DataFrame, is_module: _Bools, call_of: _Rows, parent: _Rows
) -> list[pl.Series]:
    """Return the times of the backward pass of each call: with and without that of the calls inside it."""
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


def _in_tree_order(places: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """Put every place behind the one around it, with its depth and the names on the way to it."""
    row_of = {number: row for row, number in enumerate(places["number"])}
    inside: dict[int, list[int]] = {}
    for row, above in enumerate(places["above"]):
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
    return places[order].with_columns(
        pl.Series("path", [paths[row] for row in order], pl.String),
        pl.Series("depth", depth, pl.Int32),
        names.gather(order).alias("module"),
    )


def _names(rank_trace: RankTrace, ids: pl.Series) -> pl.Series:
    """Return the names without their marks; Lightning writes the class before the name: `[pl][module]Linear: net.fc`."""
    plain = rank_trace.texts(ids).str.strip_prefix(MODULE_PREFIX).str.strip_prefix(LIGHTNING_PROFILE_PREFIX)
    marked = plain.str.starts_with(LIGHTNING_MODULE_PREFIX)
    named = plain.to_frame("text").select(
        pl.when(marked).then(pl.col("text").str.extract(r": (.*)$")).fill_null(pl.col("text")).alias("module")
    )
    return named["module"]


def _in_columns(rank_trace: RankTrace, table: pl.DataFrame) -> pl.DataFrame:
    """Put the columns in order, with nothing where no device was recorded."""
    if device_rows(rank_trace).is_empty():
        table = table.with_columns(pl.lit(None, pl.Int64).alias(name) for name in _DEVICE)
    rank = pl.lit(rank_trace.rank, pl.Int32).alias("rank")
    return table.with_columns(rank).select(pl.col(name).cast(kind) for name, kind in _PER_MODULE.items())


def _findings(rank_trace: RankTrace, per_module: pl.DataFrame) -> tuple[str, ...]:
    if per_module.is_empty():
        return ("no calls of modules were recorded (with_stack=True)",)
    found = (
        (device_rows(rank_trace).is_empty(), "nothing ran on a device, or it was not recorded (ProfilerActivity.CUDA)"),
        (
            backward_passes(rank_trace).is_empty(),
            "no backward operator is linked with a forward one, so modules have forward times alone",
        ),
    )
    return tuple(sentence for is_so, sentence in found if is_so)
