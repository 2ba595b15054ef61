"""Align two runs as the TensorBoard plugin did, for `compat="torch_tb_profiler"`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, subtree_sums
from holotrace.content_equality import EqualByContent
from holotrace.enrich.host.call_paths import SUMS
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.host_nodes import node_texts
from holotrace.enrich.tensorboard_plugin.attribution import PluginAttribution
from holotrace.store.trace import RankTrace

SEVERAL = "CompositeNodes"
NOTHING = "Blank"

_ALIGNED = (NodeClass.STEP, NodeClass.MODULE, NodeClass.BACKWARD, NodeClass.DATALOADER, NodeClass.OPTIMIZER)


@dataclass(frozen=True, eq=False)
class PluginSide(EqualByContent):
    """The host nodes of a run, with their times and names, and the rows of their children."""

    nodes: pl.DataFrame
    names: Sequence[str]
    classes: Sequence[int]
    children: Sequence[list[int]]
    behind: Sequence[int]

    @classmethod
    def of(cls, rank_trace: RankTrace) -> PluginSide:
        """Read the nodes of a rank."""
        attribution = PluginAttribution()
        nodes = attribution.host_nodes(rank_trace).hstack(attribution.node_times(rank_trace))
        children: list[list[int]] = [[] for _ in range(nodes.height)]
        for row, parent in enumerate(nodes["parent"]):
            if parent != NO_PARENT:
                children[parent].append(row)
        sizes = subtree_sums(nodes["parent"].to_numpy(), np.ones(nodes.height, np.int64))
        behind = (np.arange(nodes.height) + sizes).tolist()
        named = nodes.with_columns(node_texts(rank_trace, nodes).alias("text"))
        return cls(named, named["text"].to_list(), nodes["node_class"].to_list(), children, behind)

    def top(self) -> list[int]:
        """Return the nodes that the plugin compared.

        If the first thread has steps, the plugin compared the outermost nodes inside these steps; otherwise, it
        compared the outermost nodes of this thread.
        """
        on_thread = self.children[0] if self.children else []
        in_steps = [child for row in on_thread if self.classes[row] == NodeClass.STEP for child in self.children[row]]
        has_steps = any(self.classes[row] == NodeClass.STEP for row in on_thread)
        return in_steps if has_steps else on_thread

    def label(self, rows: Sequence[int]) -> str:
        """Return the name that the plugin shows for a group of nodes."""
        if not rows:
            return NOTHING
        return self.names[rows[0]] if len(rows) == 1 else SEVERAL

    def operators(self, rows: Sequence[int]) -> pl.DataFrame:
        """Return the call count and times of each operator, summed over these nodes and all nodes inside them."""
        spans = [np.arange(row, self.behind[row]) for row in rows]
        inside = self.nodes[np.concatenate([np.empty(0, np.int64), *spans])].filter("is_counted")
        return inside.group_by(pl.col("text").alias("operator")).agg(
            pl.len().cast(pl.Int64).alias("call_count"), pl.col(SUMS[1:]).sum()
        )

    def sums(self, rows: Sequence[int]) -> dict[str, int]:
        """Return the number of these nodes, and the sums of their times."""
        return {"call_count": len(rows), **self.nodes[rows].select(pl.col(SUMS[1:]).sum()).row(0, named=True)}


@dataclass(frozen=True)
class Pair:
    """The nodes of control and test that the plugin's comparison shows in one row."""

    control: list[int]
    test: list[int]
    children: list[Pair] = field(default_factory=list)

    def table(self, control: PluginSide, test: PluginSide) -> pl.DataFrame:
        """Return this pair and the pairs inside it, outer pairs first, with depth, names, and sums for both traces."""
        rows: list[dict[str, str | int]] = []
        open_pairs = [(self, NO_PARENT, 0)]
        while open_pairs:
            pair, parent, depth = open_pairs.pop()
            open_pairs.extend((child, len(rows), depth + 1) for child in reversed(pair.children))
            name = " → ".join(dict.fromkeys((control.label(pair.control), test.label(pair.test))))
            sums = {f"control_{sum_name}": value for sum_name, value in control.sums(pair.control).items()}
            sums |= {f"test_{sum_name}": value for sum_name, value in test.sums(pair.test).items()}
            rows.append({"node": len(rows), "parent": parent, "depth": depth, "kind": "pair", "name": name, **sums})
        return pl.DataFrame(rows, infer_schema_length=None)


def plugin_pairs(control: PluginSide, test: PluginSide) -> Pair:
    """Align the steps, modules, backward passes, data loaders and optimizers of two runs by name, in time order.

    All unmatched nodes between two matches form one pair.
    """
    root = Pair(control.top(), test.top())
    open_pairs = [(root, root.control, root.test)]
    while open_pairs:
        pair, left, right = open_pairs.pop()
        for child in _children(control, test, left, right):
            pair.children.append(child)
            if len(child.control) == 1 == len(child.test):
                open_pairs.append((child, control.children[child.control[0]], test.children[child.test[0]]))
            elif len(child.control) > 1 and len(child.test) > 1:
                open_pairs.append((child, child.control, child.test))
    return root


def _children(control: PluginSide, test: PluginSide, left: list[int], right: list[int]) -> Iterator[Pair]:
    matches = list(_matches(control, test, left, right))
    if not matches:
        return
    begins = (0, 0)
    for match in [*matches, (len(left), len(right))]:
        between = Pair(left[begins[0] : match[0]], right[begins[1] : match[1]])
        if between.control or between.test:
            yield between
        if match[0] < len(left):
            yield Pair([left[match[0]]], [right[match[1]]])
        begins = match[0] + 1, match[1] + 1


def _matches(control: PluginSide, test: PluginSide, left: list[int], right: list[int]) -> Iterator[tuple[int, int]]:
    after = 0
    for place, row in enumerate(left):
        if control.classes[row] not in _ALIGNED:
            continue
        wanted = control.classes[row], control.names[row]
        match = next(
            (at for at in range(after, len(right)) if (test.classes[right[at]], test.names[right[at]]) == wanted), None
        )
        if match is not None:
            yield place, match
            after = match + 1
