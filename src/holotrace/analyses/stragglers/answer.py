"""Stragglers in one sentence."""

from __future__ import annotations

from holotrace.analyses.stragglers.compute import Stragglers, late_clause
from holotrace.units import duration_text


def answer(result: Stragglers) -> str:
    """Name the rank that the others wait for the longest."""
    late = result.per_rank.filter("is_straggler").sort("is_cause", "caused_wait_ns", descending=True)
    if late.is_empty():
        return "No rank stands out as late."
    worst = late.row(0, named=True)
    clause = late_clause(worst)
    return f"{clause[:1].upper()}{clause[1:]}: the others wait {duration_text(worst['caused_wait_ns'])} for it."
