"""Trust: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.trust.compute import Trust
from holotrace.questions.tables import View


def trusted_shares(result: Trust) -> pl.DataFrame:
    """Return what share of each rank's recording can be trusted."""
    return result.per_rank.select(
        "rank",
        "trusted_fraction",
        "recorded_ns",
        "doubtful_ns",
        "trusted_busy_fraction",
        "device_busy_ns",
        "doubt_count",
    )


def doubts(result: Trust) -> pl.DataFrame:
    """Return the doubts in descending order of the time that they make doubtful."""
    ordered = result.doubts.sort("doubtful_ns", descending=True, nulls_last=True, maintain_order=True)
    return ordered.select("rank", "rule", "doubtful_ns", "case_count", "event_index", "sentence")


VIEWS = (
    View("Each rank: the share of its recording that can be trusted", trusted_shares, "doubtful_ns"),
    View("Doubts", doubts, "doubtful_ns"),
)
