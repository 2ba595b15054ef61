"""Memory bandwidth: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.memory_bandwidth.compute import MemoryBandwidth
from holotrace.questions.tables import View, one_device_hidden


def bandwidth_per_kind(result: MemoryBandwidth) -> pl.DataFrame:
    """Return how much data each device moved in each direction, and how fast."""
    bandwidths = ("mean_bytes_per_s", "median_bytes_per_s", "max_bytes_per_s")
    columns = ("rank", "device", pl.col("name").alias("copy"), "bytes", "copy_count", "busy_ns", *bandwidths)
    return one_device_hidden(result.time_weighted.select(*columns))


VIEWS = (View("Each device and kind of copy", bandwidth_per_kind, "busy_ns"),)
