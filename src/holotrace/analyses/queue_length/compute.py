"""How much launched work waits in the queue of each stream?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.summary import summary
from holotrace.algorithms.time_weighted import time_weighted
from holotrace.enrich.device.device_work import device_work, no_device_work
from holotrace.enrich.device.launches import launched_work
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.derived import derived_under_rules
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

_STREAM = ("device", "stream")
_SERIES = {
    "rank": pl.Int32,
    "device": pl.Int32,
    "stream": pl.Int64,
    "time_ns": pl.Int64,
    "event_index": pl.UInt32,
    "work_index": pl.UInt32,
    "queue_length": pl.Int64,
}
_LENGTHS = ("mean", "std", "p25", "median", "p75", "max")
_CHANGES = ("mean", "std", "min", "p25", "median", "p75", "max")


@dataclass(frozen=True, eq=False, repr=False)
class QueueLength(Result):
    """The queue of each stream: work that has been launched but has not begun.

    series     one row per change of a queue, sorted by rank, device, stream, time:

        rank          int32
        device        int32
        stream        int64
        time_ns       int64
        event_index   uint32   the launch call if the work enters the queue, or the work itself if it leaves the queue
        work_index    uint32   event_index of the work
        queue_length  int64    length after this change; 0 or more

    time_weighted    one row per stream with work, sorted by rank, device, stream; lengths are weighted by duration:

        rank, device, stream                       as above
        work_count                                 int64    kernels, copies and memsets of the stream
        unknown_launch_count                       int64    work whose launch was not recorded; not counted in any queue
        early_start_count                          int64    work that, according to the clocks, begins before its launch
        window_ns                                  int64    from the first change to the last change
        waiting_fraction                           float64  0..1, share of window_ns during which at least one launch waits
        mean_length, std_length                    float64
        p25_length, median_length, p75_length      float64
        max_length                                 int64
        full_ns                                    int64    time in which at least `full_length` launches wait
        full_fraction                              float64  0..1, full_ns / window_ns

    change_weighted  statistics in which the length after each change counts once, as in HTA:

        rank, device, stream                       as above
        change_count, min_length, max_length       int64
        mean_length, std_length                    float64  std_length: sample standard deviation, 0 for one change
        p25_length, median_length, p75_length      float64  interpolated linearly between two lengths

    findings   one sentence per rank without device work

    In `time_weighted`, lengths are null if no launch is known or the window is 0 ns long.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.queue_length(small_job()).answer
    'The longest queue (rank 1, stream 20) has 0.7 launches on average and 1 at most.'
    """

    series: pl.DataFrame
    time_weighted: pl.DataFrame
    change_weighted: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    series: pl.DataFrame
    time_weighted: pl.DataFrame
    change_weighted: pl.DataFrame


def queue_length(trace: Trace, *, full_length: int = 1_024, executor: Executor = IN_PROCESS) -> QueueLength:
    """Count the work in each stream's queue: work that the host has launched but the device has not begun.

    Work enters the queue of its stream when its launch call begins, and leaves the queue when the work begins. All
    runtime and driver calls that launch work are counted, and each kernel of a graph launch is counted separately.
    Because the clocks of host and device disagree, work may seem to begin before its launch. Such work enters and
    leaves the queue at its launch, so lengths are never negative. If one kernel begins at the moment when another is
    launched, the first kernel leaves the queue before the second enters it.

    Args:
        trace: the job.
        full_length: a queue of at least this length counts as full. The default is CUDA's limit: while 1,024 launches
            wait, the next launch blocks the host.
        executor: processes each rank.

    Raises:
        InvalidOptionError: `full_length` is less than 1.
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/queue_length.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.queue_length(small_job()).time_weighted.select("rank", "stream", "work_count", "max_length").rows()
    [(0, 7, 6, 1), (0, 20, 2, 1), (1, 7, 6, 1), (1, 20, 2, 1)]
    """
    return plan(full_length=full_length).run(trace, executor)


def plan(*, full_length: int = 1_024) -> Plan[_Partial, QueueLength]:
    """Return the two functions of `queue_length`: one runs on each rank, the other combines the results of the ranks."""
    if full_length < 1:
        message = f"full_length={full_length} is below 1"
        raise InvalidOptionError(message)
    one_rank = partial(_one_rank, full_length=full_length)
    return Plan(one_rank, _combine)


@derived_under_rules
def queue_series(rank_trace: RankTrace) -> pl.DataFrame:
    """Return `QueueLength.series` of one rank; empty if no work has a known launch."""
    return _series(rank_trace.rank, _launched(rank_trace).drop_nulls("launch_index"))


def _one_rank(rank_trace: RankTrace, *, full_length: int) -> _Partial:
    if device_work(rank_trace).is_empty():
        raise no_device_work(rank_trace, "queue_length")
    series = queue_series(rank_trace)
    time_weighted = _time_weighted(rank_trace.rank, _launched(rank_trace), series, full_length)
    return _Partial(series, time_weighted, _change_weighted(series))


def _launched(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the device work with its launch, which is null if unknown."""
    return launched_work(rank_trace).select("event_index", "start_ns", *_STREAM, "launch_index", "launch_start_ns")


def _series(rank: int, launched: pl.DataFrame) -> pl.DataFrame:
    """Return the length of each queue after each change.

    The rows are sorted by queue. Each queue ends empty, so one running sum over all rows is back at 0 when the next
    queue begins.
    """
    starts, calls = launched["start_ns"].to_numpy(), launched["launch_start_ns"].to_numpy()
    count, indexes = len(launched), launched["event_index"].to_numpy()
    times = np.concatenate([calls, np.maximum(starts, calls)])
    # Order of simultaneous changes: work that has waited leaves, new work enters, work that does not wait leaves.
    keys = 3 * (times - times.min(initial=0))
    keys[:count] += 1
    keys[count:] += np.where(starts > calls, 0, 2)
    streams = launched.select(pl.struct(_STREAM).rank("dense")).to_series().to_numpy()
    order = np.lexsort((keys, np.tile(streams, 2)))
    rows = np.where(order < count, order, order - count)
    return pl.DataFrame(
        {
            "rank": pl.repeat(rank, 2 * count, dtype=pl.Int32, eager=True),
            **{name: launched[name].to_numpy()[rows] for name in _STREAM},
            "time_ns": times[order],
            "event_index": np.concatenate([launched["launch_index"].to_numpy(), indexes])[order],
            "work_index": indexes[rows],
            "queue_length": np.cumsum(np.where(order < count, 1, -1)),
        },
        schema=_SERIES,
    )


def _time_weighted(rank: int, launched: pl.DataFrame, series: pl.DataFrame, full_length: int) -> pl.DataFrame:
    lasting = _lasting(series)
    counts = launched.group_by(_STREAM).agg(
        pl.len().cast(pl.Int64).alias("work_count"),
        pl.col("launch_index").null_count().cast(pl.Int64).alias("unknown_launch_count"),
        (pl.col("start_ns") < pl.col("launch_start_ns")).sum().cast(pl.Int64).alias("early_start_count"),
    )
    lengths = time_weighted(lasting, by=_STREAM, value="queue_length", weight="lasts_ns")
    return (
        counts.join(lengths, on=_STREAM, how="left")
        .join(_waiting(lasting, full_length), on=_STREAM, how="left")
        .sort(_STREAM)
        .select(
            pl.lit(rank, pl.Int32).alias("rank"),
            *_STREAM,
            "work_count",
            "unknown_launch_count",
            "early_start_count",
            pl.col("total").fill_null(0).alias("window_ns"),
            (pl.col("waiting_ns") / pl.col("total")).alias("waiting_fraction"),
            *(pl.col(name).alias(f"{name}_length") for name in _LENGTHS),
            pl.col("full_ns").fill_null(0),
            (pl.col("full_ns") / pl.col("total")).alias("full_fraction"),
        )
    )


def _lasting(series: pl.DataFrame) -> pl.DataFrame:
    """Add `lasts_ns`: the time until the next change of the stream's queue; 0 after the last change, when the queue is empty."""
    is_last = pl.any_horizontal(pl.col(key).ne_missing(pl.col(key).shift(-1)) for key in _STREAM)
    lasts = pl.when(is_last).then(0).otherwise(pl.col("time_ns").shift(-1) - pl.col("time_ns"))
    return series.select(*_STREAM, "queue_length", lasts.alias("lasts_ns"))


def _waiting(lasting: pl.DataFrame, full_length: int) -> pl.DataFrame:
    lasts, length = pl.col("lasts_ns"), pl.col("queue_length")
    return lasting.group_by(_STREAM).agg(
        lasts.filter(length > 0).sum().alias("waiting_ns"), lasts.filter(length >= full_length).sum().alias("full_ns")
    )


def _change_weighted(series: pl.DataFrame) -> pl.DataFrame:
    statistics = summary(series, by=["rank", *_STREAM], value="queue_length")
    lengths = (pl.col(name).alias(f"{name}_length") for name in _CHANGES)
    return statistics.select("rank", *_STREAM, pl.col("count").alias("change_count"), *lengths)


def _combine(partials: dict[int, _Partial]) -> QueueLength:
    series, time_weighted, change_weighted = (pl.concat(tables) for tables in zip(*partials.values(), strict=True))
    return QueueLength(series, time_weighted, change_weighted)
