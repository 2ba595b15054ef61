"""Memory bandwidth in one sentence."""

from __future__ import annotations

from holotrace.analyses.memory_bandwidth.compute import MemoryBandwidth
from holotrace.questions.answers import largest, total
from holotrace.units import bandwidth_text, size_text


def answer(result: MemoryBandwidth) -> str:
    """Name the kind of copy that moves the most bytes."""
    kind = largest(result.time_weighted, "name", "bytes")
    rates = result.time_weighted.filter(name=kind.name)
    rate = kind.total / (total(rates, "busy_ns") / 1e9)
    return (
        f"{bandwidth_text(rate)} is the mean bandwidth of {kind.name}, which moves the most, {size_text(kind.total)}."
    )
