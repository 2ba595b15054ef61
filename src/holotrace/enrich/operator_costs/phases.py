"""Find the training phase in which each operator runs: forward, backward, recompute or optimizer."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above, itself_or_above
from holotrace.enrich.events.event_rows import of_events, rows_of_events
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.enrich.host.call_stack import call_stacks, called_names
from holotrace.store.trace import RankTrace

PHASES = ("forward", "backward", "recompute", "optimizer")

_BACKWARD = r"^autograd::engine::evaluate_function|Backward\d*$|_backward$"
_ATEN = r"^aten::"
_COMPILED = r"^CompiledFunctionBackward$"
_OPTIMIZER = r"^Optimizer\.step|^optimizer(\.|_)step"

_Rows = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


def phases(rank_trace: RankTrace, rows: pl.Series) -> pl.Series:
    """Return the phase of each of these rows of `call_stacks`; null for row -1.

    Activation checkpointing repeats the forward pass inside the backward pass. In the trace, the operators of this
    repeated forward pass are inside a backward operator and have a sequence number, but no `forward_thread_id`. With
    `create_graph=True`, operators that compute gradients also have a sequence number, but no `forward_thread_id`.
    Therefore, an operator counts as recomputation only if a call outside the backward pass has the same name and
    shapes.

    Autograd does not record a compiled backward pass. An operator in a compiled backward pass counts as recomputation
    if a forward call has the same name, shapes and strides. Matrix multiplications that compute gradients have one
    transposed factor, so their strides differ from those in the forward pass.
    """
    stacks, at = call_stacks(rank_trace), rows.to_numpy()
    parent = stacks["parent_row"].to_numpy()
    is_backward = _named(rank_trace, stacks, _BACKWARD)
    inside = partial(_inside, parent, rows=at)
    in_backward = inside(is_backward)
    numbers = np.zeros(len(at), np.int64)
    numbers[inside(_named(rank_trace, stacks, _OPTIMIZER))] = PHASES.index("optimizer")
    numbers[in_backward] = PHASES.index("backward")
    records_again = _records_for_autograd(rank_trace, stacks) & ~is_backward
    again = in_backward & inside(records_again)
    if again.any():
        first = _furthest(parent, _named(rank_trace, stacks, _ATEN), _furthest(parent, records_again, at[again]))
        again[again] = _repeats_forward(rank_trace, stacks, is_backward, first, ["input_dims"])
    compiled = in_backward & inside(_named(rank_trace, stacks, _COMPILED))
    if compiled.any():
        compiled[compiled] = _repeats_forward(
            rank_trace, stacks, is_backward, at[compiled], ["input_dims", "input_strides"]
        )
        again |= compiled
    numbers[again] = PHASES.index("recompute")
    numbers[at == NO_PARENT] = -1
    texts = pl.Series([*PHASES, None], dtype=pl.String)
    return texts.gather(pl.Series(np.where(numbers < 0, len(PHASES), numbers))).alias("phase")


def _records_for_autograd(rank_trace: RankTrace, stacks: pl.DataFrame) -> _Bools:
    """Return whether each row is an operator with a sequence number but no `forward_thread_id`."""
    details = rank_trace.table("operators", ["event_index", "sequence_number", "forward_thread_id"])
    numbered = (pl.col("sequence_number") >= 0) & (pl.col("forward_thread_id").fill_null(0) == 0)
    rows = rows_of_events(stacks, details.filter(numbered)["event_index"])
    records = np.zeros(stacks.height, np.bool_)
    records[rows[rows != NO_PARENT]] = True
    return records


def _furthest(parent: _Rows, wanted: _Bools, rows: _Rows) -> _Rows:
    """Return, for each of `rows`, its outermost ancestor for which `wanted` is true; if there is none, the row itself."""
    furthest = furthest_above(parent, wanted, rows)
    return np.where(furthest == NO_PARENT, rows, furthest)


def _repeats_forward(
    rank_trace: RankTrace, stacks: pl.DataFrame, is_backward: _Bools, rows: _Rows, inputs: list[str]
) -> _Bools:
    """Return which rows in a backward operator have the same name and inputs as a call outside the backward pass.

    Calls outside the backward pass are ignored if they are inside another `aten` operator. For instance, `aten::linear`
    calls `aten::mm` with a transposed weight, and this call may look like one that computes a gradient.
    """
    parent = stacks["parent_row"].to_numpy()
    in_backward = itself_or_above(parent, is_backward, np.arange(len(parent))) != NO_PARENT
    is_aten = np.append(_named(rank_trace, stacks, _ATEN), False)
    recorded = described_events(rank_trace, "operator_inputs", ["event_index", *inputs])
    calls = stacks.select("name", "event_index").with_columns(of_events(recorded, stacks["event_index"]))
    outside = calls.filter(pl.Series(~in_backward & ~is_aten[parent]))
    repeated = calls[rows].join(outside, on=["name", *inputs], how="semi", nulls_equal=True)["event_index"]
    repeats: _Bools = calls[rows]["event_index"].is_in(repeated.implode()).to_numpy() & in_backward[rows]
    return repeats


def _named(rank_trace: RankTrace, stacks: pl.DataFrame, pattern: str) -> _Bools:
    distinct = called_names(rank_trace)
    is_match = np.zeros(len(rank_trace.strings), np.bool_)
    is_match[distinct.to_numpy()] = rank_trace.texts(distinct).str.contains(pattern).to_numpy()
    of_row: _Bools = is_match[stacks["name"].to_numpy()]
    return of_row


def _inside(parent: _Rows, wanted: _Bools, *, rows: _Rows) -> _Bools:
    """Return whether each of `rows` is `wanted` or is inside a row that is `wanted`."""
    if not wanted.any():
        return np.zeros(len(rows), np.bool_)
    inside: _Bools = itself_or_above(parent, wanted, rows) != NO_PARENT
    return inside
