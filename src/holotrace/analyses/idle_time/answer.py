"""Idle time in one sentence."""

from __future__ import annotations

from holotrace.analyses.idle_time.compute import IdleTime
from holotrace.questions.answers import largest, total
from holotrace.units import duration_text, percent_text

_CAUSES = {
    "host_wait": "waiting for the host",
    "kernel_wait": "in the launches of kernels",
    "other": "for another reason",
}


def answer(result: IdleTime) -> str:
    """Say how long the devices idle, and what they mostly wait for."""
    cause = largest(result.per_device, "category", "idle_ns")
    if not cause.total:
        return "The devices never idle between two pieces of work."
    idle = duration_text(total(result.per_device, "idle_ns"))
    return f"{idle} pass idle between pieces of work, {percent_text(cause.share)} of it {_CAUSES[cause.name]}."
