"""Parallelism: the answer in one sentence."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.analyses.parallelism.compute import Parallelism
from holotrace.enrich.across_ranks.exposed import PARTS
from holotrace.questions.answers import total
from holotrace.units import duration_text, percent_text

ALL_HIDDEN = "No communication is exposed: computation hides all of it."


def answer(result: Parallelism) -> str:
    """Name the axis with the most exposed communication, and say how much of this time is waiting."""
    exposed_ns = total(result.per_axis, "exposed_ns")
    if not exposed_ns:
        return ALL_HIDDEN
    sums = result.per_axis.group_by("axis").agg(pl.col("exposed_ns", *PARTS).sum())
    worst = sums.sort("exposed_ns", "axis", descending=[True, False]).row(0, named=True)
    axis = "groups whose axis is unknown" if worst["axis"] == "unknown" else f"axis {worst['axis']}"
    share = percent_text(worst["exposed_ns"] / exposed_ns)
    over = f"{share} of the exposed communication ({duration_text(exposed_ns)} over all ranks) is on {axis}"
    return f"{over}; {_waiting(worst)}."


def _waiting(axis: dict[str, Any]) -> str:
    """State what share of an axis's exposed time is waiting, and what share may be either waiting or transfer."""
    exposed_ns, unmatched_ns = axis["exposed_ns"], axis["unmatched_ns"]
    if unmatched_ns == exposed_ns:
        return "the waiting time is unknown, because no call was recorded on more than one rank"
    unknown = f", and {percent_text(unmatched_ns / exposed_ns)} unknown" if unmatched_ns else ""
    return f"{percent_text(axis['wait_ns'] / exposed_ns)} of this time is waiting{unknown}"
