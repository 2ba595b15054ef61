"""Roofline: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.roofline.compute import Roofline
from holotrace.questions.tables import View, known_columns

_COSTS = ("work", "precision", "flops", "bytes_moved", "flops_per_s", "moved_bytes_per_s", "bound")


def operators_above_their_bounds(result: Roofline) -> pl.DataFrame:
    """Return the operators of each rank, beginning with the operators that lose the most time."""
    columns = ("rank", "operator", "phase", "input_shape", "call_count", "busy_ns", *_COSTS)
    table = result.per_operator.select(
        *columns, "floor_ns", "roofline_fraction", "gap_ns", _yes_or_no("uses_tensor_cores"), "contradiction"
    )
    return table.select(column for column in table.columns if column in {"gap_ns", *known_columns(table).columns})


def ranks_above_their_bounds(result: Roofline) -> pl.DataFrame:
    """Return the busy time of each rank, the share of it with known costs, and the sum of the lower bounds."""
    return known_columns(result.per_rank)


def use_in_steps(result: Roofline) -> pl.DataFrame:
    """Return the steps with their FLOPs and the share of the peak rate that they use."""
    table = known_columns(result.per_step)
    return table.select(column for column in result.per_step.columns if column in {"step_ns", *table.columns})


def modules_above_their_bounds(result: Roofline) -> pl.DataFrame:
    """Return the modules of each rank, beginning with the modules that lose the most time."""
    return result.per_module


def unknown_costs(result: Roofline) -> pl.DataFrame:
    """Return each rank's operators with unknown costs, the longest first, and the reason why the costs are unknown."""
    unknown = result.per_operator.filter(pl.col("reason") != "")
    columns = ("rank", "operator", "input_shape", "call_count", "busy_ns", "reason")
    return unknown.select(columns).sort("rank", "busy_ns", "operator", descending=[False, True, False], nulls_last=True)


def peak_rates(result: Roofline) -> pl.DataFrame:
    """Return the peak rates of each rank and their sources."""
    return result.peaks.with_columns(_yes_or_no("is_matrix"))


def _yes_or_no(column: str) -> pl.Expr:
    uses = pl.col(column)
    return pl.when(uses).then(pl.lit("yes")).when(~uses).then(pl.lit("no")).otherwise(pl.lit("unknown")).alias(column)


VIEWS = (
    View("Operators and their lower bounds", operators_above_their_bounds, "gap_ns"),
    View("Ranks and their lower bounds", ranks_above_their_bounds, "gap_ns"),
    View("FLOPs utilization of each step", use_in_steps, "step_ns"),
    View("Modules and their lower bounds", modules_above_their_bounds, "gap_ns", is_detail=True),
    View("Operators of unknown cost", unknown_costs, "busy_ns", is_detail=True),
    View("Peak rates", peak_rates, "peak_flops_per_s", is_detail=True),
)
