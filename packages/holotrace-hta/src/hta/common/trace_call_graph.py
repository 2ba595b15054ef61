"""Call stacks as columns of frames, at HTA's import path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from holotrace.algorithms.nested.nesting import NO_PARENT, depths
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.errors import InvalidOptionError
from holotrace.store.trace import RankTrace
from hta.common.trace import Trace
from hta.facade.graphs.call_stack_nodes import CallStackGraph, CallStackIdentity, CallStackNode
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.symbols import TraceSymbolTable
from hta.facade.trace.trace_view import TraceView

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

_NONE = -1
_NS_OF_A_MICROSECOND = 1_000

_MISSING = {"num_kernels": 0, "kernel_dur_sum": 0, "kernel_span": 0}
"""Values for events outside of call stacks; in all other columns that `CallGraph` adds, these events have -1."""

_Numbers = npt.NDArray[np.int64]


class CallGraph:
    """Adds call stacks, and the kernels launched below each call, to the frames of a trace.

    Operators, annotations, and runtime and driver calls are nested by time within each thread. Device work is a child
    of the call that launched it. Events outside of call stacks, such as Python functions, have 0 in num_kernels,
    kernel_dur_sum and kernel_span, and -1 in the other columns.

    parent              index of the enclosing event; for device work its launch call; -1 for none
    depth               number of enclosing events: 0 for the outermost
    height              0 for device work, 1 for host events without children, otherwise 1 + largest height of a child
    num_kernels         number of device events launched within; 1 for device work itself
    kernel_dur_sum      summed duration of the device events launched within, in µs
    first_kernel_start  start of the first device event launched within, on the clock of `ts`; -1 for none
    last_kernel_end     end of the last device event launched within; -1 for none
    kernel_span         time from first_kernel_start to last_kernel_end; 0 for none

    The same data is available as objects, created on first use: `rank_to_stacks` ({rank: {identity: graph}}),
    `rank_to_nodes` ({rank: {event index: node}}), `call_stacks` (all graphs), and `mapping` (one row per graph: rank,
    pid, tid, label, stack_index, stack_root, count).

    Args:
        trace: `analyzer.t`, or a loaded `hta.common.trace.Trace`.
        ranks: the ranks to include; by default all.

    Raises:
        UnknownRankError: the rank does not exist.
    """

    stack_columns = (
        "parent", "depth", "height", "first_kernel_start", "last_kernel_end", "num_kernels", "kernel_dur_sum", "kernel_span",
    )  # fmt: skip

    def __init__(self, trace: TraceView, ranks: Iterable[int] | None = None) -> None:
        self.trace_data = trace
        self.ranks = trace.get_ranks() if ranks is None else list(ranks)
        for rank in self.ranks:
            frame = trace.get_trace(rank)
            columns = _stack_columns(trace.trace.ranks[rank], frame["index"], trace.frame_origin_ns(rank))
            for name in self.stack_columns:
                frame[name] = columns[name]

    @staticmethod
    def from_dataframe(df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None, rank: int = -1) -> CallGraph:
        """Return the call graph of a frame, leaving the frame unchanged.

        Args:
            df: all or some events of a rank, as `analyzer.t.get_trace(rank)` returns them.
            symbol_table: maps the ids in `name` and `cat` to text; not needed if these columns contain text.
            rank: the rank number to use in the graph.
        """
        trace = Trace(trace_files={}, trace_dir="")
        if symbol_table is not None:
            trace.symbol_table = symbol_table
        trace.traces[rank] = df.copy()
        trace.is_parsed = True
        return CallGraph(trace)

    @cached_property
    def rank_to_nodes(self) -> dict[int, dict[int, CallStackNode]]:
        """The nodes of each rank: one for each event, and one for the root of each thread."""
        return {
            rank: {index: node for stack in stacks.values() for index, node in stack.nodes.items()}
            for rank, stacks in self.rank_to_stacks.items()
        }

    @cached_property
    def rank_to_stacks(self) -> dict[int, dict[CallStackIdentity, CallStackGraph]]:
        """The graphs of each rank: one for each thread that has call stacks."""
        return {rank: _stacks(self._frame(rank), rank, self.trace_data.symbol_table) for rank in self.ranks}

    @cached_property
    def call_stacks(self) -> list[CallStackGraph]:
        """The graphs of all threads of all ranks."""
        return [stack for stacks in self.rank_to_stacks.values() for stack in stacks.values()]

    @cached_property
    def mapping(self) -> pd.DataFrame:
        """One row per graph; `label` is main, bwd, or the name of the first event."""
        texts = self.trace_data.symbol_table.get_sym_table()
        rows = [
            (*stack.identity, _label(stack, texts), index, stack.root_index, 1)
            for index, stack in enumerate(self.call_stacks)
        ]
        return pd.DataFrame(rows, columns=["rank", "pid", "tid", "label", "stack_index", "stack_root", "count"])

    def get_call_stacks(
        self, rank: int | None = None, pid: int | None = None, tid: int | None = None, stack_index: int | None = None
    ) -> Iterator[CallStackGraph]:
        """Yield the graphs that match every given argument; `stack_index` is the graph's index in `call_stacks`."""
        for index, stack in enumerate(self.call_stacks):
            wanted = zip((rank, pid, tid, stack_index), (*stack.identity, index), strict=True)
            if all(asked is None or asked == value for asked, value in wanted):
                yield stack

    def get_csg_of_node(self, index: int, rank: int | None = None) -> CallStackGraph:
        """Return the graph of the thread that ran an event or, for device work, of the thread that launched it.

        Raises:
            InvalidOptionError: the event does not exist, or is not in a call stack.
        """
        node = self.get_node_attributes(index, rank)
        if node["stream"] >= 0 and node["parent"] != _NONE:
            node = self.get_node_attributes(int(node["parent"]), rank)
        of_rank = self.ranks[0] if rank is None else rank
        stack = next(self.get_call_stacks(of_rank, node["pid"], node["tid"]), None)
        if stack is None:
            message = f"event {index} of rank {of_rank} is not in a call stack"
            raise InvalidOptionError(message)
        return stack

    def get_node_attributes(self, index: int, rank: int | None = None) -> pd.Series:
        """Return the row of an event in a rank's frame, by default in the first rank's frame.

        Raises:
            InvalidOptionError: the event does not exist.
        """
        frame = self._frame(rank)
        if index not in frame.index:
            message = f"rank {self.ranks[0] if rank is None else rank} has no event {index} in its frame"
            raise InvalidOptionError(message)
        row: pd.Series = frame.iloc[int(frame.index.get_indexer(pd.Index([index]))[0])]
        return row

    def get_stack_of_node(
        self,
        index: int,
        rank: int | None = None,
        skip_ancestors: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
    ) -> pd.DataFrame:
        """Return an event, its descendants and, unless skipped, its ancestors, sorted by time.

        Raises:
            InvalidOptionError: the event does not exist.
        """
        self.get_node_attributes(index, rank)
        frame = self._frame(rank)
        parents = frame["parent"]
        stack = {index}
        level = stack
        while level:
            level = set(frame.index[parents.isin(list(level))]) - stack
            stack |= level
        ancestor = int(parents[index])
        while ancestor != _NONE and not skip_ancestors:
            stack.add(ancestor)
            ancestor = int(parents[ancestor])
        return frame.loc[sorted(stack)].sort_values(["ts", "depth"])

    def get_gpu_kernels(self, rank: int | None = None) -> pd.DataFrame:
        """Return the device work of a rank, by default of the first rank."""
        frame = self._frame(rank)
        return frame[frame["height"] == 0]

    def _frame(self, rank: int | None) -> pd.DataFrame:
        return self.trace_data.get_trace(self.ranks[0] if rank is None else rank)


def _stacks(frame: pd.DataFrame, rank: int, symbols: TraceSymbolTable) -> dict[CallStackIdentity, CallStackGraph]:
    """Return the graph of each thread in a frame. The frame must have the columns that CallGraph adds."""
    on_host = frame[(frame["stream"] < 0) & (frame["height"] > 0)]
    launched = frame[(frame["height"] == 0) & (frame["parent"] != _NONE)]
    pairs = pd.DataFrame({"gpu_index": launched["index"], "cpu_index": launched["parent"]})
    owners: Any = on_host.groupby(["pid", "tid"])
    stacks = {CallStackIdentity(rank, *owner): events for owner, events in owners}
    return {
        owner: CallStackGraph(events, owner, pairs, frame, symbols, save_call_stack_to_df=False)
        for owner, events in stacks.items()
    }


def _label(stack: CallStackGraph, texts: list[str]) -> str:
    names = [texts[number] if isinstance(number, int) else number for number in stack.df["name"].unique().tolist()]
    if any(name.startswith("ProfilerStep#") for name in names):
        return "main"
    return "bwd" if any("autograd::" in name for name in names) else names[0]


def _stack_columns(rank_trace: RankTrace, events: pd.Series, origin_ns: int) -> dict[str, npt.NDArray[Any]]:
    calls, work = call_stacks(rank_trace), device_rows(rank_trace)
    launched_by = rows_of_events(calls, launches(rank_trace)["launch_index"])
    above = np.concatenate([calls["parent_row"].to_numpy(), launched_by])
    depth = depths(above).astype(np.int64)
    event_index = np.append(calls["event_index"].to_numpy(), work["event_index"].to_numpy()).astype(np.int64)
    totals = _added_up(above, depth, calls.height, work["start_ns"].to_numpy(), work["end_ns"].to_numpy())
    columns = {"parent": np.where(above == NO_PARENT, NO_PARENT, event_index[above]), "depth": depth}
    rows = pd.Index(event_index).get_indexer(pd.Index(events))
    return {
        name: np.where(rows == NO_PARENT, _MISSING.get(name, NO_PARENT), values[rows]) if len(values) else rows
        for name, values in (columns | totals.in_microseconds(origin_ns)).items()
    }


@dataclass(frozen=True)
class _Totals:
    """Each row's height, and the count, summed duration, first start and last end of the device work under the row."""

    height: _Numbers
    count: _Numbers
    duration_ns: _Numbers
    first_ns: _Numbers
    last_ns: _Numbers

    def in_microseconds(self, origin_ns: int) -> dict[str, npt.NDArray[Any]]:
        is_some = self.count > 0
        first, last = ((times - origin_ns) / _NS_OF_A_MICROSECOND for times in (self.first_ns, self.last_ns))
        return {
            "height": self.height,
            "first_kernel_start": np.where(is_some, first, _NONE),
            "last_kernel_end": np.where(is_some, last, _NONE),
            "num_kernels": self.count,
            "kernel_dur_sum": self.duration_ns / _NS_OF_A_MICROSECOND,
            "kernel_span": np.where(is_some, last - first, 0),
        }


def _added_up(above: _Numbers, depth: _Numbers, call_count: int, start_ns: _Numbers, end_ns: _Numbers) -> _Totals:
    """Compute the totals of each row from the rows of its children, starting at the deepest level.

    The first `call_count` rows are calls; all later rows are device work.
    """
    is_work = np.arange(len(above)) >= call_count
    count, duration, first, last = is_work.astype(np.int64), *np.zeros((3, len(above)), np.int64)
    height = np.where(is_work, 0, 1)
    first[~is_work], last[~is_work] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    duration[is_work], first[is_work], last[is_work] = end_ns - start_ns, start_ns, end_ns
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        around = above[rows]
        np.add.at(count, around, count[rows])
        np.add.at(duration, around, duration[rows])
        np.minimum.at(first, around, first[rows])
        np.maximum.at(last, around, last[rows])
        np.maximum.at(height, around, height[rows] + 1)
    return _Totals(height, count, duration, first, last)
