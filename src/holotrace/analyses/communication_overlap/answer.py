"""Communication overlap: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.communication_overlap.compute import CommunicationOverlap
from holotrace.questions.answers import total
from holotrace.units import duration_text, percent_text


def answer(result: CommunicationOverlap) -> str:
    """Say how much communication is hidden, and which rank exposes the most."""
    communication_ns = total(result.per_rank, "communication_ns")
    if not communication_ns:
        return "No rank communicates."
    hidden = percent_text(total(result.per_rank, "overlap_ns") / communication_ns)
    worst = result.per_rank.sort("exposed_ns", descending=True).row(0, named=True)
    return (
        f"{hidden} of the communication is hidden behind computation; rank {worst['rank']} exposes the most, "
        f"{duration_text(worst['exposed_ns'])}."
    )
