"""Memory bandwidth: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.memory_bandwidth.compute import MemoryBandwidth, memory_bandwidth
from holotrace.question import Analysis
from holotrace.tables import View, one_device_hidden


def bandwidth_per_kind(result: MemoryBandwidth) -> pl.DataFrame:
    """Return how much each device moved in each direction, and how fast."""
    bandwidths = ("mean_bytes_per_s", "median_bytes_per_s", "max_bytes_per_s")
    columns = ("rank", "device", pl.col("name").alias("copy"), "bytes", "copy_count", "busy_ns", *bandwidths)
    return one_device_hidden(result.time_weighted.select(*columns))


ENTRY = Analysis(
    name="memory_bandwidth",
    title="Memory bandwidth",
    question="How fast does data move to, from and within the GPUs?",
    compute=memory_bandwidth,
    section="Devices",
    views=(View("Each device and kind of copy", bandwidth_per_kind, "busy_ns"),),
    definitions=(
        ("HtoD, DtoH, DtoD, PtoP", "from host to device, back, within a device, and between devices"),
        ("copying for", "time in which at least one copy of the kind runs"),
        ("bandwidth", "summed over the copies that run at once, over the time in which any does"),
    ),
)
