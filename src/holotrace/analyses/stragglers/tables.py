"""Stragglers: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.stragglers.compute import Stragglers
from holotrace.questions.tables import View


def skew_per_rank(result: Stragglers) -> pl.DataFrame:
    """Return how late each rank arrives at its collectives, and how long other ranks wait for it."""
    columns = (
        "role",
        "cost_ns",
        "mean_skew_ns",
        "last_count",
        "collective_count",
        "wait_ns",
        "caused_wait_ns",
        "caused_fraction",
    )
    last = pl.when("is_straggler").then(pl.lit("last")).otherwise(pl.lit(""))
    is_late = pl.when("is_cause").then(pl.lit("late")).otherwise(last).alias("is_straggler")
    return result.per_rank.select("rank", is_late, *columns)


def skew_per_step(result: Stragglers) -> pl.DataFrame:
    """Return how late each rank arrives at the collectives of each step."""
    return result.per_step.select("step", "rank", "mean_skew_ns", "last_count", "collective_count", "wait_ns")


VIEWS = (
    View("Each rank, over its collectives", skew_per_rank, "caused_wait_ns"),
    View("Each step of each rank", skew_per_step, "mean_skew_ns", is_detail=True),
)
