"""Memory timeline: the answer in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.memory_timeline.compute import MemoryTimeline
from holotrace.enrich.memory.memory_events import BEFORE_RECORDING
from holotrace.units import size_text


def answer(result: MemoryTimeline) -> str:
    """Name the device with the highest peak, preferring GPUs to the host, and what contributed most to this peak."""
    highest = result.per_device.sort(pl.col("device_type") == "cpu", -pl.col("peak_bytes")).row(0, named=True)
    device = {name: highest[name] for name in ("rank", "device_type", "device")}
    holders = result.at_peak.filter(**device).sort("bytes", descending=True)
    peak = f"Memory peaks at {size_text(highest['peak_bytes'])} on rank {highest['rank']} ({highest['device_type']})"
    if holders.is_empty():
        return f"{peak}."
    largest = holders.row(0, named=True)
    size = size_text(largest["bytes"])
    if largest["operator"] == BEFORE_RECORDING:
        return f"{peak}; the largest part, {size}, was allocated before the recording."
    return f"{peak}; {largest['operator']} allocated the most, {size}."
