"""Find operators on which the cost of a call depends: operators inside it, or its forward operator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, nearest_above
from holotrace.enrich.events.event_rows import gathered, of_events, rows_of_events
from holotrace.enrich.graph_attribution.attribution import references_of
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.enrich.graph_attribution.grafts import grafts, may_graft
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.host.forward_backward import forward_of_calls
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_TEXTS = ("name", "input_dims", "input_types", "concrete_inputs")
_TELLING = r"\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
_CHOOSING = r"(?i)top_?k|sort|expert|moe"

_Rows = npt.NDArray[np.int64]


class RelatedOperators(NamedTuple):
    """The operators on which the cost of each call depends.

    numbers  for each call, the index of its related operators in `lists`; null if it has none
    lists    distinct lists of operators: name, shapes, types and values of each, as texts
    """

    numbers: pl.Series
    lists: tuple[tuple[tuple[str | None, ...], ...], ...]


def operators_inside(rank_trace: RankTrace, rows: _Rows) -> RelatedOperators:
    """Return the operators inside these calls (rows of `call_stacks`) that take expert weights or choose experts.

    If the call was replayed by a CUDA graph, the operators come from the recording of the graph's capture.
    """
    return _listed(rows, pl.concat([_inside(rank_trace, rows), *_inside_replayed(rank_trace, rows)]))


def forward_operators(rank_trace: RankTrace, rows: _Rows) -> RelatedOperators:
    """Return the forward operators that belong to these backward calls (rows of `call_stacks`)."""
    stacks, calls = call_stacks(rank_trace), pl.Series("row", rows)
    forward = forward_of_calls(rank_trace, calls)
    names = gathered(stacks["name"], rows_of_events(stacks, forward)).alias("name")
    inputs = described_events(rank_trace, "operator_inputs", ["event_index", *_TEXTS[1:]])
    table = of_events(inputs, forward).with_columns(calls, names).drop_nulls("input_dims")
    return _listed(rows, table.select("row", *(rank_trace.texts(table[name]).alias(name) for name in _TEXTS)))


def _listed(rows: _Rows, described: pl.DataFrame) -> RelatedOperators:
    listed = described.group_by("row", maintain_order=True).agg(pl.col(_TEXTS))
    lists: dict[tuple[tuple[str | None, ...], ...], int] = {}
    number = {row: lists.setdefault(tuple(zip(*texts, strict=True)), len(lists)) for row, *texts in listed.iter_rows()}
    return RelatedOperators(pl.Series([number.get(row) for row in rows.tolist()], dtype=pl.UInt32), tuple(lists))


def _inside(rank_trace: RankTrace, rows: _Rows) -> pl.DataFrame:
    """Return the operators inside `rows` that take expert weights or choose experts.

    The column `row` of the result is, for each operator, the innermost of `rows` that contains it.
    """
    stacks = call_stacks(rank_trace)
    is_call = np.zeros(stacks.height, np.bool_)
    is_call[rows] = True
    operators = np.flatnonzero((stacks["kind"] == EventKind.CPU_OP).to_numpy())
    around = nearest_above(stacks["parent_row"].to_numpy(), is_call, operators)
    inside = operators[around != NO_PARENT]
    inputs = rank_trace.table("operator_inputs", ["event_index", *_TEXTS[1:]])
    table = (
        gathered(stacks["name"], inside)
        .alias("name")
        .to_frame()
        .hstack(of_events(inputs, gathered(stacks["event_index"], inside)))
        .with_columns(row=pl.Series(around[around != NO_PARENT]))
        .drop_nulls("input_dims")
    )
    matters = _matching(rank_trace, table["input_dims"], _TELLING) | _matching(rank_trace, table["name"], _CHOOSING)
    chosen = table.filter(matters)
    return chosen.select("row", *(rank_trace.texts(chosen[name]).alias(name) for name in _TEXTS))


def _matching(rank_trace: RankTrace, ids: pl.Series, pattern: str) -> pl.Series:
    """Return whether the text of each string id contains the pattern; each distinct text is searched once."""
    distinct = ids.unique().drop_nulls()
    matching = distinct.filter(rank_trace.texts(distinct).str.contains(pattern))
    return ids.is_in(matching.implode())


def _inside_replayed(rank_trace: RankTrace, rows: _Rows) -> list[pl.DataFrame]:
    if not may_graft(rank_trace):
        return []
    event_index = gathered(call_stacks(rank_trace)["event_index"], rows)
    nodes = of_events(grafts(rank_trace).nodes, event_index).select("reference", "reference_index", row=pl.Series(rows))
    return [
        _inside_recorded(references_of(rank_trace)[number], nodes.filter(pl.col("reference") == number))
        for number in nodes["reference"].drop_nulls().unique().sort()
    ]


def _inside_recorded(reference: RankTrace, nodes: pl.DataFrame) -> pl.DataFrame:
    recorded = rows_of_events(call_stacks(reference), nodes["reference_index"])
    places = nodes.select(call="row", row=pl.Series(recorded, dtype=pl.Int64))
    inside = _inside(reference, np.unique(recorded[recorded != NO_PARENT]))
    return places.join(inside, on="row", how="inner", maintain_order="left_right").select(
        pl.col("call").alias("row"), *_TEXTS
    )
