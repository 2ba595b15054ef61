"""Stragglers: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.stragglers.compute import Stragglers, stragglers
from holotrace.question import Analysis
from holotrace.tables import View


def skew_per_rank(result: Stragglers) -> pl.DataFrame:
    """Return how late each rank arrives at its collectives, and who waits for it."""
    columns = ("mean_skew_ns", "last_count", "collective_count", "wait_ns", "caused_wait_ns", "caused_fraction")
    last = pl.when("is_straggler").then(pl.lit("last")).otherwise(pl.lit(""))
    is_late = pl.when("is_cause").then(pl.lit("late")).otherwise(last).alias("is_straggler")
    return result.per_rank.select("rank", is_late, *columns)


def skew_per_step(result: Stragglers) -> pl.DataFrame:
    """Return how late each rank arrives at the collectives of each step."""
    return result.per_step.select("step", "rank", "mean_skew_ns", "last_count", "collective_count", "wait_ns")


ENTRY = Analysis(
    name="stragglers",
    title="Stragglers",
    question="Which rank do the others wait for?",
    compute=stragglers,
    section="Distributed",
    views=(
        View("Each rank, over its collectives", skew_per_rank, "caused_wait_ns"),
        View("Each step of each rank", skew_per_step, "mean_skew_ns", is_detail=True),
    ),
    definitions=(
        ("waits", "its time in a collective less the shortest time of a rank in it: all leave it together"),
        ("mean skew", "the longest time of a rank in a collective less its own: how much later it arrived"),
        ("came last", "collectives in which it spent the shortest time, alone"),
        ("others wait for it", "what all ranks waited in the collectives in which it came last"),
        ("late", "it waits at most half as long as the median rank, and most of the waiting around it is for it"),
        ("last", "likewise, but its own waiting explains at least half of its skew: another rank may be the cause"),
    ),
)
