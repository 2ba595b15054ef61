"""CUPTI counters: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.cupti_counters.compute import CuptiCounters
from holotrace.questions.tables import View


def counters_by_operator(result: CuptiCounters) -> pl.DataFrame:
    """Return the floating-point operations of the kernels that each outermost operator launched, over all ranks."""
    sums = result.per_kernel.group_by("top_operator").agg(_whole_flop().sum(), pl.len().alias("kernel_count"))
    return sums.sort(["flop", "top_operator"], descending=[True, False])


def counted_kernels(result: CuptiCounters) -> pl.DataFrame:
    """Return each measured kernel with its operators."""
    return result.per_kernel.select("rank", "name", _whole_flop(), "top_operator", "operator")


def _whole_flop() -> pl.Expr:
    return pl.col("flop").round().cast(pl.Int64)


VIEWS = (
    View("Kernels by their outermost operator, over all ranks", counters_by_operator, "flop"),
    View("Each measured kernel", counted_kernels, "flop", is_detail=True),
)
