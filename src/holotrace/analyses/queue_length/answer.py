"""Queue length: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.queue_length.compute import QueueLength


def answer(result: QueueLength) -> str:
    """Name the stream with the longest queue."""
    longest = result.time_weighted.sort("mean_length", descending=True, nulls_last=True).row(0, named=True)
    return (
        f"The longest queue (rank {longest['rank']}, stream {longest['stream']}) has {longest['mean_length']:,.1f} launches on average and "
        f"{longest['max_length']:,} at most."
    )
