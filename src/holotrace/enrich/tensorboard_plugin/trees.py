"""Build call trees, and attribute work to their nodes, as the last version of the TensorBoard plugin did.

The trees keep the plugin's quirks, so that users see the plugin's numbers. Holotrace's own trees are in `host_nodes`.
See also `holotrace.enrich.attribution`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, depths, itself_or_above
from holotrace.enrich.host.host_names import HOST_NODE_COLUMNS, NodeClass, classes_by_name, is_counted_name
from holotrace.enrich.tensorboard_plugin.backward import with_backward_modules
from holotrace.enrich.tensorboard_plugin.events import (
    COLLECTIVE_NAMES,
    DEVICE_TYPES,
    PluginType,
    plugin_events,
    plugin_launches,
)
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

_DISCARDED = -2
"""The value in `parent` of ranges that the plugin discarded."""

_CLASS_OF_TYPE = {
    PluginType.OPERATOR: NodeClass.OPERATOR,
    PluginType.USER_ANNOTATION: NodeClass.ANNOTATION,
    PluginType.PYTHON: NodeClass.PYTHON,
    PluginType.MODULE: NodeClass.MODULE,
    PluginType.STEP: NodeClass.STEP,
    PluginType.LIGHTNING_MODULE: NodeClass.LIGHTNING_MODULE,
    PluginType.LIGHTNING_PROFILE: NodeClass.LIGHTNING_PROFILE,
}
_NAMED_CLASSES = (NodeClass.DATALOADER, NodeClass.OPTIMIZER)
"""The plugin assigned only these classes by an event's name; all other classes follow from the event's type."""


@derived
def plugin_host_nodes(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the plugin's `host_nodes`."""
    return plugin_trees(rank_trace).select(*HOST_NODE_COLUMNS)


@derived
def plugin_trees(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the plugin's final trees.

    After summing over the trees, the plugin removes the backward operators and, if their module is known, inserts them
    elsewhere. `summed_row` (int64) is the row of each node in `summed_trees`, -1 for added nodes `<module>.backward`.
    """
    return with_backward_modules(rank_trace, summed_trees(rank_trace))


@derived
def summed_trees(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the trees that the plugin sums over.

    If the only child of an operator has the same name, the child is removed.

    Returns:
        The columns of `host_nodes`, plus `thread` (int64): the tid.
    """
    placed = _placed(rank_trace)
    remains = np.flatnonzero(_remains(placed))
    parent = _row_that_remains(placed)[placed["parent"].to_numpy()[remains]]
    nodes = placed[remains].with_columns(
        pl.Series("node", np.arange(len(remains), dtype=np.uint32)),
        pl.Series("parent", parent),
        pl.Series("depth", depths(parent)),
        (pl.col("end_ns") - pl.col("start_ns")).alias("of_parent_ns"),
    )
    return nodes.select("thread", *(pl.col(name).cast(kind) for name, kind in HOST_NODE_COLUMNS.items()))


@derived
def summed_runtime_owner(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the row of `summed_trees` to which each runtime call belongs, in the columns of `runtime_owner`.

    A call belongs to the host range with the same external id, even if the range is on another thread. If several
    ranges have this id, the call belongs to the first of them, in order of thread and then start. Calls without an id
    belong to the first range without an id. Calls with id 0 belong to the root of their thread and, if there is a range
    with id 0, to that range as well.
    """
    calls = plugin_events(rank_trace).filter(pl.col("type") == PluginType.RUNTIME)
    columns = ["event_index", "node", (pl.col("end_ns") - pl.col("start_ns")).alias("of_parent_ns")]
    first = _first_of_external_ids(rank_trace)
    by_id = calls.join(first, on="external_id", how="left", nulls_equal=True, maintain_order="left")
    roots = _roots(rank_trace).select("thread", "node")
    of_roots = calls.filter(pl.col("external_id") == 0).join(roots, on="thread", maintain_order="left")
    of_ranges = by_id.filter(pl.col("node").is_not_null() | (pl.col("external_id").fill_null(1) != 0))
    return pl.concat([of_ranges.select(columns), of_roots.select(columns)]).with_columns(
        pl.col("node").fill_null(NO_PARENT)
    )


@derived
def summed_device_owner(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the row of `summed_trees` to which the plugin attributes each kernel, copy and memset; -1 for none."""
    launched = plugin_launches(rank_trace).select("event_index", "type", "launch_index")
    calls = summed_runtime_owner(rank_trace).select(pl.col("event_index").alias("launch_index"), "node")
    known = launched.filter(pl.col("launch_index").is_not_null()).join(
        calls, on="launch_index", how="left", maintain_order="left"
    )
    stale = launched.filter(pl.col("launch_index").is_null()).join(
        _roots(rank_trace).filter("has_steps").select("node", pl.lit(PluginType.KERNEL, pl.UInt8).alias("type")),
        on="type",
        how="left",
        maintain_order="left",
    )
    owners = pl.concat([known, stale]).with_columns(pl.col("node").fill_null(NO_PARENT))
    return owners.select("event_index", "node", pl.col("node").alias("operator"), "launch_index")


@derived
def plugin_device_owner(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the row in `plugin_trees` to which the plugin attributes each kernel, copy and memset; -1 for none."""
    return _at_their_last(rank_trace, summed_device_owner(rank_trace), ["node", "operator"])


@derived
def plugin_durations(rank_trace: RankTrace) -> pl.DataFrame:
    """Return event_index uint32 and duration_ns int64 of every device row, computed from the plugin's times."""
    rows = plugin_events(rank_trace).filter(pl.col("type").is_in(DEVICE_TYPES))
    return rows.select("event_index", (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"))


def _at_their_last(rank_trace: RankTrace, owners: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    summed_row = plugin_trees(rank_trace)["summed_row"].to_numpy()
    row = np.full(summed_trees(rank_trace).height + 1, NO_PARENT, np.int64)
    row[summed_row[summed_row != NO_PARENT]] = np.flatnonzero(summed_row != NO_PARENT)
    return owners.with_columns(pl.Series(column, row[owners[column].to_numpy()]) for column in columns)


def _roots(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the root of each thread (excluding Lightning's own trees), and whether steps run on the thread."""
    placed, trees = _placed(rank_trace), summed_trees(rank_trace)
    with_steps = placed.filter(pl.col("type") == PluginType.STEP)["tree"].implode()
    lightning = placed.filter(pl.col("type") == PluginType.LIGHTNING_PROFILE)["tree"].implode()
    roots = trees.filter((pl.col("node_class") == NodeClass.ROOT) & ~pl.col("tree").is_in(lightning))
    return roots.select("thread", pl.col("node").cast(pl.Int64), pl.col("tree").is_in(with_steps).alias("has_steps"))


def _first_of_external_ids(rank_trace: RankTrace) -> pl.DataFrame:
    """Return, for each external id, the node of `summed_trees` to which the calls with this id belong.

    The node is -1 if the plugin discarded the first range with this id, or merged that range with its only child.
    """
    placed = _placed(rank_trace)
    takes = _row_that_remains(placed)[:-1]
    takes[_has_merged_child(placed)] = NO_PARENT
    takes[placed["parent"].to_numpy() == _DISCARDED] = NO_PARENT
    ranges = placed.with_columns(pl.Series("node", takes)).filter(
        ~pl.col("type").is_in([PluginType.IGNORED, PluginType.LIGHTNING_PROFILE])
    )
    in_order = ranges.sort("tree", "order")
    return in_order.unique("external_id", keep="first", maintain_order=True).select("external_id", "node")


@derived
def _placed(rank_trace: RankTrace) -> pl.DataFrame:
    """Return a row for the root of each thread, followed by rows for the thread's ranges.

    `parent` is the row of the parent; for ranges that the plugin discarded, `parent` is `_DISCARDED`.
    """
    ranges = _host_ranges(rank_trace)
    roots = ranges.group_by("tree", maintain_order=True).agg(pl.col("thread").first()).with_columns(is_root=True)
    rows = pl.concat([roots, ranges.with_columns(is_root=False)], how="diagonal").sort(
        "tree", ~pl.col("is_root"), "start_us", -pl.col("end_us"), maintain_order=True
    )
    return _with_ends_of_roots(rows.drop("is_root").with_columns(pl.Series("parent", _parents(rows))))


def _host_ranges(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the events that become nodes, in the plugin's order, with the number of their tree."""
    events = plugin_events(rank_trace).filter(
        pl.col("type").is_in([int(plugin_type) for plugin_type in _CLASS_OF_TYPE])
    )
    by_type = np.zeros(max(PluginType) + 1, np.uint8)
    by_type[list(_CLASS_OF_TYPE)] = list(_CLASS_OF_TYPE.values())
    own_class, strings = by_type[events["type"].to_numpy()], rank_trace.strings
    named = classes_by_name(events["name"], own_class, strings)
    may_be_named = np.isin(own_class, [NodeClass.OPERATOR, NodeClass.ANNOTATION, NodeClass.PYTHON])
    node_class = np.where(may_be_named & np.isin(named, _NAMED_CLASSES), named, own_class)
    is_counted = (node_class == NodeClass.OPERATOR) & is_counted_name(events["name"], strings)
    ranges = events.with_row_index("order").with_columns(
        pl.Series("node_class", node_class), pl.Series("is_counted", is_counted)
    )
    is_collective = strings.is_in(COLLECTIVE_NAMES).to_numpy()[events["name"].to_numpy()]
    kept = ranges.filter((node_class != NodeClass.ANNOTATION) | is_collective).drop("correlation")
    return kept.with_columns(_tree_numbers(kept))


def _tree_numbers(ranges: pl.DataFrame) -> pl.Series:
    """Number the threads in order of appearance; Lightning's ranges form separate trees, numbered after them."""
    is_lightning = (pl.col("type") == PluginType.LIGHTNING_PROFILE).alias("is_lightning")
    keys = ranges.select(is_lightning, pl.col("thread").fill_null(-1))
    threads = keys.unique(maintain_order=True).sort("is_lightning", maintain_order=True).with_row_index("tree")
    return keys.join(threads, on=["is_lightning", "thread"], maintain_order="left")["tree"].cast(pl.Int32)


def _parents(rows: pl.DataFrame) -> _Rows:
    """Return each range's parent row, found with a stack of open ranges.

    This needs a slow Python loop, because whether a range is discarded depends on earlier ranges; only `compat` runs
    it.
    """
    starts, ends = rows["start_us"].to_list(), rows["end_us"].to_list()
    parent = [NO_PARENT] * rows.height
    open_rows: list[int] = []
    for row, (start, end, is_root) in enumerate(zip(starts, ends, rows["is_root"], strict=True)):
        if is_root:
            open_rows = [row]
            continue
        while len(open_rows) > 1 and start >= ends[open_rows[-1]]:
            open_rows.pop()
        around = open_rows[-1]
        if len(open_rows) == 1 or end <= ends[around]:
            parent[row] = around
            open_rows.append(row)
        else:
            parent[row] = _DISCARDED
    return np.array(parent, np.int64)


def _with_ends_of_roots(rows: pl.DataFrame) -> pl.DataFrame:
    """Set the start of each root to the start of its first child, and the end to the end of its last child."""
    parent, is_root = rows["parent"].to_numpy(), rows["event_index"].is_null().to_numpy()
    top = np.flatnonzero((parent >= 0) & is_root[parent])
    start_ns, end_ns = (rows[column].fill_null(0).to_numpy().copy() for column in ("start_ns", "end_ns"))
    start_ns[parent[top[::-1]]] = start_ns[top[::-1]]  # in reverse, so that the first child's value is kept
    end_ns[parent[top]] = end_ns[top]
    return rows.with_columns(
        pl.Series("start_ns", start_ns),
        pl.Series("end_ns", end_ns),
        pl.col("type").fill_null(PluginType.IGNORED),
        pl.col("node_class").fill_null(NodeClass.ROOT),
        pl.col("is_counted").fill_null(value=False),
    )


def _is_merged(placed: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Return which operators are the only child of an operator with the same name."""
    parent, names, types = (placed[column].to_numpy() for column in ("parent", "name", "type"))
    has_parent = parent >= 0
    child_count = np.bincount(parent[has_parent], minlength=len(parent))
    around = np.maximum(parent, 0)
    both_operators = (types == PluginType.OPERATOR) & (types[around] == PluginType.OPERATOR)
    merged: npt.NDArray[np.bool_] = has_parent & both_operators & (child_count[around] == 1) & (names == names[around])
    return merged


def _has_merged_child(placed: pl.DataFrame) -> npt.NDArray[np.bool_]:
    has_child = np.zeros(placed.height, np.bool_)
    has_child[placed["parent"].to_numpy()[_is_merged(placed)]] = True
    return has_child


def _remains(placed: pl.DataFrame) -> npt.NDArray[np.bool_]:
    remains: npt.NDArray[np.bool_] = (placed["parent"].to_numpy() != _DISCARDED) & ~_is_merged(placed)
    return remains


def _row_that_remains(placed: pl.DataFrame) -> _Rows:
    """Return, for each row, the row in `summed_trees` that represents it; -1 if there is none.

    A row that was merged into its parent is represented by this parent. For a discarded row, the result is -1. The
    result has one more entry at the end, so that index -1 gives -1.
    """
    parent, remains = placed["parent"].to_numpy(), _remains(placed)
    known = np.where(parent == _DISCARDED, NO_PARENT, np.arange(len(parent)))
    rows = itself_or_above(np.maximum(parent, NO_PARENT), remains, known)
    return np.append(np.append(np.cumsum(remains) - 1, NO_PARENT)[rows], NO_PARENT)
