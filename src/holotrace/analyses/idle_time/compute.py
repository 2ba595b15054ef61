"""Why were the devices idle between kernels and copies?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import covered_before, gap_begins
from holotrace.algorithms.summary import summary
from holotrace.enrich.device.device_work import device_work, no_device_work
from holotrace.enrich.device.graph_replays import incomplete_replays, unknown_findings, unknown_work
from holotrace.enrich.device.launches import launches
from holotrace.enrich.job.findings import joined_findings
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

CATEGORIES = ("host_wait", "kernel_wait", "other")
UNKNOWN = "unknown"

_CATEGORY = pl.Enum((*CATEGORIES, UNKNOWN))
_KERNEL_WAIT = pl.lit("kernel_wait", _CATEGORY)
_OTHER = pl.lit("other", _CATEGORY)
_LENGTHS = ("mean", "std", "min", "p25", "median", "p75", "max")

_DEVICE = ("device",)
_STREAM = ("device", "stream")


@dataclass(frozen=True, eq=False, repr=False)
class IdleTime(Result):
    """The causes of the idle time between kernels, copies and memsets.

    A gap is divided at the start of the call that launched the work after the gap. Each part has a category:

        host_wait    the time before this start: the device had nothing to run
        kernel_wait  the time after this start, if shorter than the threshold: launch delay
        other        the time after this start, if longer: the work waited for an event, a stream, or something else

    During graph replays whose kernels were not recorded, it is unknown whether the device was idle. This time has the category
    `unknown`. Ranks without such replays have no rows of this category.

    per_stream  one row per stream and category, sorted by rank, device, stream, and category in the order above:

        rank       int32
        device     int32
        stream     int64
        category   str
        idle_ns    int64
        gap_count  int64    gaps with some time in this category
        fraction   float64  0..1 of the stream's idle time; null if the stream is never idle

    per_device  the same columns, without `stream`, for gaps in which no stream of the device runs work

    statistics  statistics of the lengths of the parts, per stream and category:

        rank, device, stream, category     as above
        gap_count        int64    as in per_stream
        mean_ns, std_ns  float64  std_ns is the sample standard deviation, 0 for a single gap; null without gaps
        min_ns, max_ns   int64    null without gaps
        p25_ns, median_ns, p75_ns  float64  null without gaps

    findings    ranks without device work, and graph replays whose kernels were not recorded

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.idle_time(small_job()).answer
    'The devices are idle for 740 µs between kernels and copies, 71.6 % of it waiting for the host.'
    """

    per_stream: pl.DataFrame
    per_device: pl.DataFrame
    statistics: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_stream: pl.DataFrame
    per_device: pl.DataFrame
    findings: tuple[str, ...]


def idle_time(trace: Trace, *, gap_threshold_ns: int = 30_000, executor: Executor = IN_PROCESS) -> IdleTime:
    """Divide the idle time of each stream, and of each device, by cause.

    A gap lasts from the end of all earlier work to the start of the next work. There is no gap between overlapping
    work, and none before the first work of a stream. If the launch of the next work is unknown, host_wait is 0.

    Args:
        trace: the job.
        gap_threshold_ns: waits of at least this length from launch to start are `other` instead of `kernel_wait`.
        executor: processes each rank.

    Raises:
        InvalidOptionError: the threshold is negative.
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/idle_time.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.idle_time(small_job()).per_device.select("rank", "category", "idle_ns", "gap_count").head(3).rows()
    [(0, 'host_wait', 265000, 3), (0, 'kernel_wait', 105000, 7), (0, 'other', 0, 0)]
    """
    return plan(gap_threshold_ns=gap_threshold_ns).run(trace, executor)


def plan(*, gap_threshold_ns: int = 30_000) -> Plan[_Partial, IdleTime]:
    """Return the two functions of `idle_time`: one runs on each rank, the other combines the results of the ranks."""
    if gap_threshold_ns < 0:
        message = f"gap_threshold_ns={gap_threshold_ns} is negative"
        raise InvalidOptionError(message)
    one_rank = partial(_one_rank, gap_threshold_ns=gap_threshold_ns)
    return Plan(one_rank, _combine)


def _one_rank(rank_trace: RankTrace, *, gap_threshold_ns: int) -> _Partial:
    work = device_work(rank_trace)
    if work.is_empty():
        raise no_device_work(rank_trace, "idle_time")
    calls = launches(rank_trace).select("event_index", "launch_start_ns")
    launched = work.join(calls, on="event_index", how="left", maintain_order="left")
    per_stream, per_device = (_by_category(rank_trace, launched, keys, gap_threshold_ns) for keys in (_STREAM, _DEVICE))
    return _Partial(per_stream, per_device, unknown_findings(rank_trace))


def _by_category(rank_trace: RankTrace, work: pl.DataFrame, keys: Sequence[str], gap_threshold_ns: int) -> pl.DataFrame:
    """Return the statistics of every category of every stream (or device), including categories without gaps."""
    ordered = work.sort(keys, maintain_order=True)
    parts = _parts(rank_trace, _gaps(ordered, keys), keys, gap_threshold_ns)
    lengths = summary(parts, by=[*keys, "category"], value="length_ns")
    named = (*CATEGORIES, UNKNOWN) if (parts["category"] == UNKNOWN).any() else CATEGORIES
    categories = pl.DataFrame({"category": named}, schema={"category": _CATEGORY})
    every = ordered.select(keys).unique().join(categories, how="cross")
    return (
        every.join(lengths, on=[*keys, "category"], how="left")
        .sort(*keys, "category")
        .select(
            pl.lit(rank_trace.rank, pl.Int32).alias("rank"),
            *keys,
            pl.col("category").cast(pl.String),
            pl.col("count").fill_null(0).alias("gap_count"),
            pl.col("sum").fill_null(0),
            *(pl.col(name).alias(f"{name}_ns") for name in _LENGTHS),
        )
    )


def _gaps(work: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Divide the gap before each kernel, copy or memset in two, at the start of the call that launched this work.

    `work` must be sorted by the key columns and by start time.

    Returns:
        A row for each kernel, copy or memset: the key columns, its `start_ns`, and the two parts of the gap in ns:
        `host_wait` before the launch and `from_launch` after the launch. If there is no gap, both are 0.
    """
    starts, launch_starts = work["start_ns"].to_numpy(), work["launch_start_ns"]
    first_rows = np.flatnonzero(work.select(pl.struct(keys).rle_id().diff().ne_missing(0)).to_series())
    begins = gap_begins(starts, work["end_ns"].to_numpy(), first_rows)
    divides = np.clip(np.where(launch_starts.is_null(), begins, launch_starts.fill_null(0)), begins, starts)
    return work.select(*keys, "start_ns").with_columns(
        pl.Series("host_wait", divides - begins), pl.Series("from_launch", starts - divides)
    )


def _parts(rank_trace: RankTrace, gaps: pl.DataFrame, keys: Sequence[str], gap_threshold_ns: int) -> pl.DataFrame:
    """Return a row for each part of each gap, without empty parts: the key columns, `category` and `length_ns`."""
    after = pl.when(pl.col("from_launch") < gap_threshold_ns).then(_KERNEL_WAIT).otherwise(_OTHER)
    named = gaps.with_columns(after.alias("after"))
    known = _without_unknown(rank_trace, named, keys) if len(incomplete_replays(rank_trace.unselected)) else named
    return pl.concat(
        [
            _lengths(known, keys, "host_wait", pl.lit("host_wait", _CATEGORY)),
            _lengths(known, keys, "from_launch", pl.col("after")),
            *([_lengths(known, keys, UNKNOWN, pl.lit(UNKNOWN, _CATEGORY))] if UNKNOWN in known.columns else []),
        ]
    )


def _without_unknown(rank_trace: RankTrace, gaps: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Reclassify parts of gaps as `unknown` if a replay without recorded kernels may have run during these parts."""
    divide = pl.col("start_ns") - pl.col("from_launch")
    begin = divide - pl.col("host_wait")
    moments = gaps.select(begin.alias("begin_ns"), divide.alias("divide_ns"), "start_ns").to_numpy().T
    taken = np.zeros((2, len(gaps)), np.int64)
    for place in gaps.select(keys).unique().iter_rows():
        here = gaps.select(pl.all_horizontal(pl.col(key) == value for key, value in zip(keys, place, strict=True)))
        rows = np.flatnonzero(here.to_series())
        replays = unknown_work(rank_trace, *place)
        taken[:, rows] = np.diff([covered_before(replays, times[rows]) for times in moments], axis=0)
    return gaps.with_columns(
        pl.col("host_wait") - taken[0], pl.col("from_launch") - taken[1], pl.Series(UNKNOWN, taken.sum(axis=0))
    )


def _lengths(gaps: pl.DataFrame, keys: Sequence[str], length: str, category: pl.Expr) -> pl.DataFrame:
    return gaps.filter(pl.col(length) > 0).select(*keys, category.alias("category"), pl.col(length).alias("length_ns"))


def _combine(partials: dict[int, _Partial]) -> IdleTime:
    per_stream = pl.concat([of_rank.per_stream for of_rank in partials.values()])
    per_device = pl.concat([of_rank.per_device for of_rank in partials.values()])
    return IdleTime(
        _totals(per_stream, ["rank", *_STREAM]),
        _totals(per_device, ["rank", *_DEVICE]),
        per_stream.drop("sum"),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )


def _totals(table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    total = pl.col("sum").sum().over(keys)
    return table.select(
        *keys,
        "category",
        pl.col("sum").alias("idle_ns"),
        "gap_count",
        pl.when(total > 0).then(pl.col("sum") / total).alias("fraction"),
    )
