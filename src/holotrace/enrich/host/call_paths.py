"""Calls and times summed over equal call paths: phase, modules, operators, kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import (
    NO_PARENT,
    depths,
    furthest_above,
    itself_or_above,
    levels,
    nearest_above,
    path_numbers,
)
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.host.host_names import MODULE_PREFIX, NodeClass, without_addresses
from holotrace.enrich.host.host_nodes import device_owner, host_nodes
from holotrace.enrich.host.modules import backward_passes
from holotrace.enrich.host.node_times import node_times
from holotrace.enrich.steps.step_of_event import is_in_steps
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]

PHASES = ("data loading", "forward and other", "backward", "optimizer", "no operator")
SEPARATOR = "\x1f"
"""Separator between the parts of a path; no name contains it."""

SUMS = ("call_count", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")

_LOADING, _FORWARD, _BACKWARD, _OPTIMIZER, _NO_OPERATOR = range(len(PHASES))
_PHASE, _RANGE, _MODULE, _OPERATOR, _KERNEL = range(5)
_KIND_NAMES = ("phase", "range", "module", "operator", "kernel")
_NO_CALL = -1
_DATA_LOADER = "DataLoader"
_KIND_OF_CLASS = {
    NodeClass.OPERATOR: _OPERATOR,
    NodeClass.MODULE: _MODULE,
    NodeClass.LIGHTNING_MODULE: _MODULE,
    NodeClass.DATALOADER: _RANGE,
    NodeClass.OPTIMIZER: _RANGE,
}
_OF_BACKWARD = r"^(autograd::engine::evaluate_function: |torch::autograd::)|Backward\d*$"
_OF_OPTIMIZER = "Optimizer."
_WRAPPER = r"^nn\.Module: (Distributed)?DataParallel(_\d+)?$"


def call_paths(rank_trace: RankTrace, *, in_steps: bool, with_modules: bool = True) -> pl.DataFrame:
    """Sum calls and times over equal call paths.

    A path begins with the phase of its outermost operator, module or range:

        data loading       waiting for a batch; ranges of all loaders are named `DataLoader`
        optimizer          everything inside a range `Optimizer.…`
        backward           everything inside autograd's engine; work whose forward operator is known is below the module
                           of this operator
        forward and other  everything else on the host, and the device work that it launched
        no operator        device work whose operator, module or range is unknown

    Paths do not contain steps, data-parallel wrappers or other annotations.

    Args:
        rank_trace: the rank.
        in_steps: include only paths whose outermost call is inside a step, and work without an operator only if it was
            launched inside a step.
        with_modules: include modules in the paths, if they were recorded.

    Returns:
        One row for each path, after the rows of the paths above it:

        path     str    kinds and names from the phase to this call
        kind     str    phase, range, module, operator, kernel (also copies and memsets)
        name     str
        call_count    int64  for a phase, the number of its outermost calls; for a module in the backward phase, the
                        number of its forward calls
        host_total_ns, host_self_ns, device_total_ns, device_self_ns
                 int64  as in `node_times`; totals of phases and of modules in the backward phase are
                        sums over the rows below them
    """
    rows = _rows(rank_trace, in_steps=in_steps, with_modules=with_modules)
    parent = rows["parent"].to_numpy()
    numbers = path_numbers(parent, rows["key"].to_numpy())
    placed = rows.with_columns(
        pl.Series("number", numbers),
        pl.Series("above", np.append(numbers, NO_PARENT)[parent]),
        pl.Series("depth", depths(parent)),
    )
    paths = placed.group_by("number", maintain_order=True).agg(
        pl.col("above", "depth", "kind", "name").first(), pl.col(SUMS).sum()
    )
    return _with_texts(rank_trace, paths.filter(pl.col("call_count") > 0).sort("depth", maintain_order=True))


class _Calls(NamedTuple):
    """The host nodes. Here, a call is a host node that can be part of a path.

    nodes      all rows of `host_nodes`, with times, `kind` (-1 if the node is not a call) and `name`
    parent     for each node, the row of the innermost node that contains it
    is_call    for each node, whether it is a call
    counted    rows of the calls to sum: all calls or, with `in_steps`, only calls inside steps
    around     for each counted call, the row of the call around it; -1 if there is none
    phase      for each counted call, its phase
    row        for each node, its row in the result of `_rows`; -1 if it is not counted; the array ends with one more
               -1, so that the index -1 yields -1
    """

    nodes: pl.DataFrame
    parent: _Rows
    is_call: _Bools
    counted: _Rows
    around: _Rows
    phase: _Rows
    row: _Rows


def _rows(rank_trace: RankTrace, *, in_steps: bool, with_modules: bool) -> pl.DataFrame:
    """Return phases, calls, modules of the backward phase, and kernels, each with the row of its parent."""
    calls = _calls(rank_trace, in_steps=in_steps, with_modules=with_modules)
    above, modules = _below_modules(rank_trace, calls)
    own = calls.nodes[calls.counted].select("kind", "name", pl.lit(1, pl.Int64).alias("call_count"), *SUMS[1:])
    kernels = _kernels(rank_trace, calls, in_steps=in_steps)
    made = [_phase_rows(calls, kernels), modules]
    rows = pl.concat([made[0], own.with_columns(pl.Series("parent", above)), modules, kernels], how="diagonal")
    is_made = np.zeros(rows.height, np.bool_)
    is_made[: len(PHASES)] = True
    is_made[len(PHASES) + own.height : rows.height - kernels.height] = True
    key = pl.col("kind") * (len(rank_trace.strings) + len(PHASES)) + pl.col("name")
    return _with_sums_of_made(rows.with_columns(pl.col(SUMS).fill_null(0)), is_made).with_columns(key.alias("key"))


def _calls(rank_trace: RankTrace, *, in_steps: bool, with_modules: bool) -> _Calls:
    nodes = host_nodes(rank_trace).hstack(node_times(rank_trace))
    nodes = nodes.with_columns(_kinds(rank_trace, nodes))
    left_out = [_NO_CALL] if with_modules else [_NO_CALL, _MODULE]
    parent, is_call = nodes["parent"].to_numpy(), (~nodes["kind"].is_in(left_out)).to_numpy()
    counted = np.flatnonzero(is_call)
    outermost = furthest_above(parent, is_call, counted)
    outermost = np.where(outermost == NO_PARENT, counted, outermost)
    if in_steps:
        begins_in_step = _is_in_step(rank_trace, nodes["event_index"].gather(outermost))
        counted, outermost = counted[begins_in_step], outermost[begins_in_step]
    row = np.full(nodes.height + 1, NO_PARENT, np.int64)
    row[counted] = len(PHASES) + np.arange(len(counted))
    around, phase = nearest_above(parent, is_call, counted), _phases(rank_trace, nodes)[outermost]
    return _Calls(nodes, parent, is_call, counted, around, phase, row)


def _kinds(rank_trace: RankTrace, nodes: pl.DataFrame) -> list[pl.Series]:
    """Return the kind and name id of each node; all data loaders share one name id: the last string id plus 1."""
    by_class = np.full(max(NodeClass) + 1, _NO_CALL, np.int64)
    by_class[list(_KIND_OF_CLASS)] = list(_KIND_OF_CLASS.values())
    kind = by_class[nodes["node_class"].to_numpy()]
    is_wrapper = _is_named(nodes, rank_trace.strings.str.contains(_WRAPPER))
    kind[is_wrapper | ((kind == _OPERATOR) & ~nodes["is_counted"].to_numpy())] = _NO_CALL
    kind[_is_named(nodes, rank_trace.strings.str.starts_with(_OF_OPTIMIZER))] = _RANGE
    is_loader = pl.col("node_class") == NodeClass.DATALOADER
    name = pl.when(is_loader).then(len(rank_trace.strings)).otherwise("name").cast(pl.Int64)
    return [pl.Series("kind", kind), nodes.select(name.alias("name"))["name"]]


def _phases(rank_trace: RankTrace, nodes: pl.DataFrame) -> _Rows:
    """Return, for each node, the phase that a path has if this node is its outermost call."""
    phase = np.full(nodes.height, _FORWARD, np.int64)
    phase[_is_named(nodes, rank_trace.strings.str.contains(_OF_BACKWARD))] = _BACKWARD
    phase[backward_passes(rank_trace)["node"].to_numpy()] = _BACKWARD
    phase[(nodes["kind"] == _RANGE).to_numpy()] = _OPTIMIZER
    phase[(nodes["node_class"] == NodeClass.DATALOADER).to_numpy()] = _LOADING
    return phase


def _is_named(nodes: pl.DataFrame, chosen: pl.Series) -> _Bools:
    """Return whether the name of each node is among the chosen strings."""
    named: _Bools = nodes["name"].is_in(chosen.arg_true().implode()).to_numpy()
    return named


def _below_modules(rank_trace: RankTrace, calls: _Calls) -> tuple[_Rows, pl.DataFrame]:
    """Return the parent row of each counted call, and a row for each module call in the backward phase."""
    is_module = (calls.nodes["kind"] == _MODULE).to_numpy() & calls.is_call
    parts, is_outermost = backward_passes(rank_trace), calls.around == NO_PARENT
    module_of = np.full(calls.nodes.height, NO_PARENT, np.int64)
    module_of[parts["node"].to_numpy()] = nearest_above(calls.parent, is_module, parts["forward"].to_numpy())
    module = np.where(is_outermost, module_of[calls.counted], NO_PARENT)
    modules = _with_all_above(calls.parent, is_module, module)
    row_of = np.full(calls.nodes.height + 1, _BACKWARD, np.int64)
    row_of[modules] = len(PHASES) + len(calls.counted) + np.arange(len(modules))
    above = np.where(is_outermost, calls.phase, calls.row[calls.around])
    made = calls.nodes[modules].select("kind", "name", pl.lit(1, pl.Int64).alias("call_count"))
    around = row_of[nearest_above(calls.parent, is_module, modules)]
    return np.where(module == NO_PARENT, above, row_of[module]), made.with_columns(pl.Series("parent", around))


def _with_all_above(parent: _Rows, wanted: _Bools, rows: _Rows) -> _Rows:
    """Return `rows` and all their ancestors that `wanted` marks, sorted and without duplicates."""
    collected, at = [np.empty(0, np.int64)], np.unique(rows)
    while len(at := at[at != NO_PARENT]):
        collected.append(at)
        at = np.unique(nearest_above(parent, wanted, at))
    return np.unique(np.concatenate(collected))


def _kernels(rank_trace: RankTrace, calls: _Calls, *, in_steps: bool) -> pl.DataFrame:
    """Return a row per call and name of device work; work whose call is unknown is below `no operator`."""
    work = device_owner(rank_trace).join(device_rows(rank_trace), on="event_index", maintain_order="left")
    launched_in = itself_or_above(calls.parent, calls.is_call, work["node"].to_numpy())
    is_unowned = launched_in == NO_PARENT
    above = np.where(is_unowned, _NO_OPERATOR, calls.row[launched_in])
    counts = above != NO_PARENT
    if in_steps:
        counts &= ~is_unowned | _is_in_step(rank_trace, work["event_index"])
    timed = work.select(
        pl.Series("parent", above), pl.col("name").cast(pl.Int64), (pl.col("end_ns") - pl.col("start_ns")).alias("ns")
    )
    sums = timed.filter(counts).group_by("parent", "name", maintain_order=True)
    return sums.agg(
        pl.lit(_KERNEL, pl.Int64).alias("kind"),
        pl.len().cast(pl.Int64).alias("call_count"),
        pl.col("ns").sum().alias("device_total_ns"),
        pl.col("ns").sum().alias("device_self_ns"),
    )


def _phase_rows(calls: _Calls, kernels: pl.DataFrame) -> pl.DataFrame:
    counts = np.bincount(calls.phase[calls.around == NO_PARENT], minlength=len(PHASES))
    counts[_NO_OPERATOR] = kernels.filter(pl.col("parent") == _NO_OPERATOR)["call_count"].sum()
    names = np.arange(len(PHASES))
    same = {"parent": np.full_like(names, NO_PARENT), "kind": np.full_like(names, _PHASE)}
    return pl.DataFrame({**same, "name": names, "call_count": counts}, schema_overrides={"call_count": pl.Int64})


def _with_sums_of_made(rows: pl.DataFrame, is_made: _Bools) -> pl.DataFrame:
    """Set the total times of the rows without events to the sums of the rows below them.

    The rows without events are those of the phases, and those of the modules in the backward phase.
    """
    parent = rows["parent"].to_numpy()
    totals = {name: rows[name].to_numpy().copy() for name in ("host_total_ns", "device_total_ns")}
    for below in reversed(levels(parent)):
        inside = below[is_made[parent[below]]]
        for values in totals.values():
            np.add.at(values, parent[inside], values[inside])
    return rows.with_columns(pl.Series(name, values) for name, values in totals.items())


def _is_in_step(rank_trace: RankTrace, event_index: pl.Series) -> _Bools:
    events = rank_trace.table("events", ["event_index"])["event_index"]
    in_step = events.filter(is_in_steps(rank_trace))
    is_in_step: _Bools = event_index.is_in(in_step.implode()).to_numpy()
    return is_in_step


def _with_texts(rank_trace: RankTrace, paths: pl.DataFrame) -> pl.DataFrame:
    """Return the paths as texts; the text of each path begins with the text of the path above it."""
    texts: dict[int, str] = {NO_PARENT: ""}
    names = _names(rank_trace, paths)
    for number, above, kind, name in zip(paths["number"], paths["above"], paths["kind"], names, strict=True):
        texts[number] = f"{texts[above]}{SEPARATOR}{kind}{name}"
    kinds = paths["kind"].replace_strict(dict(enumerate(_KIND_NAMES)), return_dtype=pl.String)
    path = pl.Series("path", [texts[number] for number in paths["number"]], pl.String)
    return paths.select(path, kinds.alias("kind"), pl.Series("name", names, pl.String), *SUMS)


def _names(rank_trace: RankTrace, paths: pl.DataFrame) -> list[str]:
    strings = pl.concat([rank_trace.strings, pl.Series([_DATA_LOADER])])
    is_phase = paths["kind"] == _PHASE
    numbers = paths.select(pl.when(~is_phase).then("name").otherwise(0).cast(pl.UInt32)).to_series()
    texts = without_addresses(strings.gather(numbers).str.strip_prefix(MODULE_PREFIX))
    return [
        PHASES[number] if is_one else text for is_one, number, text in zip(is_phase, paths["name"], texts, strict=True)
    ]
