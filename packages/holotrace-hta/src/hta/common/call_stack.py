"""HTA's older call stacks, kept for older scripts: the `CallGraph` of this module adds the columns `depth` and `parent`.

`hta.common.trace_call_graph` adds more columns; both modules find the same parents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from holotrace.errors import InvalidOptionError
from hta.facade.graphs.call_stack_nodes import (
    EVENT_END,
    EVENT_START,
    NON_EXISTENT_NODE_INDEX,
    NULL_NODE_INDEX,
    CallStackIdentity,
    NodeGraph,
    parents_of,
    thread_nodes,
)
from hta.facade.imports.elsewhere import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

__all__ = [
    "EVENT_END",
    "EVENT_START",
    "NON_EXISTENT_NODE_INDEX",
    "NULL_NODE_INDEX",
    "CallGraph",
    "CallStackGraph",
    "CallStackIdentity",
    "CallStackNode",
    "DeviceType",
    "infer_device_type",
]


class DeviceType(Enum):
    """The kind of device on which events ran."""

    UNKNOWN = 0
    CPU = 1
    GPU = 2


class CallStackNode(NamedTuple):
    """An event in its thread's call stack: its parent, its depth, and its children."""

    parent: int = NULL_NODE_INDEX
    depth: int = -1
    children: list[int] = []  # noqa: RUF012 -- HTA's default; never modified


class _Frames(Protocol):
    """Provides a frame for each rank, as `analyzer.t` does."""

    def get_trace(self, rank: int) -> pd.DataFrame: ...

    def get_all_traces(self) -> Iterable[int]: ...


def infer_device_type(df: pd.DataFrame) -> DeviceType:
    """Return where a frame's events ran: CPU, or GPU (any stream, including 0).

    Returns UNKNOWN if the frame has events of both kinds, or no events.
    """
    is_on_device = (df["stream"] >= 0).unique().tolist()
    return {(False,): DeviceType.CPU, (True,): DeviceType.GPU}.get(tuple(is_on_device), DeviceType.UNKNOWN)


class CallStackGraph(NodeGraph):
    """The call stack of a thread.

    Args:
        df: the events of the thread, with index, ts, dur, stream and index_correlation.
        identity: the rank, process and thread.
        filter_func: selects the events to include; by default all.

    Raises:
        InvalidOptionError: a column is missing.
    """

    def __init__(
        self,
        df: pd.DataFrame,
        identity: CallStackIdentity,
        filter_func: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    ) -> None:
        if "index_correlation" not in df.columns:
            message = "the frame has no column index_correlation; frames of analyzer.t.get_trace(rank) have it"
            raise InvalidOptionError(message)
        self.df, self.identity, self.filter_func = df, identity, filter_func
        self.device_type = infer_device_type(df)
        self.correlations = df["index_correlation"]
        self.root_index = NULL_NODE_INDEX
        self.nodes: dict[int, CallStackNode] = {}
        if self.device_type is not DeviceType.GPU:
            nodes = thread_nodes(parents_of(df if filter_func is None else filter_func(df)), NULL_NODE_INDEX, {})
            self.nodes = {index: CallStackNode(node.parent, node.depth, node.children) for index, node in nodes.items()}
        self.depth = self._depth()

    def get_depth(self) -> pd.Series:
        """Return the depth of each event; -1 for device events."""
        return self.depth

    def get_paths_to_leaves(self, idx: int) -> list[list[int]]:
        """Return the paths from a node to each of its leaves."""
        return self._paths(idx, lambda _: True)

    def get_leaf_nodes(self, idx: int) -> list[int]:
        """Return the leaves under a node."""
        return [path[-1] for path in self.get_paths_to_leaves(idx)]

    def _depth(self) -> pd.Series:
        if self.device_type is DeviceType.GPU:
            return pd.Series(-1, index=self.correlations.index, name="depth")
        known = {index: node.depth for index, node in self.nodes.items() if index >= 0}
        return pd.Series(known, name="depth", dtype="int64")


class CallGraph:
    """Adds `depth` and `parent` to the frames of a trace; the parent of device work is the call that launched it.

    Args:
        trace: `analyzer.t`.
        ranks: the ranks to include; by default all.
        filter_func: selects the events to include; by default all.
        remapped_tids: {rank: {thread: new thread}}; the events of a thread are assigned to the new thread.
        pre_process_trace_data: first shorten the events of Python functions that end later than their callers.

    Raises:
        UnknownRankError: the rank does not exist.
    """

    def __init__(
        self,
        trace: _Frames,
        ranks: Iterable[int] | None = None,
        filter_func: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
        remapped_tids: Mapping[int, Mapping[int, int]] | None = None,
        pre_process_trace_data: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
    ) -> None:
        self.trace_data = trace
        self.call_stacks: list[CallStackGraph] = []
        for rank in list(trace.get_all_traces() if ranks is None else ranks):
            if pre_process_trace_data:
                self.constrain_child_time_withinin_parent(trace.get_trace(rank))
            self._add_rank(rank, filter_func, (remapped_tids or {}).get(rank, {}))
        owners = [stack.identity for stack in self.call_stacks]
        self.mapping = pd.DataFrame(owners, columns=["rank", "pid", "tid"]).assign(csg_index=range(len(owners)))
        self.mapping = self.mapping.set_index(["rank", "pid", "tid"])

    def get_stack_of_node(self, node_id: int, rank: int, skip_ancestors: bool = False) -> pd.DataFrame:  # noqa: FBT001, FBT002
        """Return an event's leaves, the device work that they launched, and its ancestors unless `skip_ancestors`."""
        frame = self.trace_data.get_trace(rank)
        event: Any = frame.loc[node_id]
        if event["stream"] >= 0:
            return self.get_stack_of_node(int(event["index_correlation"]), rank, skip_ancestors)
        owner = CallStackIdentity(rank, event["pid"], event["tid"])
        stack = next(stack for stack in self.call_stacks if stack.identity == owner)
        leaves = stack.get_leaf_nodes(node_id)
        around = [] if skip_ancestors else stack.get_path_to_root(node_id)
        launched = frame.loc[leaves, "index_correlation"]
        return frame.reindex([*leaves, *around, *launched[launched >= 0].tolist()])

    def constrain_child_time_withinin_parent(self, df: pd.DataFrame) -> None:
        """Shorten, in place, events of Python functions that end later than their callers in the same thread."""
        if df.empty or not {"python_id", "python_parent_id"} <= set(df.columns):
            return
        functions = df[df["python_id"] >= 0]
        row_of = dict(zip(functions["python_id"].tolist(), range(len(functions)), strict=True))
        above = [row_of.get(caller, -1) for caller in functions["python_parent_id"].tolist()]
        threads, starts = functions["tid"].tolist(), functions["ts"].to_numpy()
        ends = starts + functions["dur"].to_numpy()
        for row in _callers_first(above):
            caller = above[row]
            if caller >= 0 and threads[caller] == threads[row]:
                ends[row] = min(ends[row], ends[caller])
        df.loc[functions.index, "dur"] = ends - starts

    def _add_rank(
        self,
        rank: int,
        filter_func: Callable[[pd.DataFrame], pd.DataFrame] | None,
        threads: Mapping[int, int],
    ) -> None:
        frame = self.trace_data.get_trace(rank)
        of_thread = frame["tid"].map(lambda thread: threads.get(thread, thread))
        nodes: dict[int, CallStackNode] = {}
        owners: Any = frame.groupby([frame["pid"], of_thread], sort=False)
        for (process, thread), events in owners:
            on_device = events[events["stream"] > 0]
            stack = CallStackGraph(
                on_device if len(on_device) else events, CallStackIdentity(rank, process, thread), filter_func
            )
            self.call_stacks.append(stack)
            nodes |= {index: node for index, node in stack.nodes.items() if index >= 0}
        is_on_device = (frame["stream"] >= 0).to_numpy()
        node_of_row = [nodes.get(index, CallStackNode()) for index in frame["index"].tolist()]
        parents = np.array([node.parent for node in node_of_row], np.int64)
        frame["depth"] = np.array([node.depth for node in node_of_row], np.int64)
        frame["parent"] = np.where(is_on_device, frame["index_correlation"].to_numpy(), parents)


def _callers_first(above: list[int]) -> list[int]:
    """Return the rows of functions, callers before callees; omits functions whose chain of callers contains a cycle."""
    called: dict[int, list[int]] = {}
    for row, caller in enumerate(above):
        called.setdefault(caller, []).append(row)
    order = list(called.get(-1, []))
    for row in order:
        order += called.get(row, [])
    return order
