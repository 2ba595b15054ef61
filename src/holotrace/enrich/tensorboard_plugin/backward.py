"""Move backward nodes in the trees as the TensorBoard plugin does; only for `compat`.

holotrace's own backward times come from `holotrace.enrich.host.modules`, which does not move nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, depths
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.tensorboard_plugin.events import rounded_ns
from holotrace.store.trace import RankTrace

_BACKWARD_PREFIX = "autograd::engine::evaluate_function:"
_ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
_FLOW_CATEGORY = "fwdbwd"
_MOVED = {
    "summed_row": pl.Int64,
    "parent": pl.Int64,
    "name": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
}
_CONTAINERS = (NodeClass.ROOT, NodeClass.STEP)


@dataclass(eq=False)
class _Node:
    """A node of a tree that is being rebuilt; `row` is the node's row in the table, or -1 if the node was added."""

    row: int
    name: int | None
    node_class: int
    start_ns: int
    end_ns: int
    children: list[_Node] = field(default_factory=list)

    def within(self) -> Iterator[_Node]:
        """Yield the node and all its descendants, parents first."""
        open_nodes = [self]
        while open_nodes:
            node = open_nodes.pop()
            yield node
            open_nodes.extend(reversed(node.children))


def with_backward_modules(rank_trace: RankTrace, summed: pl.DataFrame) -> pl.DataFrame:
    """Return the trees with the plugin's backward nodes; `summed_row` is each node's row in `summed`, -1 for new nodes.

    Arrows in the trace lead from forward operators to backward operators, which are below `evaluate_function` nodes of
    autograd. If the forward operator belongs to a module, the `evaluate_function` node and the gradient accumulations
    that follow this node move from their thread to a new node `<module>.backward` on the main thread. Backward nodes
    without such an arrow are dropped.
    """
    unchanged = summed.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("summed_row"))
    links = _links(rank_trace)
    if not links or not (summed["node_class"] == NodeClass.MODULE).any():
        return unchanged
    trees = _trees(summed)
    backward_ids = _ids_starting(rank_trace, _BACKWARD_PREFIX)
    modules, passes = _top_nodes(trees, backward_ids)
    if not modules or not passes:
        return unchanged
    main = _main_tree(summed, trees, passes)
    groups = _groups(passes, _ids_starting(rank_trace, _ACCUMULATE))
    _take_out(trees, passes)
    by_forward = _by_forward(links, passes, groups, backward_ids)
    counted = set(np.flatnonzero(summed["is_counted"].to_numpy()).tolist())
    backward = [made for module in modules for made in _backward_of(module, by_forward, counted)]
    _insert(main, sorted(backward, key=_by_time))
    return _table(summed, [tree for tree in trees if tree.children])


def _links(rank_trace: RankTrace) -> dict[int, int]:
    """Return {start of a forward operator: start of its backward operator}, from the arrows."""
    flows = rank_trace.table("flows", ["category", "flow_id", "is_start", "start_ns"])
    ids = (rank_trace.strings == _FLOW_CATEGORY).arg_true().cast(pl.UInt32)
    arrows = flows.filter(pl.col("category").is_in(ids.implode()))
    arrows = arrows.with_columns(pl.Series("time", rounded_ns(rank_trace, arrows["start_ns"].to_numpy())))
    arriving = arrows.filter(~pl.col("is_start")).unique("flow_id", keep="last")
    leaving = arrows.filter("is_start").unique("flow_id", keep="last", maintain_order=True)
    pairs = leaving.join(arriving, on="flow_id", maintain_order="left").select("time", "time_right")
    return dict(pairs.iter_rows())


def _ids_starting(rank_trace: RankTrace, prefix: str) -> set[int]:
    return set(rank_trace.strings.str.starts_with(prefix).arg_true().to_list())


def _trees(summed: pl.DataFrame) -> list[_Node]:
    columns = ("parent", "name", "node_class", "start_ns", "end_ns")
    nodes: list[_Node] = []
    for row, (parent, *known) in enumerate(summed.select(columns).iter_rows()):
        nodes.append(_Node(row, *known))
        if parent != NO_PARENT:
            nodes[parent].children.append(nodes[-1])
    return [node for node in nodes if node.node_class == NodeClass.ROOT]


def _top_nodes(trees: list[_Node], backward_ids: set[int]) -> tuple[list[_Node], list[_Node]]:
    """Return the outermost modules, and the backward passes directly below roots and steps.

    Backward passes with the same parent are adjacent.
    """
    modules: list[_Node] = []
    passes: defaultdict[_Node, list[_Node]] = defaultdict(list)
    open_nodes = [(tree, child) for tree in reversed(trees) for child in reversed(tree.children)]
    while open_nodes:
        parent, node = open_nodes.pop()
        if node.node_class == NodeClass.MODULE:
            modules.append(node)
        elif node.node_class == NodeClass.STEP:
            open_nodes.extend((node, child) for child in reversed(node.children))
        elif node.name in backward_ids:
            passes[parent].append(node)
    return modules, [node for nodes in passes.values() for node in nodes]


def _main_tree(summed: pl.DataFrame, trees: list[_Node], passes: list[_Node]) -> _Node:
    """Return the last tree that contains a step.

    If no tree contains a step, return the longest tree. The first tree with a backward pass directly below its root is not
    considered, unless it is the only tree.
    """
    with_steps = set(summed.filter(pl.col("node_class") == NodeClass.STEP)["tree"])
    tree_of = summed["tree"].to_list()
    stepped = [tree for tree in trees if tree_of[tree.row] in with_steps]
    if stepped:
        return stepped[-1]
    backward = next((tree for tree in trees if any(child in passes for child in tree.children)), None)
    return max(
        (tree for tree in trees if tree is not backward or len(trees) == 1),
        key=lambda tree: tree.end_ns - tree.start_ns,
    )


def _groups(passes: list[_Node], accumulate_ids: set[int]) -> dict[_Node, list[_Node]]:
    """Return, for each backward pass, the pass itself and the gradient accumulations that follow it."""
    groups: list[list[_Node]] = []
    for node in passes:
        if node.name in accumulate_ids and groups:
            groups[-1].append(node)
        else:
            groups.append([node])
    return {group[0]: group for group in groups}


def _take_out(trees: list[_Node], passes: list[_Node]) -> None:
    taken = set(passes)
    for tree in trees:
        for node in list(tree.within()):
            if node.node_class in _CONTAINERS:
                node.children = [child for child in node.children if child not in taken]


def _by_forward(
    links: dict[int, int], passes: list[_Node], groups: dict[_Node, list[_Node]], backward_ids: set[int]
) -> dict[int, list[_Node]]:
    """Return {start of a forward operator: its group of backward nodes}.

    If two arrows point to the same group, the group is assigned to the forward operator of the first arrow. The plugin
    itself failed on files with such arrows.
    """
    parent_at: dict[int, _Node] = {}
    for node in passes:
        for parent in node.within():
            for child in parent.children:
                parent_at.setdefault(child.start_ns, parent)
    by_forward: dict[int, list[_Node]] = {}
    for forward, backward in links.items():
        found_at = parent_at.get(backward)
        while found_at is not None and found_at.name not in backward_ids:
            found_at = parent_at.get(found_at.start_ns)
        if found_at in groups:
            by_forward[forward] = groups.pop(found_at)
    return by_forward


def _backward_of(module: _Node, by_forward: dict[int, list[_Node]], counted: set[int]) -> list[_Node]:
    """Return the backward node of a module, with the backward nodes of the modules inside it."""
    top: list[_Node] = []
    open_nodes: list[tuple[_Node, _Node | None]] = [(module, None)]
    made: list[_Node] = []
    while open_nodes:
        node, around = open_nodes.pop()
        if node.node_class == NodeClass.MODULE:
            made.append(_Node(NO_PARENT, node.name, NodeClass.BACKWARD, node.start_ns, node.end_ns))
            (top if around is None else around.children).append(made[-1])
            around = made[-1]
        elif around is not None and node.row in counted:
            around.children.extend(by_forward.pop(node.start_ns, []))
        open_nodes.extend((child, around) for child in reversed(node.children))
    for node in reversed(made):
        node.children.sort(key=_by_time)
        if node.children:
            node.start_ns, node.end_ns = node.children[0].start_ns, node.children[-1].end_ns
    return top if by_forward or any(node.children for node in made) else []


def _insert(root: _Node, backward: list[_Node]) -> None:
    """Insert each backward node below the innermost node that is running at its start; drop it if there is none."""
    around: list[tuple[_Node, int]] = []
    place: tuple[_Node, int] | None = (root, 0)
    for node in backward:
        while place is not None and node.start_ns > place[0].end_ns:
            place = around.pop() if around else None
            place = None if place is None else (place[0], place[1] + 1)
        if place is None or node.end_ns < place[0].start_ns:
            continue
        place = _descended(node, place, around)
        place[0].children.insert(place[1], node)
        place = (place[0], place[1] + 1)


def _descended(node: _Node, place: tuple[_Node, int], around: list[tuple[_Node, int]]) -> tuple[_Node, int]:
    parent, index = place
    while index < len(parent.children) and node.end_ns >= parent.children[index].start_ns:
        if node.start_ns >= parent.children[index].end_ns:
            index += 1
        else:
            around.append((parent, index))
            parent, index = parent.children[index], 0
    return parent, index


def _table(summed: pl.DataFrame, trees: list[_Node]) -> pl.DataFrame:
    rows: list[tuple[int, int, int | None, int, int]] = []
    tree_numbers = summed["tree"].to_list()
    trees_of: list[int] = []
    for tree in trees:
        open_nodes = [(tree, NO_PARENT)]
        while open_nodes:
            node, parent = open_nodes.pop()
            open_nodes.extend((child, len(rows)) for child in reversed(node.children))
            rows.append((node.row, parent, node.name, node.start_ns, node.end_ns))
            trees_of.append(tree_numbers[tree.row])
    moved = pl.DataFrame(rows, schema=_MOVED, orient="row").with_columns(pl.Series("tree", trees_of, pl.Int32))
    return _filled(summed, moved)


def _filled(summed: pl.DataFrame, moved: pl.DataFrame) -> pl.DataFrame:
    """Return `moved` with the missing columns taken from `summed`."""
    known = summed[moved["summed_row"].replace(NO_PARENT, None).fill_null(0).cast(pl.UInt32)]
    is_made = moved["summed_row"] == NO_PARENT
    table = known.with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("node"),
        *moved.get_columns(),
        pl.Series("depth", depths(moved["parent"].to_numpy())),
        (moved["end_ns"] - moved["start_ns"]).alias("of_parent_ns"),
    )
    return table.with_columns(
        pl.when(~is_made).then("event_index").alias("event_index"),
        pl.when(is_made).then(pl.lit(NodeClass.BACKWARD, pl.UInt8)).otherwise("node_class").alias("node_class"),
        pl.col("is_counted") & ~is_made,
    )


def _by_time(node: _Node) -> tuple[int, int]:
    return node.start_ns, -node.end_ns
