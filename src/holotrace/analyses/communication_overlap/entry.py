"""Communication overlap: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.communication_overlap.compute import CommunicationOverlap, communication_overlap
from holotrace.question import Analysis
from holotrace.tables import View


def overlap_per_rank(result: CommunicationOverlap) -> pl.DataFrame:
    """Return how much of each rank's communication was hidden."""
    return result.per_rank.select("rank", "overlap_fraction", "communication_ns", "overlap_ns", "exposed_ns")


ENTRY = Analysis(
    name="communication_overlap",
    title="Communication overlap",
    question="How much communication is hidden behind computation?",
    compute=communication_overlap,
    section="Distributed",
    views=(View("Each rank, over its devices", overlap_per_rank, "exposed_ns"),),
    definitions=(
        (
            "communication",
            "time in which at least one communication kernel runs; waiting for a late rank is part of it",
        ),
        ("hidden", "the part of it in which at least one computation kernel runs on the same device"),
        ("exposed", "the rest: the device communicates and does not compute"),
    ),
)
