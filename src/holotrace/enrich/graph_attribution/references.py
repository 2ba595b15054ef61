"""Reads the recordings that name the operators of replayed kernels.

Such a recording contains the capture of the graph, or the same work run without a graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import gathered, of_events, rows_of_events
from holotrace.enrich.recorded_host.nodes import recorded_device_owner, recorded_nodes, recorded_runtime_owner
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.captures import batch_sizes, is_graph_launch
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

NODE_ID, CAPTURE, WITHOUT_GRAPH, KERNEL_NAME = "node_id", "capture", "eager", "kernel_name"
"""How a kernel in a graph was attributed to an operator or module: by an annotation of its node, by the trace of the
capture, by a recording of the same work without graphs, or by the name that torch.compile gives to both a generated
kernel and its operator."""

LAYER = "layer"
"""The operator is unknown, but the order of the kernels shows the layer; see `inferred_layers`."""

_BEGIN, _END = "StreamBeginCapture", "StreamEndCapture"
_LAUNCH = re.compile(r"Launch.*Kernel|LaunchKernel|LaunchCooperative")
_NO_WORK = re.compile(r"HostFunc|GraphLaunch")
_COPY = re.compile(r"^(cuda|cu|hip)Memcpy")
_MEMSET = re.compile(r"^(cuda|cu|hip)Memset")
_MOST_RANGES = 200
"""At most this many annotated ranges of a recording without graphs, the longest ones, are compared with replays."""


class Sequence(NamedTuple):
    """Work that may have been captured as one graph, in the order of its launches.

    how         `CAPTURE` or `WITHOUT_GRAPH`
    batch_size  batch size or number of tokens; None if unknown
    names       name of each kernel; None if not recorded
    kinds       EventKind of each kernel, copy or memset
    nodes       for each launch, the row in `recorded_nodes` of the node that contains it; -1 if there is none
    """

    how: str
    batch_size: int | None
    names: tuple[str | None, ...]
    kinds: _Rows
    nodes: _Rows


@derived
def captured_sequences(rank_trace: RankTrace) -> tuple[Sequence, ...]:
    """Return the work that each capture launched, in order.

    If no call begins or ends a capture, and the launches have no device work, the whole recording is assumed to be one
    capture.
    """
    calls = event_ranges(rank_trace, LAUNCH_KINDS, ["event_index", "name", "start_ns", "end_ns"]).sort(
        "start_ns", maintain_order=True
    )
    texts = rank_trace.texts(calls["name"])
    launched = _launch_calls(rank_trace, calls, texts)
    bounds = _captures(calls, texts)
    if not bounds and not device_rows(rank_trace).is_empty():
        return ()
    windows = bounds or [
        (int(start), int(end))
        for start, end in calls.select(pl.col("start_ns").min(), pl.col("end_ns").max()).drop_nulls().rows()
    ]
    sequences = (_between(rank_trace, launched, *window) for window in windows)
    return tuple(sequence for sequence in sequences if len(sequence.names))


@derived
def eager_sequences(rank_trace: RankTrace) -> tuple[Sequence, ...]:
    """Return the work that ran without a graph, in the whole recording and in each annotated range, such as a step."""
    owners, launched = recorded_device_owner(rank_trace), launches(rank_trace)
    rows = device_rows(rank_trace).select("name", "kind").hstack(launched)
    rows = rows.with_columns(owners["node"]).drop_nulls("launch_index").filter(pl.col("node") != NO_PARENT)
    rows = rows.filter(~is_graph_launch(rank_trace.texts(rows["launch_name"]))).sort(
        "launch_start_ns", maintain_order=True
    )
    if rows.is_empty():
        return ()
    starts = rows["launch_start_ns"].to_numpy()
    parts = dict.fromkeys((int(first), int(last)) for first, last in _ranges(rank_trace, starts))
    names = rank_trace.texts(rows["name"]).to_list()
    return tuple(
        Sequence(
            WITHOUT_GRAPH,
            None,
            tuple(names[first:last]),
            rows["kind"][first:last].to_numpy().astype(np.int64),
            rows["node"][first:last].to_numpy(),
        )
        for first, last in parts
    )


def _ranges(rank_trace: RankTrace, starts: _Rows) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows [first, last): first all rows, then the rows launched in each of the longest annotations."""
    yield 0, len(starts)
    ranges = event_ranges(rank_trace, [EventKind.USER_ANNOTATION], ["start_ns", "end_ns"])
    longest = ranges.sort(pl.col("end_ns") - pl.col("start_ns"), descending=True).head(_MOST_RANGES)
    firsts = np.searchsorted(starts, longest["start_ns"].to_numpy())
    lasts = np.searchsorted(starts, longest["end_ns"].to_numpy())
    yield from ((first, last) for first, last in zip(firsts, lasts, strict=True) if last > first)


def _captures(calls: pl.DataFrame, texts: pl.Series) -> list[tuple[int, int]]:
    """Return the start and the end of each capture."""
    begins = calls.filter(texts.str.contains(_BEGIN, literal=True).fill_null(value=False))["end_ns"].to_list()
    ends = calls.filter(texts.str.contains(_END, literal=True).fill_null(value=False))["start_ns"].to_numpy()
    after = np.searchsorted(ends, begins)
    return [(begin, int(ends[at])) for begin, at in zip(begins, after, strict=True) if at < len(ends)]


def _launch_calls(rank_trace: RankTrace, calls: pl.DataFrame, texts: pl.Series) -> pl.DataFrame:
    """Return the calls that launch a kernel, copy or memset, with the kind and name of this work and the call's node."""
    named = of_events(rank_trace.table("runtime_calls", ["event_index", "launched_kernel"]), calls["event_index"])
    kernels = rank_trace.texts(named["launched_kernel"])
    kind_of = {text: _kind(text) for text in texts.unique().drop_nulls()}
    kinds = pl.Series(
        "kind",
        [EventKind.KERNEL if kernel else kind_of.get(text) for text, kernel in zip(texts, kernels, strict=True)],
        pl.Int64,
    )
    owners = recorded_runtime_owner(rank_trace)
    at = rows_of_events(owners, calls["event_index"])
    launched = calls.with_columns(
        kinds, kernels.alias("kernel"), gathered(owners["node"], at).fill_null(NO_PARENT).alias("node")
    )
    chosen = launched.drop_nulls("kind")
    inside = chosen["start_ns"] < pl.Series(chosen["end_ns"].shift(1).cum_max()).fill_null(-(2**62))
    return _with_compiled_names(rank_trace, chosen.filter(~inside))


def _with_compiled_names(rank_trace: RankTrace, launched: pl.DataFrame) -> pl.DataFrame:
    """Add the names of kernels that torch.compile generated, from the events of the operators that launched them."""
    compiled = rank_trace.table("compiled_kernels", ["event_index", "kernel_name"])
    if compiled.is_empty():
        return launched
    events = gathered(recorded_nodes(rank_trace)["event_index"], launched["node"].to_numpy())
    names = rank_trace.texts(of_events(compiled, events)["kernel_name"])
    return launched.with_columns(
        pl.coalesce("kernel", pl.when(pl.col("kind") == EventKind.KERNEL).then(names)).alias("kernel")
    )


def _kind(call: str) -> EventKind | None:
    """Return the kind of work that a call launches; None for a call that launches no work or launches a graph."""
    if _NO_WORK.search(call):
        return None
    if _LAUNCH.search(call):
        return EventKind.KERNEL
    if _COPY.match(call):
        return EventKind.GPU_MEMCPY
    return EventKind.GPU_MEMSET if _MEMSET.match(call) else None


def _between(rank_trace: RankTrace, launched: pl.DataFrame, start_ns: int, end_ns: int) -> Sequence:
    part = launched.filter((pl.col("start_ns") >= start_ns) & (pl.col("start_ns") < end_ns))
    stands_for = {EventKind.GPU_MEMCPY: "Memcpy", EventKind.GPU_MEMSET: "Memset"}
    names = [stands_for.get(EventKind(kind), name) for kind, name in zip(part["kind"], part["kernel"], strict=True)]
    return Sequence(
        CAPTURE, _batch_size(rank_trace, start_ns), tuple(names), part["kind"].to_numpy(), part["node"].to_numpy()
    )


def _batch_size(rank_trace: RankTrace, time_ns: int) -> int | None:
    """Return the batch size in the name of an annotation around this time; None if no name contains one.

    If several names contain a batch size, use the name of the shortest annotation.
    """
    ranges = event_ranges(rank_trace, [EventKind.USER_ANNOTATION], ["name", "start_ns", "end_ns"])
    around = ranges.filter((pl.col("start_ns") <= time_ns) & (pl.col("end_ns") >= time_ns))
    shortest_first = around.sort(pl.col("end_ns") - pl.col("start_ns"))
    stated = batch_sizes(rank_trace.texts(shortest_first["name"])).drop_nulls()
    return int(stated[0]) if len(stated) else None
