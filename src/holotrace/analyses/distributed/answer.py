"""Distributed: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.distributed.compute import Distributed
from holotrace.questions.answers import total
from holotrace.units import duration_text, percent_text


def answer(result: Distributed) -> str:
    """Say how much of the time in collectives is waiting."""
    names = ("collective_ns", "synchronising_ns", "unmatched_ns")
    collective_ns, waiting_ns, unmatched_ns = (total(result.per_step, name) for name in names)
    if not collective_ns:
        return "No step has collectives."
    if unmatched_ns == collective_ns:
        return (
            f"{duration_text(collective_ns)} over all ranks goes into collectives; the waiting time is unknown, because no call was "
            "recorded on more than one rank."
        )
    return (
        f"{percent_text(waiting_ns / collective_ns)} of the time in collectives ({duration_text(collective_ns)} over all "
        "ranks) is waiting for other ranks."
    )
