"""List modules as in the last version of the TensorBoard plugin; only for `compat`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, nearest_above
from holotrace.enrich.host.host_names import MODULE_PREFIX, NodeClass
from holotrace.enrich.host.module_times import PATH_SEPARATOR
from holotrace.enrich.tensorboard_plugin.events import PluginType, is_lightning, plugin_events
from holotrace.enrich.tensorboard_plugin.node_times import plugin_node_times
from holotrace.enrich.tensorboard_plugin.trees import plugin_host_nodes
from holotrace.store.trace import RankTrace

_SUMMED = ("operator_call_count", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")
_BACKWARD = (
    *("backward_host_total_ns", "backward_host_self_ns", "backward_device_total_ns", "backward_device_self_ns"),
)
_PLACES = {"place": pl.Int64, "module": pl.String, "module_id": pl.Int64, "depth": pl.Int32, "path": pl.String}


class _Module(NamedTuple):
    """A module and the modules that it calls. Outermost modules with the same name, id and children are shown once."""

    name: str
    module_id: int
    children: tuple[_Module, ...]


def plugin_modules(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of the plugin's module view, each module after the module that contains it.

    The hierarchy comes from the parent ids of the Python frames or, for Lightning, from the dots in the names. A module
    that another module calls twice is listed twice. The times are summed over all forward calls with the same name and
    id. A module of the hierarchy that is missing from the trees gets no row; the plugin failed on such files.

    Returns:
        path, module, module_id, depth, call_count, operator_call_count, the times of forward calls, and the times of
        backward calls (always null)
    """
    roots = _by_dots(rank_trace) if is_lightning(rank_trace) else _by_python_parents(rank_trace)
    listed = pl.DataFrame(list(_listed(roots)), schema=_PLACES, orient="row")
    joined = listed.join(_sums(rank_trace), on=["module", "module_id"], maintain_order="left").sort("place")
    return joined.drop("place").with_columns(pl.lit(None, pl.Int64).alias(name) for name in _BACKWARD)


def _sums(rank_trace: RankTrace) -> pl.DataFrame:
    nodes = plugin_host_nodes(rank_trace).hstack(plugin_node_times(rank_trace))
    wanted = NodeClass.LIGHTNING_MODULE if is_lightning(rank_trace) else NodeClass.MODULE
    in_backward = nearest_above(
        nodes["parent"].to_numpy(), (nodes["node_class"] == NodeClass.BACKWARD).to_numpy(), np.arange(nodes.height)
    )
    direct = (
        nodes.filter("is_counted")
        .group_by(pl.col("parent").cast(pl.UInt32).alias("node"))
        .agg(
            pl.len().cast(pl.Int64).alias("operator_call_count"),
            pl.col("device_total_ns").sum().alias("of_operators_ns"),
        )
    )
    calls = nodes.filter((pl.col("node_class") == wanted) & pl.Series(in_backward == NO_PARENT))
    named = calls.with_columns(_names(rank_trace, calls["name"])).join(direct, on="node", how="left")
    ids = rank_trace.table("python_frames", ["event_index", "python_module_id"])
    module_id = pl.col("python_module_id").fill_null(0).alias("module_id")
    own = pl.col("device_self_ns") + pl.col("of_operators_ns").fill_null(0)
    return (
        named.join(ids, on="event_index", how="left")
        .with_columns(own, pl.col("operator_call_count").fill_null(0))
        .group_by("module", module_id)
        .agg(pl.len().cast(pl.Int64).alias("call_count"), pl.col(_SUMMED).sum())
    )


def _names(rank_trace: RankTrace, ids: pl.Series) -> pl.Series:
    texts = rank_trace.texts(ids).alias("module")
    if is_lightning(rank_trace):
        return texts.str.split(": ").list.slice(1).list.join(": ")
    return texts.str.replace_all(MODULE_PREFIX, "", literal=True)


def _by_dots(rank_trace: RankTrace) -> list[_Module]:
    events = plugin_events(rank_trace).filter(pl.col("type") == PluginType.LIGHTNING_MODULE)
    names = _names(rank_trace, events["name"]).unique(maintain_order=True).to_list()
    inside: dict[str, list[str]] = {name: [] for name in names}
    for name in names:
        around = name.rpartition(".")[0]
        if around in inside:
            inside[around].append(name)

    def module(name: str) -> _Module:
        return _Module(name, 0, tuple(module(child) for child in inside[name]))

    return sorted(module(name) for name in names if name.rpartition(".")[0] not in inside)


def _by_python_parents(rank_trace: RankTrace) -> list[_Module]:
    """Return the outermost modules with the modules that they call, sorted by name, without duplicates."""
    types = [PluginType.PYTHON_FUNCTION, PluginType.MODULE]
    frames = (
        plugin_events(rank_trace)
        .filter(pl.col("type").is_in(types))
        .join(rank_trace.table("python_frames"), on="event_index", maintain_order="left")
    )
    is_module = (frames["type"] == PluginType.MODULE).to_numpy()
    parent = _rows_of_parents(frames)
    rows = np.flatnonzero(is_module)
    around = dict(zip(rows.tolist(), nearest_above(parent, is_module, rows).tolist(), strict=True))
    inside: dict[int, list[int]] = {row: [] for row in [NO_PARENT, *around]}
    for row, above in around.items():
        inside[above].append(row)
    names = dict(zip(rows.tolist(), _names(rank_trace, frames["name"].gather(rows)), strict=True))
    ids = frames["python_module_id"].to_list()
    made: dict[int, _Module] = {}
    for row in _innermost_first(inside):
        made[row] = _Module(names[row], ids[row], tuple(made[child] for child in inside[row]))
    return sorted({made[row] for row in inside[NO_PARENT]}, key=lambda module: module.name)


def _rows_of_parents(frames: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the row of each frame's caller; if several frames have the caller's `python_id`, the last of them."""
    last = frames.select("python_id", pl.int_range(pl.len()).alias("row")).unique("python_id", keep="last")
    callers = frames.join(last, left_on="python_parent_id", right_on="python_id", how="left", maintain_order="left")
    return callers["row"].fill_null(NO_PARENT).to_numpy()


def _innermost_first(inside: dict[int, list[int]]) -> list[int]:
    order, open_rows = [], list(inside[NO_PARENT])
    while open_rows:
        order.append(open_rows.pop())
        open_rows.extend(inside[order[-1]])
    return order[::-1]


def _listed(roots: list[_Module]) -> Iterator[tuple[int, str, int, int, str]]:
    open_modules = [(root, 0, root.name) for root in reversed(roots)]
    place = 0
    while open_modules:
        module, depth, path = open_modules.pop()
        yield place, module.name, module.module_id, depth, path
        place += 1
        open_modules.extend(
            (child, depth + 1, path + PATH_SEPARATOR + child.name) for child in reversed(module.children)
        )
