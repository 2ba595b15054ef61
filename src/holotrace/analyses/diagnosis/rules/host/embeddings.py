"""The rule about embeddings with dense gradients, in jobs that compute on the host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import polars as pl

from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, RankCase, Rule, Said, in_line
from holotrace.analyses.diagnosis.rules.host.host_operators import case_of_operators
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_rows import of_events
from holotrace.units import percent_text

_LOOKUP = r"^aten::embedding$"
_DENSE = r"^aten::embedding_dense_backward$"
_PRODUCT = r"(?i)mm(_|Backward\d+)?$|linear|matmul"
_FEW = 0.1
"""Sparse gradients are worthwhile if a step reads at most this share of the rows. A row that is read
twice counts twice."""


class _Table(NamedTuple):
    """The shape of an embedding, and the number of rows that a lookup reads."""

    rows: int
    width: int
    read: int


def dense_gradients(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for each embedding if a step reads few of its rows, but the backward pass and the optimizer process all rows."""
    if not evidence.computes_on_host or names_matching(evidence.rank_trace, _DENSE).is_empty():
        return
    inputs = evidence.rank_trace.table("operator_inputs", ["event_index", "input_dims"])
    pieces = evidence.while_idle.filter(pl.col("cause") == "operator")
    dims = evidence.rank_trace.texts(of_events(inputs, pieces["event_index"])["input_dims"])
    known = pieces.with_columns(dims.str.replace_all(" ", "").alias("dims"))
    for table in _sparsely_read(evidence, inputs):
        visits = _visits(known, table)
        if not visits.is_empty():
            case = case_of_operators(evidence, visits, subject=f"{table.rows} x {table.width}")
            yield replace(case, words={**case.words, **table._asdict()})


def _visits(known: pl.DataFrame, table: _Table) -> pl.DataFrame:
    """Return the operators that process all rows of the table, if its gradients can be sparse.

    If a matrix product reads a matrix of the table's shape, return no operators: the product may use the same weights,
    for example in a tied output layer, and then the gradients must stay dense.
    """
    shapes = (f"[{table.rows},{table.width}]", f"[{table.width},{table.rows}]")
    multiplied = known.filter(pl.col("name").str.contains(_PRODUCT))["dims"]
    if any(multiplied.str.contains(shape, literal=True).any() for shape in shapes):
        return known.clear()
    return known.filter(pl.col("dims").str.contains(shapes[0], literal=True) & ~pl.col("name").str.contains(_LOOKUP))


def _sparsely_read(evidence: RankEvidence, inputs: pl.DataFrame) -> list[_Table]:
    """Return the embeddings from which each lookup reads few rows."""
    names = evidence.rank_trace.table("events", ["event_index", "name"])
    called = inputs.join(names, on="event_index")
    lookups = called.filter(evidence.rank_trace.texts(called["name"]).str.contains(_LOOKUP).fill_null(value=False))
    texts = evidence.rank_trace.texts(lookups["input_dims"]).drop_nulls().unique(maintain_order=True)
    largest: dict[tuple[int, int], _Table] = {}
    for table in filter(None, map(_table, texts)):
        shape = (table.rows, table.width)
        largest[shape] = max(table, largest.get(shape, table), key=lambda known: known.read)
    return [table for table in largest.values() if table.read <= _FEW * table.rows]


def _table(dims: str) -> _Table | None:
    try:
        (rows, width), indices = json.loads(dims)[:2]
        return _Table(int(rows), int(width), prod(indices))
    except (TypeError, ValueError, RecursionError):
        return None


def _say(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"a step reads at most {words['read']:,} of the {words['rows']:,} rows of an embedding, but the backward pass and "
        f"the optimizer process all rows, which takes {percent_text(words['share'])} of the step, mostly {cases[0].place.operator}{in_line(cases[0].place)}",
        "Pass sparse=True to nn.Embedding, and update it with torch.optim.SparseAdam, Adagrad or SGD, without weight decay or momentum. "
        "If gradients must stay dense, pass fused=True to the optimizer.",
    )


RULES = (
    Rule(
        "dense_embedding_gradients",
        "embeddings for which the backward pass and the optimizer process all rows, although a step reads only a few "
        "rows, in jobs without device work",
        threshold=0.1,
        unit=OF_THE_STEP,
        reason="If a step reads at most a tenth of an embedding's rows, sparse gradients save most of the time that "
        "dense gradients take. If dense gradients take less than a tenth of the step, the gain is small.",
        source="https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html",
        check=dense_gradients,
        say=_say,
        precedence=0,
        confidence="medium",
    ),
)
"""The rule about embeddings."""
