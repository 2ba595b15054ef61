"""Temporal breakdown: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.temporal_breakdown.compute import TemporalBreakdown
from holotrace.questions.answers import total
from holotrace.units import percent_text


def answer(result: TemporalBreakdown) -> str:
    """Say for how much of the time the devices compute, do other work, or idle."""
    per_device = result.per_device
    window_ns = total(per_device, "window_ns")
    shares = [
        percent_text(total(per_device, name) / window_ns)
        for name in ("computation_ns", "non_computation_ns", "idle_ns")
    ]
    unknown_ns = total(per_device, "unknown_ns")
    unknown = f"; {percent_text(unknown_ns / window_ns)} is unknown" if unknown_ns else ""
    if len(per_device) > 1:
        return f"The devices compute {shares[0]} of the time, do only other work for {shares[1]}, and idle for {shares[2]}{unknown}."
    return f"The device computes {shares[0]} of the time, does only other work for {shares[1]}, and idles for {shares[2]}{unknown}."
