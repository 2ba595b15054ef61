"""Memory bandwidth: the answer in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.memory_bandwidth.compute import MemoryBandwidth
from holotrace.questions.answers import largest, total
from holotrace.units import bandwidth_text, duration_text, size_text


def answer(result: MemoryBandwidth) -> str:
    """Name the kind of copy that moves the most bytes."""
    kind = largest(result.time_weighted, "name", "bytes")
    if not kind.total:
        copying_ns = total(result.time_weighted, "busy_ns")
        return f"Copies take {duration_text(copying_ns)}; their bandwidth is unknown, because their sizes were not recorded."
    rates = result.time_weighted.filter(name=kind.name)
    rate = total(rates.select(pl.col("mean_bytes_per_s") * pl.col("busy_ns")), "mean_bytes_per_s") / total(
        rates, "busy_ns"
    )
    return f"{bandwidth_text(rate)} is the mean bandwidth of {kind.name}, which moves the most data, {size_text(kind.total)}."
