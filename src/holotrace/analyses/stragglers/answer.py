"""Stragglers: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.stragglers.compute import Stragglers, late_clause, late_first
from holotrace.units import duration_text


def answer(result: Stragglers) -> str:
    """Name the rank for which the other ranks wait longest."""
    if result.per_rank.is_empty() and result.findings:
        return f"{result.findings[0][:1].upper()}{result.findings[0][1:]}."
    late = late_first(result.per_rank)
    if late.is_empty():
        return "No rank stands out as late."
    worst = late.row(0, named=True)
    if worst["is_cause"] and worst["cost_ns"] is not None:
        return f"All ranks together wait {duration_text(worst['cost_ns'])} because {late_clause(worst)}."
    how = "is late" if worst["is_cause"] else "arrives last"
    return f"The other ranks wait {duration_text(worst['caused_wait_ns'])} for rank {worst['rank']}, which {how}."
