"""Operators: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.operators.compute import Operators, summed_operators
from holotrace.questions.tables import View, known_columns, with_bounds


def operators_by_name(result: Operators) -> pl.DataFrame:
    """Return the time of each operator, summed over the ranks."""
    return _times_of_operators(result.per_operator, ["operator"])


def operators_by_shape(result: Operators) -> pl.DataFrame:
    """Return the time of each operator by input shapes, summed over the ranks."""
    return _times_of_operators(result.per_input_shape, ["operator", "input_shape"])


def operators_by_stack(result: Operators) -> pl.DataFrame:
    """Return the time of each operator by call stack, summed over shapes and ranks."""
    return _times_of_operators(result.per_call_stack.drop("input_shape"), ["operator", "call_stack"])


def _times_of_operators(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    eligible = pl.when("is_tensor_core_eligible").then(pl.lit("yes")).otherwise(pl.lit("no"))
    summed = summed_operators(table).with_columns(eligible.alias("is_tensor_core_eligible"))
    cores = ("tensor_core_self_fraction", "tensor_core_unknown_self_fraction")
    shown = summed.select(
        *(*keys, "call_count", "device_self_ns", "device_total_ns", "host_self_ns", "host_total_ns"),
        *(*cores, "is_tensor_core_eligible", "^device_self_busy_ns$"),
    )
    return known_columns(with_bounds(shown, *cores))


VIEWS = (
    View("Operators, over all ranks", operators_by_name, "host_self_ns"),
    View("Operators by the shapes of their inputs", operators_by_shape, "host_self_ns", is_detail=True),
    View(
        "Operators by call stack, the innermost frame first",
        operators_by_stack,
        "host_self_ns",
        is_detail=True,
    ),
)
