"""Queue length: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.queue_length.compute import QueueLength
from holotrace.questions.tables import View, one_device_hidden


def queues_per_stream(result: QueueLength) -> pl.DataFrame:
    """Return the length of each stream's queue, and the share of time during which any work waits."""
    rounded = result.time_weighted.with_columns(pl.col("mean_length").round(2), pl.col("median_length").cast(pl.Int64))
    columns = ("waiting_fraction", "mean_length", "median_length", "max_length", "full_ns", "work_count")
    return one_device_hidden(rounded.select("rank", "device", "stream", *columns, "unknown_launch_count"))


VIEWS = (View("Launched work that has not begun, by stream", queues_per_stream, "max_length", is_detail=True),)
