"""Count the rows that a rank's experts compute, from the shapes of grouped matrix products.

    aten::_grouped_mm(self [M, K], mat2 [G, K, N], offs [G])   M rows, divided among G experts at `offs` (not recorded)
    aten::_grouped_mm(self [G, M, K], mat2 [G, K, N])          M rows for each of G experts

Products of [K, M] and [M, N] are left out, because the backward pass uses them to compute weight gradients. Source:
https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/native_functions.yaml
"""

from __future__ import annotations

import json
from typing import NamedTuple

import polars as pl

from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_OPERATOR = r"^aten::_(scaled_)?grouped_mm(_v2)?$"
_MOST_ROWS = 1 << 40

PRODUCTS = {"product_count": pl.Int64, "computed_tokens": pl.Int64, "expert_count": pl.Int64}


class _Shape(NamedTuple):
    rows: int
    experts: int


def grouped_products(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the number of grouped products, the sum of their rows, and the largest number of experts in one.

    The result is one row with the columns of `PRODUCTS`, or an empty table if no shapes of grouped products
    were recorded.
    """
    names = names_matching(rank_trace, _OPERATOR)
    operators = event_ranges(rank_trace, [EventKind.CPU_OP], ["event_index", "start_ns", "end_ns"], names=names)
    inputs = described_events(rank_trace, "operator_inputs", ["event_index", "input_dims"])
    dims = rank_trace.texts(of_events(inputs, operators["event_index"])["input_dims"])
    counts = dims.drop_nulls().value_counts(name="count").rows()
    shapes = [(shape, count) for text, count in counts if (shape := _shape(text))]
    total = (
        sum(count for _, count in shapes),
        sum(shape.rows * count for shape, count in shapes),
        max((shape.experts for shape, _ in shapes), default=0),
    )
    return pl.DataFrame([total] if shapes else [], PRODUCTS, orient="row")


def _shape(text: str) -> _Shape | None:
    """Return how many rows and how many experts a product has; None if its rows are not divided among experts."""
    dims = json.loads(text)
    left, right = (dims[0], dims[1]) if isinstance(dims, list) and len(dims) > 1 else ([], [])
    if not (_is_shape(left, (2, 3)) and _is_shape(right, (3,))):
        return None
    rows = left[0] if len(left) == 2 else left[0] * left[1]  # noqa: PLR2004 -- [M, K]
    return _Shape(rows, right[0]) if rows < _MOST_ROWS else None


def _is_shape(value: object, dimensions: tuple[int, ...]) -> bool:
    return (
        isinstance(value, list) and len(value) in dimensions and all(type(size) is int and size >= 0 for size in value)
    )
