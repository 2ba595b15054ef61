"""Call stacks as objects, with HTA's interface: one graph of nodes per thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from holotrace.algorithms.nested.nesting import nesting
from hta.facade.trace.device_kind import DeviceType, infer_device_type

NON_EXISTENT_NODE_INDEX = -2
NULL_NODE_INDEX = -1
EVENT_START = 1
EVENT_END = -1

_NS_OF_A_MICROSECOND = 1_000


class CallStackIdentity(NamedTuple):
    """The rank, process and thread of a call stack."""

    rank: int = -1
    pid: int = -1
    tid: int = -1


@dataclass
class CallStackNode:
    """An event in its thread's call stack.

    parent    the enclosing event; for outermost events the thread's root index
    depth     number of enclosing events, -1 for a root
    height    0 for device work, 1 for host events without children, otherwise 1 + largest height of a child
    device    where the event ran
    children  events directly inside this event, and the device work that it launched
    """

    parent: int = NULL_NODE_INDEX
    depth: int = -1
    height: int = -1
    device: DeviceType = DeviceType.CPU
    children: list[int] = field(default_factory=list)


Visit = Callable[[int, Any], None]


class NodeGraph:
    """The nodes of a call stack, by event index, and the paths through them."""

    nodes: Mapping[int, Any]
    root_index: int
    df: pd.DataFrame

    def get_nodes(self) -> Mapping[int, Any]:
        """Return {index of an event: its node}."""
        return self.nodes

    def get_dataframe(self) -> pd.DataFrame:
        """Return the events of the thread."""
        return self.df

    def get_parent(self, idx: int) -> int:
        """Return the parent of a node, or -2 if no node has this index."""
        return int(self.nodes[idx].parent) if idx in self.nodes else NON_EXISTENT_NODE_INDEX

    def get_children(self, idx: int) -> list[int]:
        """Return the children of a node."""
        return list(self.nodes[idx].children) if idx in self.nodes else []

    def get_path_to_root(self, idx: int) -> list[int]:
        """Return a node and its ancestors up to the root."""
        path = [idx] if idx in self.nodes else []
        while path and path[-1] >= 0 and path[-1] in self.nodes:
            path.append(int(self.nodes[path[-1]].parent))
        return path

    def get_root(self, idx: int) -> int:
        """Return the root above a node, or -1 if no node has this index."""
        return self.get_path_to_root(idx)[-1] if idx in self.nodes else NULL_NODE_INDEX

    def dfs_traverse(self, enter_func: Visit, exit_func: Visit) -> None:
        """Visit all nodes depth first, calling `enter_func` before a node's children and `exit_func` after them."""
        for index, is_entered in self._walk(self.root_index):
            (enter_func if is_entered else exit_func)(index, self.nodes[index])

    def _walk(self, start: int) -> Iterator[tuple[int, bool]]:
        """Yield (node, True) before a node's children and (node, False) after them.

        Not recursive, because stacks may be too deep for recursion.
        """
        waiting = [(start, True)] if start in self.nodes else []
        while waiting:
            index, is_entered = waiting.pop()
            yield index, is_entered
            if is_entered:
                waiting.append((index, False))
                waiting += [(child, True) for child in reversed(self.nodes[index].children) if child in self.nodes]

    def _paths(self, start: int, is_shown: Callable[[int], bool]) -> list[list[int]]:
        """Return the paths from a node to each leaf, reduced to the nodes that `is_shown` accepts."""
        paths: list[list[int]] = []
        path: list[int] = []
        for index, is_entered in self._walk(start):
            if not is_shown(index):
                continue
            if not is_entered:
                path.pop()
                continue
            path.append(index)
            if not any(child in self.nodes and is_shown(child) for child in self.nodes[index].children):
                paths.append(list(path))
        return paths


class CallStackGraph(NodeGraph):
    """The call stack of a thread.

    Args:
        df: the events of the thread, with index, ts, dur and stream.
        identity: the rank, process and thread.
        cpu_gpu_correlation: the columns gpu_index (device work) and cpu_index (its launch call).
        full_df: all events of the rank.
        symbol_table: stored but not used.
        nodes: the nodes of other threads, to which the graph adds its own nodes.
        use_existing_stack_columns: use parent, depth and height of `full_df` if it has them.
        save_call_stack_to_df: write parent, depth and height into `full_df`.
    """

    def __init__(  # noqa: PLR0913, PLR0917 -- HTA's signature
        self,
        df: pd.DataFrame,
        identity: CallStackIdentity,
        cpu_gpu_correlation: pd.DataFrame,
        full_df: pd.DataFrame,
        symbol_table: object,
        nodes: dict[int, CallStackNode] | None = None,
        use_existing_stack_columns: bool = True,  # noqa: FBT001, FBT002
        save_call_stack_to_df: bool = True,  # noqa: FBT001, FBT002
    ) -> None:
        self.df, self.full_df, self.identity, self.symbol_table = df, full_df, identity, symbol_table
        self.correlations = cpu_gpu_correlation
        self.device_type = infer_device_type(df)
        self.nodes: dict[int, CallStackNode] = {} if nodes is None else nodes
        self.root_index = -abs(int(identity.tid))
        if self.device_type is DeviceType.GPU:
            return
        is_known = use_existing_stack_columns and _has_stack_columns(full_df, df)
        parents = _known_parents(full_df, df) if is_known else parents_of(df)
        self.nodes |= thread_nodes(parents, self.root_index, _launched(cpu_gpu_correlation, parents))
        if save_call_stack_to_df and not is_known:
            self.save_call_stack_to_dataframe()

    def __repr__(self) -> str:
        """Show the nodes."""
        return "\n".join(["CallStackGraph", *(f"    {index}: {node}" for index, node in self.nodes.items())])

    def get_paths_to_leaves(self, idx: int, include_cuda_kernel: bool = False) -> list[list[int]]:  # noqa: FBT001, FBT002
        """Return the paths from a node to each of its leaves; by default, host events only."""
        return self._paths(idx, self._is_shown(with_device=include_cuda_kernel))

    def get_leaf_nodes(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:  # noqa: FBT001, FBT002
        """Return the leaves under a node; by default, host events only."""
        return [path[-1] for path in self.get_paths_to_leaves(idx, include_gpu_kernel)]

    def get_descendants(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:  # noqa: FBT001, FBT002
        """Return a node and its descendants; by default, host events only."""
        is_shown = self._is_shown(with_device=include_gpu_kernel)
        return [index for index, is_entered in self._walk(idx) if is_entered and is_shown(index)]

    def get_depth(self) -> pd.Series:
        """Return the depth of each event of the thread."""
        return self._values("depth")

    def save_call_stack_to_dataframe(self, apply_whole_graph: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Write the parent, depth and height of the thread's events into `full_df`."""
        for column in ("parent", "depth", "height"):
            values = self._values(column)
            if column not in self.full_df.columns:
                self.full_df[column] = NULL_NODE_INDEX
            self.full_df.loc[values.index, column] = values

    def _values(self, attribute: str) -> pd.Series:
        known = {index: getattr(self.nodes[index], attribute) for index in self.df["index"] if index in self.nodes}
        return pd.Series(known, name=attribute, dtype="int64")

    def _is_shown(self, *, with_device: bool) -> Callable[[int], bool]:
        return lambda index: with_device or self.nodes[index].device is not DeviceType.GPU


def parents_of(df: pd.DataFrame) -> pd.Series:
    """For each event of a thread, return the index of the event that encloses it, or -1 for outermost events."""
    events = df["index"].to_numpy()
    start, end = (_nanoseconds(times) for times in (df["ts"], df["ts"] + df["dur"].clip(lower=0)))
    parent = nesting(np.zeros(len(events), np.int64), start, end).parent
    return pd.Series(np.append(events, NULL_NODE_INDEX)[parent], index=events)


def thread_nodes(parents: pd.Series, root_index: int, launched: Mapping[int, list[int]]) -> dict[int, CallStackNode]:
    """Return the nodes of a thread; `parents` must list the events in order of start time."""
    pairs = list(zip(parents.index.tolist(), parents.tolist(), strict=True))
    nodes = {root_index: CallStackNode()}
    nodes |= {index: CallStackNode(root_index if parent < 0 else parent) for index, parent in pairs}
    for index, parent in pairs:
        nodes[root_index if parent < 0 else parent].children.append(index)
    for call, work in launched.items():
        added = [index for index in work if index not in nodes]
        nodes[call].children += added
        nodes |= {index: CallStackNode(call, device=DeviceType.GPU, height=0) for index in added}
    _set_depths(nodes, root_index)
    return nodes


def _set_depths(nodes: dict[int, CallStackNode], root_index: int) -> None:
    """Set the depth and height of all nodes, level by level."""
    levels = [[root_index]]
    while below := [child for index in levels[-1] for child in nodes[index].children]:
        levels.append(below)
    for depth, level in enumerate(levels, start=-1):
        for index in level:
            nodes[index].depth = depth
    for level in reversed(levels):
        for index in level:
            node = nodes[index]
            if node.device is not DeviceType.GPU:
                node.height = 1 + max((nodes[child].height for child in node.children), default=0)


def _has_stack_columns(full_df: pd.DataFrame, df: pd.DataFrame) -> bool:
    columns = ["parent", "depth", "height"]
    if not set(columns) <= set(full_df.columns):
        return False
    known = full_df.loc[df.index, columns]
    return bool(known.notna().all(axis=None) and (known["parent"] >= 0).any())


def _known_parents(full_df: pd.DataFrame, df: pd.DataFrame) -> pd.Series:
    known = full_df.loc[df.index]
    parents = known["parent"].where(known["parent"].isin(known["index"]), NULL_NODE_INDEX)
    return pd.Series(parents.to_numpy(np.int64), index=known["index"].to_numpy())


def _launched(correlations: pd.DataFrame, parents: pd.Series) -> dict[int, list[int]]:
    """Return {call of the thread: device work that it launched}."""
    if correlations.empty:
        return {}
    own = correlations[correlations["cpu_index"].isin(parents.index)]
    launched: dict[int, list[int]] = {}
    for call, work in zip(own["cpu_index"].tolist(), own["gpu_index"].tolist(), strict=True):
        launched.setdefault(int(call), []).append(int(work))
    return launched


def _nanoseconds(times: pd.Series) -> npt.NDArray[np.int64]:
    return np.round(times.to_numpy(np.float64) * _NS_OF_A_MICROSECOND).astype(np.int64)
