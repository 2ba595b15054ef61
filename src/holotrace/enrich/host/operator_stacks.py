"""The Python call stack of each operator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, path_numbers
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.graph_attribution.attribution import references_of
from holotrace.enrich.graph_attribution.grafts import grafts, may_graft
from holotrace.enrich.host.call_stack import python_stacks
from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

FRAME_SEPARATOR = ";"
"""PyTorch's separator between the frames of a stack."""


_STACK_OF = {"event_index": pl.UInt32, "stack": pl.UInt32}


class OperatorStacks(NamedTuple):
    """The call stacks of operators.

    stack_of  one row per operator with a known stack, in file order: event_index uint32 and stack uint32 (a row of
              `texts`)
    texts     str, each stack once: its frames, the innermost first, separated by `;`
    """

    stack_of: pl.DataFrame
    texts: pl.Series


def operator_stacks(rank_trace: RankTrace) -> OperatorStacks:
    """Return the call stacks of the operators; replayed operators have the stacks from the capture of their graph.

    A stack is the `Call stack` that the profiler recorded (until PyTorch 1.12). If the file has no such stacks, a
    stack consists of the Python functions around the operator on its thread. Operators on autograd's threads have no
    stack, because these threads do not run Python.
    """
    return _with_replayed(rank_trace) if may_graft(rank_trace) else _of_file(rank_trace)


@derived
def _of_file(rank_trace: RankTrace) -> OperatorStacks:
    recorded = recorded_stacks(rank_trace)
    return recorded if len(recorded.stack_of) else _rebuilt(rank_trace)


@derived
def _with_replayed(rank_trace: RankTrace) -> OperatorStacks:
    """Add the stacks of replayed operators.

    These stacks come from the traces in which the operators really ran, such as the trace of a graph's capture.
    """
    nodes, parts = grafts(rank_trace).nodes, [_of_file(rank_trace)]
    for number in nodes["reference"].drop_nulls().unique().sort():
        of_reference = _of_file(references_of(rank_trace)[number])
        replayed = nodes.filter(pl.col("reference") == number).select(
            graft="event_index", event_index="reference_index"
        )
        known = replayed.join(of_reference.stack_of, on="event_index", maintain_order="left")
        before = sum(len(part.texts) for part in parts)
        stack_of = known.select(event_index="graft", stack=pl.col("stack") + pl.lit(before, pl.UInt32))
        parts.append(OperatorStacks(stack_of, of_reference.texts))
    texts = pl.concat([part.texts for part in parts])
    return OperatorStacks(pl.concat([part.stack_of for part in parts]), texts)


@derived
def recorded_stacks(rank_trace: RankTrace) -> OperatorStacks:
    """Return the stacks that the file contains."""
    sources = rank_trace.table("operator_sources", ["event_index", "call_stack"]).drop_nulls()
    distinct = sources["call_stack"].unique().sort()
    texts = rank_trace.texts(distinct)
    row = pl.Series("stack", np.searchsorted(distinct.to_numpy(), sources["call_stack"].to_numpy()).astype(np.uint32))
    known = sources.select("event_index", row).filter(texts.gather(row) != "")
    return OperatorStacks(known, texts)


def _rebuilt(rank_trace: RankTrace) -> OperatorStacks:
    if rank_trace.events_of([EventKind.PYTHON_FUNCTION], ["event_index"]).is_empty():
        return OperatorStacks(pl.DataFrame(schema=_STACK_OF), pl.Series("call_stack", dtype=pl.String))
    frames = python_stacks(rank_trace).with_row_index("row")
    operators = event_ranges(rank_trace, [EventKind.CPU_OP], ["event_index", "track_id", "start_ns", "end_ns"])
    around = _innermost_frame(frames, operators)
    known = np.flatnonzero(around != NO_PARENT)
    path = path_numbers(frames["parent_row"].to_numpy(), frames["name"].to_numpy())[around[known]]
    _, first, stack = np.unique(path, return_index=True, return_inverse=True)
    texts = _stack_texts(rank_trace, frames, around[known][first])
    numbered = pl.Series("stack", stack.astype(np.uint32))
    return OperatorStacks(operators[known].select("event_index", numbered), texts)


def _innermost_frame(frames: pl.DataFrame, operators: pl.DataFrame) -> _Rows:
    """Return the row of the innermost frame that contains each operator; -1 if there is none."""
    begun = frames.sort("start_ns", "depth", maintain_order=True).select("track_id", "start_ns", "row")
    placed = operators.select("track_id", "start_ns", place=pl.int_range(pl.len())).sort("start_ns")
    last = placed.join_asof(begun, on="start_ns", by="track_id", check_sortedness=False).sort("place")["row"]
    frame = last.cast(pl.Int64).fill_null(NO_PARENT).to_numpy().copy()
    parent, end_ns, ends = (
        frames["parent_row"].to_numpy(),
        frames["end_ns"].to_numpy(),
        operators["end_ns"].to_numpy(),
    )
    climbing = np.flatnonzero(frame != NO_PARENT)
    while len(climbing):
        climbing = climbing[end_ns[frame[climbing]] < ends[climbing]]
        frame[climbing] = parent[frame[climbing]]
        climbing = climbing[frame[climbing] != NO_PARENT]
    return frame


def _stack_texts(rank_trace: RankTrace, frames: pl.DataFrame, rows: _Rows) -> pl.Series:
    """Return a text for each of these frames: the names of the frame and of all frames around it."""
    parent, names = frames["parent_row"].to_list(), rank_trace.texts(frames["name"])
    texts = []
    for row in rows.tolist():
        stack, frame = [], row
        while frame != NO_PARENT:
            stack.append(frame)
            frame = parent[frame]
        texts.append(FRAME_SEPARATOR.join(names.gather(stack)))
    return pl.Series("call_stack", texts, dtype=pl.String)
