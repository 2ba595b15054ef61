"""Queue length: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.queue_length.compute import QueueLength, queue_length
from holotrace.question import Analysis
from holotrace.tables import View, one_device_hidden


def queues_per_stream(result: QueueLength) -> pl.DataFrame:
    """Return how much work waited before each stream, and for how much of the time."""
    rounded = result.time_weighted.with_columns(pl.col("mean_length").round(2))
    columns = ("waiting_fraction", "mean_length", "median_length", "max_length", "full_ns", "work_count")
    return one_device_hidden(rounded.select("rank", "device", "stream", *columns, "unknown_launch_count"))


ENTRY = Analysis(
    name="queue_length",
    title="Queue length",
    question="Does the host keep the GPUs supplied?",
    compute=queue_length,
    section="Host",
    views=(View("Each stream: what is launched and has not begun", queues_per_stream, "max_length", is_detail=True),),
    definitions=(
        ("waits", "the host has begun the call that launches it, and it has not begun on the device"),
        ("length", "how many pieces of work wait for one stream; each length counts as long as it lasts"),
        ("work waits", "the share of the time, from the first launch to the last start, in which something waits"),
        ("full", "1,024 launches or more wait, as many as CUDA lets; the next one blocks the host"),
    ),
)
