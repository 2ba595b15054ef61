"""Communication overlap: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.communication_overlap.compute import CommunicationOverlap
from holotrace.questions.tables import View


def overlap_per_rank(result: CommunicationOverlap) -> pl.DataFrame:
    """Return how much of each rank's communication was hidden."""
    return result.per_rank.select("rank", "overlap_fraction", "communication_ns", "overlap_ns", "exposed_ns")


VIEWS = (View("Each rank, summed over its devices", overlap_per_rank, "exposed_ns"),)
