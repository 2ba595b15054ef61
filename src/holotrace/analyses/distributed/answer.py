"""Distributed: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.distributed.compute import Distributed
from holotrace.questions.answers import total
from holotrace.units import duration_text, percent_text


def answer(result: Distributed) -> str:
    """Say how much of the time in collectives is waiting."""
    collective_ns, waiting_ns = (total(result.per_step, name) for name in ("collective_ns", "synchronising_ns"))
    if not collective_ns:
        return "No step has collectives."
    return (
        f"{percent_text(waiting_ns / collective_ns)} of the time in collectives ({duration_text(collective_ns)} over all "
        "ranks) is waiting for other ranks."
    )
