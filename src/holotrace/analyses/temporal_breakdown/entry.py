"""Temporal breakdown: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.temporal_breakdown.compute import TemporalBreakdown, temporal_breakdown
from holotrace.question import Analysis
from holotrace.tables import View, one_device_hidden


def temporal_per_device(result: TemporalBreakdown) -> pl.DataFrame:
    """Return where the time of each device goes, the shares first."""
    shares = ("computation_fraction", "non_computation_fraction", "idle_fraction")
    return one_device_hidden(result.per_device).select(
        pl.col("^(rank|device)$"), *shares, "computation_ns", "idle_ns", "window_ns"
    )


ENTRY = Analysis(
    name="temporal_breakdown",
    title="Temporal breakdown",
    question="Where does each GPU's time go?",
    compute=temporal_breakdown,
    section="Devices",
    views=(View("Each device, from its first to its last work", temporal_per_device, "idle_fraction"),),
    definitions=(
        (
            "from first to last work",
            "from the start of the device's first kernel, copy or memset to the end of its last",
        ),
        ("computing", "at least one computation kernel runs, whatever else runs beside it"),
        ("other work only", "something runs, such as communication or copies, but no computation"),
        ("idle", "nothing runs on any stream of the device"),
    ),
)
