"""Measure the size of a rank's inputs in each step, which reveals ranks with longer sequences or larger batches."""

from __future__ import annotations

import json
from math import prod
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.enrich.collectives.collectives import answers
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.steps.steps import rows_of_windows, windows
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_OPERATORS = r"^aten::(addmm|mm|bmm|baddbmm|convolution|embedding|_grouped_mm)$"
"""Operators whose inputs grow with the number of tokens or images in a step; none of them calls another, so no input
counts twice."""

_MOST_ELEMENTS = 1 << 50


class InputSize(NamedTuple):
    """The number of matrix products, convolutions and embeddings in a step, and how many elements they read."""

    call_count: int
    element_count: int


def input_sizes(rank_trace: RankTrace) -> dict[int, InputSize]:
    """Return the input size of each step; steps in which an input has an unknown shape are left out."""
    names = names_matching(rank_trace, _OPERATORS)
    if names.is_empty():
        return {}
    calls = rank_trace.events_of([EventKind.CPU_OP], ["event_index", "start_ns"], names=names)
    inputs = of_events(rank_trace.table("operator_inputs", ["event_index", "input_dims"]), calls["event_index"])
    counts = answers(rank_trace.texts(inputs["input_dims"]), _element_count, pl.Int64).alias("elements")
    within = windows(rank_trace)
    rows = pl.Series("row", rows_of_windows(within, calls["start_ns"].to_numpy()).astype(np.int64))
    sums = (
        pl.DataFrame([rows, counts])
        .filter(pl.col("row") >= 0)
        .group_by("row")
        .agg(pl.len().alias("calls"), pl.col("elements").sum(), pl.col("elements").null_count().alias("unknown"))
        .filter(pl.col("unknown") == 0)
    )
    steps = within["window"].to_list()
    return {steps[row]: InputSize(calls, elements) for row, calls, elements, _ in sums.iter_rows()}


def _element_count(dims: str | None) -> int | None:
    """Return the total number of elements in an operator's inputs; None if a shape is unknown or damaged."""
    try:
        shapes = json.loads(dims or "")
        sizes = [prod(shape) for shape in shapes if shape]
    except (TypeError, ValueError, RecursionError):
        return None
    total = sum(sizes) if all(isinstance(size, int) for size in sizes) else -1
    return total if 0 < total < _MOST_ELEMENTS else None
