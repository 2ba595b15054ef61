"""Detects thinned recordings, which lack most launches and their work, so the device seems idle."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.device.launches import launched_work
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_FEWEST_LAUNCHES = 100
_MOST_CALLS = 100
"""A recording is regarded as thinned only if the mean number of runtime calls between two recorded launches exceeds
this value. Complete recordings have a mean of 4 to 20 calls between two launches. The calls can be counted because the
runtime numbers all its calls, including those that the profiler omits."""

_MOST_BETWEEN_HALF = 30
"""A recording is assumed to lack launches only if the median number of calls between two recorded launches exceeds this
value. In complete recordings, the median is lower. Polling the device raises the mean, but hardly the median, because a
process polls only between a few of its launches."""


@derived
def calls_between_launches(rank_trace: RankTrace) -> float | None:
    """If the recording is thinned, return the mean number of runtime calls between two recorded launches; else None.

    A recording of at most 100 launches is never regarded as thinned.
    """
    launched = launched_work(rank_trace.unselected)["launch_index"].drop_nulls().unique()
    events = rank_trace.unselected.table("events", ["event_index", "correlation"])
    numbers = events.filter(pl.col("event_index").is_in(launched.implode()), pl.col("correlation") > 0)["correlation"]
    steps = numbers.unique().sort().diff().drop_nulls()
    mean, median = steps.mean(), steps.median()
    if len(steps) < _FEWEST_LAUNCHES or not isinstance(mean, float) or not isinstance(median, float):
        return None
    return mean if mean > _MOST_CALLS and median > _MOST_BETWEEN_HALF else None
