"""Parallelism in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.parallelism.compute import Parallelism
from holotrace.answers import total
from holotrace.units import duration_text, percent_text


def answer(result: Parallelism) -> str:
    """Name the axis with the most exposed communication, and how much of that is waiting."""
    exposed_ns = total(result.per_axis, "exposed_ns")
    if not exposed_ns:
        return "No rank communicates without computing at the same time."
    sums = result.per_axis.group_by("axis").agg(pl.col("exposed_ns", "wait_ns").sum())
    worst = sums.sort("exposed_ns", "axis", descending=[True, False]).row(0, named=True)
    axis = "groups of unknown axis" if worst["axis"] == "unknown" else f"axis {worst['axis']}"
    return (
        f"{percent_text(worst['exposed_ns'] / exposed_ns)} of the exposed communication ({duration_text(exposed_ns)} over all "
        f"ranks) is on {axis}; {percent_text(worst['wait_ns'] / worst['exposed_ns'])} of that is waiting."
    )
