"""Memory: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.memory_timeline.compute import MemoryTimeline
from holotrace.questions.tables import View, known_columns


def memory_per_device(result: MemoryTimeline) -> pl.DataFrame:
    """Return the memory of each device at the peak, the beginning and the end; the host comes last."""
    sizes = ("peak_bytes", "first_bytes", "last_bytes", "peak_reserved_bytes", "capacity_bytes")
    return known_columns(_host_last(result.per_device).select("rank", "device_type", "device", *sizes, "event_count"))


def memory_at_peak(result: MemoryTimeline) -> pl.DataFrame:
    """Return the memory in use at the peak of each device, by operator; the host comes last."""
    devices = ("rank", "device_type", "device")
    return _host_last(result.at_peak).select("operator", "top_operator", "bytes", "fraction", "block_count", *devices)


def _host_last(table: pl.DataFrame) -> pl.DataFrame:
    return table.sort(pl.col("device_type") == "cpu", maintain_order=True)


VIEWS = (
    View("Each device", memory_per_device, "peak_bytes"),
    View("Memory in use at the peak, by the operator that allocated it", memory_at_peak, "bytes"),
)
