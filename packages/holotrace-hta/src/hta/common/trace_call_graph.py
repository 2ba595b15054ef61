"""Call stacks as columns of frames, where scripts written for Holistic Trace Analysis import them from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from holotrace.algorithms.nesting import NO_PARENT, depths
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.errors import InvalidOptionError
from hta.common.trace import Trace
from hta.facade.graphs.call_stack_nodes import CallStackGraph, CallStackIdentity, CallStackNode
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.trace_view import TraceView

if TYPE_CHECKING:
    from holotrace.store.trace import RankTrace
    from hta.facade.trace.symbols import TraceSymbolTable

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

_NONE = -1
_NS_OF_A_MICROSECOND = 1_000

_MISSING = {"num_kernels": 0, "kernel_dur_sum": 0, "kernel_span": 0}
"""What stands for nothing; in other columns it is -1."""

_Numbers = npt.NDArray[np.int64]


class CallGraph:
    """Adds to the frames of a trace what called what, and which kernels that led to.

    Operators, annotations, runtime and driver calls contain each other by time, per thread; device work belongs to the
    call that launched it. Python functions and what is in no stack have -1.

    parent              index of the event around it, for device work of its call; -1 for none
    depth               events around it: 0 for the outermost
    height              0 for device work, for the others at least 1: longest way down to one
    num_kernels         pieces of device work launched within; 1 for device work itself
    kernel_dur_sum      their summed durations in µs
    first_kernel_start  when the first of them begins, in the time of `ts`; -1 for none
    last_kernel_end     when the last of them ends; -1 for none
    kernel_span         from the one to the other; 0 for none

    As objects the same is in `rank_to_stacks` ({rank: {whose stack: its graph}}), `rank_to_nodes` ({rank: {index of an
    event: its node}}), `call_stacks` (all graphs), and `mapping` (a row for each graph: rank, pid, tid, label,
    stack_index, stack_root, count). They are made when a script asks for them.

    Args:
        trace: `analyzer.t`, or a loaded `hta.common.trace.Trace`.
        ranks: only these; by default all.

    Raises:
        UnknownRankError: there is no such rank.
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
        """Make the call graph of a frame; the frame stays as it is.

        Args:
            df: events of a rank, as `analyzer.t.get_trace(rank)` has them, or some of them.
            symbol_table: the texts of the numbers in `name` and `cat`; not needed where those are texts.
            rank: what to call the rank.
        """
        trace = Trace(trace_files={}, trace_dir="")
        if symbol_table is not None:
            trace.symbol_table = symbol_table
        trace.traces[rank] = df.copy()
        trace.is_parsed = True
        return CallGraph(trace)

    @cached_property
    def rank_to_nodes(self) -> dict[int, dict[int, CallStackNode]]:
        """The node of each event of each rank, and of the root of each thread."""
        return {
            rank: {index: node for stack in stacks.values() for index, node in stack.nodes.items()}
            for rank, stacks in self.rank_to_stacks.items()
        }

    @cached_property
    def rank_to_stacks(self) -> dict[int, dict[CallStackIdentity, CallStackGraph]]:
        """The graph of each thread of each rank that has call stacks."""
        return {rank: _stacks(self._frame(rank), rank, self.trace_data.symbol_table) for rank in self.ranks}

    @cached_property
    def call_stacks(self) -> list[CallStackGraph]:
        """The graphs of all threads of all ranks."""
        return [stack for stacks in self.rank_to_stacks.values() for stack in stacks.values()]

    @cached_property
    def mapping(self) -> pd.DataFrame:
        """A row for each graph; `label` is main, bwd, or the name of the first event."""
        texts = self.trace_data.symbol_table.get_sym_table()
        rows = [
            (*stack.identity, _label(stack, texts), place, stack.root_index, 1)
            for place, stack in enumerate(self.call_stacks)
        ]
        return pd.DataFrame(rows, columns=["rank", "pid", "tid", "label", "stack_index", "stack_root", "count"])

    def get_call_stacks(
        self, rank: int | None = None, pid: int | None = None, tid: int | None = None, stack_index: int | None = None
    ) -> Iterator[CallStackGraph]:
        """Yield the graphs of a rank, process or thread, or the one at a place of `call_stacks`; by default all."""
        for place, stack in enumerate(self.call_stacks):
            wanted = zip((rank, pid, tid, stack_index), (*stack.identity, place), strict=True)
            if all(asked is None or asked == value for asked, value in wanted):
                yield stack

    def get_csg_of_node(self, index: int, rank: int | None = None) -> CallStackGraph:
        """Return the graph of the thread of an event, for device work that of the call which launched it.

        Raises:
            InvalidOptionError: there is no such event, or it is in no call stack.
        """
        node = self.get_node_attributes(index, rank)
        if node["stream"] >= 0 and node["parent"] != _NONE:
            node = self.get_node_attributes(int(node["parent"]), rank)
        of_rank = self.ranks[0] if rank is None else rank
        found = next(self.get_call_stacks(of_rank, node["pid"], node["tid"]), None)
        if found is None:
            message = f"event {index} of rank {of_rank} is in no call stack"
            raise InvalidOptionError(message)
        return found

    def get_node_attributes(self, index: int, rank: int | None = None) -> pd.Series[Any]:
        """Return the row of an event, by default of the first rank.

        Raises:
            InvalidOptionError: there is no such event.
        """
        frame = self._frame(rank)
        if index not in frame.index:
            message = f"rank {self.ranks[0] if rank is None else rank} has no event {index} in its frame"
            raise InvalidOptionError(message)
        row: pd.Series[Any] = frame.iloc[int(frame.index.get_indexer(pd.Index([index]))[0])]
        return row

    def get_stack_of_node(
        self,
        index: int,
        rank: int | None = None,
        skip_ancestors: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
    ) -> pd.DataFrame:
        """Return an event, all that it led to, and unless they are skipped the events around it; by time.

        Raises:
            InvalidOptionError: there is no such event.
        """
        self.get_node_attributes(index, rank)
        frame = self._frame(rank)
        parents = frame["parent"]
        found = {index}
        level = found
        while level:
            level = set(frame.index[parents.isin(list(level))]) - found
            found |= level
        around = int(parents[index])
        while around != _NONE and not skip_ancestors:
            found.add(around)
            around = int(parents[around])
        return frame.loc[sorted(found)].sort_values(["ts", "depth"])

    def get_gpu_kernels(self, rank: int | None = None) -> pd.DataFrame:
        """Return the device work of a rank, by default of the first."""
        frame = self._frame(rank)
        return frame[frame["height"] == 0]

    def _frame(self, rank: int | None) -> pd.DataFrame:
        return self.trace_data.get_trace(self.ranks[0] if rank is None else rank)


def _stacks(frame: pd.DataFrame, rank: int, symbols: TraceSymbolTable) -> dict[CallStackIdentity, CallStackGraph]:
    """Return the graphs of the threads of a frame that has the columns of a CallGraph."""
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


def _stack_columns(rank_trace: RankTrace, events: pd.Series[int], origin_ns: int) -> dict[str, npt.NDArray[Any]]:
    """Return the columns for these events."""
    calls, work = rank_trace.derive(call_stacks), device_rows(rank_trace)
    launched_by = rows_of_events(calls, rank_trace.derive(launches)["launch_index"])
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
    """What lies under each row: height, number, summed duration, first start and last end of device work."""

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
    """Hand the totals of device work, the rows from `call_count` on, up to what lies around it: deepest first."""
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
