"""Temporal breakdown: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.temporal_breakdown.compute import TemporalBreakdown
from holotrace.questions.tables import View, one_device_hidden


def temporal_per_device(result: TemporalBreakdown) -> pl.DataFrame:
    """Return the parts of each device's time: first as shares, then as times."""
    unknown = ["unknown_fraction"] if result.per_device["unknown_ns"].sum() else []
    shares = ("computation_fraction", "non_computation_fraction", "idle_fraction", *unknown)
    return one_device_hidden(result.per_device).select(
        pl.col("^(rank|device)$"), *shares, "computation_ns", "idle_ns", "window_ns"
    )


VIEWS = (View("Each device, from its first to its last kernel or copy", temporal_per_device, "idle_fraction"),)
