"""What bounds a step, from its beginning to its end?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, overload

import polars as pl

from holotrace.analyses.critical_path.across_ranks import (
    HOST_GAP_NAME,
    JobCriticalPath,
    critical_path_across_ranks,
)
from holotrace.enrich.critical_path.event_graph import PathClass
from holotrace.enrich.critical_path.path_graph import PathGraph, critical_path_graph
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.enrich.device.synchronisations import has_recorded_waits
from holotrace.enrich.host.host_names import without_addresses
from holotrace.enrich.job.findings import ranks_text
from holotrace.enrich.job_graph.job_window import WindowOptions
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import counted, duration_text


@dataclass(frozen=True, eq=False, repr=False)
class CriticalPath(Result):
    """The chain of activities and delays that spans a whole window, on each rank.

    per_rank   one row per rank, sorted by rank:

        rank                  int32
        window                str    such as `ProfilerStep#5`, `forward, instances 0 to 2` or `whole recording`
        start_ns              int64
        end_ns                int64
        duration_ns           int64  length of the window; it lasts until the host and the device work have ended
        segment_count         int64  segments of the path
        work_count            int64  kernels, copies and memsets in the window
        waits_recorded        bool   whether the profiler recorded which streams wait for which other streams
        inferred_wait_count   int64  waits between streams, inferred from timing alone
        unknown_launch_count  int64  kernels, copies and memsets whose launch was not recorded
        contradicted_count    int64  dependencies in which, by the recorded times, an event happens before the
                                     one on which it depends

    per_class  time of every class on each rank's path, sorted by rank and class; the times of a rank add up to the
               length of its window:

        rank             int32
        path_class       str    name of `PathClass` in lower case: `cpu_operator`, …
        total_ns         int64
        fraction         float64  0..1 of the window

    per_name   time of every event name on each rank's path, the longest first:

        rank, path_class, total_ns, fraction   as above
        name             str    name of the event; `host gap` outside all events
        segment_count    int64

    path       the longest segments, at most `segment_limit` for each rank, in time order:

        rank         int32
        event_index  uint32  null outside all events
        name         str
        path_class   str
        start_ns, end_ns, duration_ns  int64

    findings   reasons why a path is less certain, and what to record

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.critical_path(small_job()).answer
    '55.0 % of the critical path of ProfilerStep#1 on rank 1 (1 ms) is computation.'
    """

    per_rank: pl.DataFrame
    per_class: pl.DataFrame
    per_name: pl.DataFrame
    path: pl.DataFrame
    findings: tuple[str, ...] = ()


@overload
def critical_path(
    trace: Trace,
    *,
    annotation: str | None = None,
    instance: int | tuple[int, int] | None = None,
    time_range_ns: tuple[int, int] | None = None,
    data_loading: Sequence[str] = DATA_LOADING,
    segment_limit: int = 2_000,
    across_ranks: Literal[False] = False,
    executor: Executor = IN_PROCESS,
) -> CriticalPath: ...


@overload
def critical_path(
    trace: Trace,
    *,
    annotation: str | None = None,
    instance: int | tuple[int, int] | None = None,
    time_range_ns: tuple[int, int] | None = None,
    data_loading: Sequence[str] = DATA_LOADING,
    segment_limit: int = 2_000,
    across_ranks: Literal[True],
    executor: Executor = IN_PROCESS,
) -> JobCriticalPath: ...


def critical_path(  # noqa: PLR0913 -- options by name
    trace: Trace,
    *,
    annotation: str | None = None,
    instance: int | tuple[int, int] | None = None,
    time_range_ns: tuple[int, int] | None = None,
    data_loading: Sequence[str] = DATA_LOADING,
    segment_limit: int = 2_000,
    across_ranks: bool = False,
    executor: Executor = IN_PROCESS,
) -> CriticalPath | JobCriticalPath:
    """Find each rank's critical path in a window: the longest chain of activities, each waiting for the one before.

    The window is a step, an annotation, a time range or the whole recording. It begins when this range begins on the
    host. It ends when the range ends on the host or, if that is later, when the last device work launched in the
    window ends. Each nanosecond belongs to exactly one class, so the times of the classes add up to the length of the
    window. By default, each rank is analysed on its own.

    Args:
        trace: the job.
        annotation: None selects the training steps, or the whole recording if it has no steps. An empty string selects the
            whole recording. Any other string selects the host annotations or operators whose names contain it.
        instance: one instance, or the first and the last of several consecutive instances. Steps are numbered as in their names;
            the default is the second to last step. Annotations are numbered from 0 in the order of their starts; the default is 0.
        time_range_ns: start and end of the window, instead of an annotation.
        data_loading: regular expressions; host ranges with a matching name count as data loading.
        segment_limit: the maximum number of segments that `path` lists for each rank, or for the job's path.
        across_ranks: find one path through all ranks instead, and return a `JobCriticalPath`. Where one rank waits for another,
            the path follows the rank that arrives later. The job's window extends from the earliest start to the latest end of
            the windows of all ranks.
        executor: processes each rank.

    Raises:
        InvalidOptionError: the trace does not contain the annotation, instance or time range; a pattern is not a
            regular expression; or `segment_limit` is below 1.
        MissingDataError: no rank has host ranges or device work.

    Source: docs/reference/analyses/critical_path.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.critical_path(small_job()).per_rank.select("rank", "window", "duration_ns").rows()
    [(0, 'ProfilerStep#1', 1000000), (1, 'ProfilerStep#1', 1000000)]
    >>> holotrace.critical_path(small_job(), across_ranks=True).per_rank.select("rank", "total_ns").rows()
    [(0, 320000), (1, 680000)]
    """
    _check(segment_limit)
    if across_ranks:
        options = WindowOptions(annotation, instance, time_range_ns, tuple(data_loading))
        return critical_path_across_ranks(trace, options=options, segment_limit=segment_limit, executor=executor)
    return plan(
        annotation=annotation,
        instance=instance,
        time_range_ns=time_range_ns,
        data_loading=data_loading,
        segment_limit=segment_limit,
    ).run(trace, executor)


def plan(
    *,
    annotation: str | None = None,
    instance: int | tuple[int, int] | None = None,
    time_range_ns: tuple[int, int] | None = None,
    data_loading: Sequence[str] = DATA_LOADING,
    segment_limit: int = 2_000,
) -> Plan[_Partial, CriticalPath]:
    """Return the two functions of `critical_path`: one runs on each rank, the other combines the results of the ranks."""
    _check(segment_limit)
    window = {"annotation": annotation, "instance": instance, "time_range_ns": time_range_ns}
    one_rank = partial(_one_rank, window=window, data_loading=tuple(data_loading), segment_limit=segment_limit)
    return Plan(one_rank, _combine)


def _check(segment_limit: int) -> None:
    if segment_limit < 1:
        message = f"segment_limit={segment_limit} is below 1"
        raise InvalidOptionError(message)


def _combine(partials: dict[int, _Partial]) -> CriticalPath:
    per_rank, per_class, per_name, path = (pl.concat(tables) for tables in zip(*partials.values(), strict=True))
    return CriticalPath(per_rank, per_class, per_name, path, (*_findings(per_rank), *_unknown(per_class)))


class _Partial(NamedTuple):
    per_rank: pl.DataFrame
    per_class: pl.DataFrame
    per_name: pl.DataFrame
    path: pl.DataFrame


def _one_rank(
    rank_trace: RankTrace, *, window: Mapping[str, Any], data_loading: tuple[str, ...], segment_limit: int
) -> _Partial:
    path_graph = critical_path_graph(rank_trace, **window, data_loading=data_loading)
    segments = _named_segments(path_graph)
    return _Partial(
        _per_rank(rank_trace, path_graph),
        _per_class(rank_trace.rank, segments),
        _per_name(rank_trace.rank, segments),
        _longest(rank_trace.rank, segments, segment_limit),
    )


def _named_segments(path_graph: PathGraph) -> pl.DataFrame:
    """Return the segments of nonzero length, with the names of their events and classes."""
    lasting = path_graph.segments.filter(pl.col("end_ns") > pl.col("start_ns"))
    events = path_graph.graph.activities.select("event_index", "name")[lasting["activity"]]
    names = path_graph.names.with_columns(without_addresses(path_graph.names["text"]))
    known = lasting.hstack(events).join(names, on="name", how="left", maintain_order="left")
    inside = pl.col("activity").is_not_null()
    return known.select(
        pl.when(inside).then("event_index").alias("event_index"),
        pl.when(inside).then("text").otherwise(pl.lit(HOST_GAP_NAME)).alias("name"),
        pl.col("path_class").replace_strict(_CLASS_NAMES, return_dtype=pl.String),
        "start_ns",
        "end_ns",
        (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
    )


_CLASS_NAMES = {int(path_class): path_class.name.lower() for path_class in PathClass}


def _per_rank(rank_trace: RankTrace, path_graph: PathGraph) -> pl.DataFrame:
    start_ns, end_ns = path_graph.graph.window_start_ns, path_graph.graph.window_end_ns
    row = {
        "rank": rank_trace.rank,
        "window": path_graph.window,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "duration_ns": end_ns - start_ns,
        "segment_count": path_graph.segments.select(pl.col("end_ns") > pl.col("start_ns")).to_series().sum(),
        "work_count": path_graph.graph.activities["device"].count(),
        "waits_recorded": has_recorded_waits(rank_trace),
        "inferred_wait_count": path_graph.graph.inferred_wait_count,
        "unknown_launch_count": path_graph.graph.unknown_launch_count,
        "contradicted_count": path_graph.graph.contradicted_count,
    }
    return pl.DataFrame([row], schema_overrides={"rank": pl.Int32})


def _per_class(rank: int, segments: pl.DataFrame) -> pl.DataFrame:
    sums = segments.group_by("path_class").agg(pl.col("duration_ns").sum().alias("total_ns"))
    every = pl.DataFrame({"path_class": list(_CLASS_NAMES.values())})
    known = every.join(sums, on="path_class", how="left", maintain_order="left")
    return known.select(_rank(rank), "path_class", pl.col("total_ns").fill_null(0)).with_columns(_fraction())


def _per_name(rank: int, segments: pl.DataFrame) -> pl.DataFrame:
    sums = segments.group_by("path_class", "name").agg(
        pl.col("duration_ns").sum().alias("total_ns"), pl.len().cast(pl.Int64).alias("segment_count")
    )
    ordered = sums.with_columns(_fraction()).sort(["total_ns", "path_class", "name"], descending=[True, False, False])
    return ordered.select(_rank(rank), "path_class", "name", "total_ns", "fraction", "segment_count")


def _longest(rank: int, segments: pl.DataFrame, limit: int) -> pl.DataFrame:
    place = pl.col("duration_ns").rank("ordinal", descending=True)
    return segments.filter(place <= limit).select(_rank(rank), pl.all())


def _rank(rank: int) -> pl.Expr:
    return pl.lit(rank, pl.Int32).alias("rank")


def _fraction() -> pl.Expr:
    total = pl.col("total_ns").sum()
    return pl.when(total > 0).then(pl.col("total_ns") / total).alias("fraction")


_HAS_WORK = pl.col("work_count") > 0

_FINDINGS = (
    (~_HAS_WORK, "the window has no device work, so the path stays on the host"),
    (
        _HAS_WORK & ~pl.col("waits_recorded"),
        "no synchronisation events were recorded, so waits between streams are unknown, and calls in which the host waits are recognised only by their names; record with enable_cuda_sync_events=True",
    ),
    (
        pl.col("inferred_wait_count") > 0,
        "timing alone suggests {inferred_waits} between streams: work on one stream began right after work on another stream ended, although it had been launched long before",
    ),
    (
        pl.col("unknown_launch_count") > 0,
        "the launch of {unknown_launches} of device work was not recorded, so the cause of some delays is unknown",
    ),
    (
        pl.col("contradicted_count") > 0,
        "according to the clocks of the trace, {contradictions} would lead backwards in time; the path counts the overlapping time only once",
    ),
)
"""Reasons why a path is less certain. Each consists of a condition on the rows of `per_rank` and a sentence about
the ranks that meet the condition."""


def _findings(per_rank: pl.DataFrame) -> tuple[str, ...]:
    concerned = ((per_rank.filter(condition), sentence) for condition, sentence in _FINDINGS)
    return tuple(
        f"{ranks_text(rows['rank'].to_list())}: {sentence.format(**_counts(rows))}"
        for rows, sentence in concerned
        if len(rows)
    )


def _unknown(per_class: pl.DataFrame) -> tuple[str, ...]:
    """Say how much time on the paths has an unknown cause, and how to avoid this in the next recording."""
    rows = per_class.filter(pl.col("path_class") == _CLASS_NAMES[PathClass.UNKNOWN], pl.col("total_ns") > 0)
    if rows.is_empty():
        return ()
    unknown = f"the cause of {_together(rows)} of the path is unknown, because a stream was busy before its first recorded work"
    way_out = "call torch.cuda.synchronize() before the recording begins, or begin the recording earlier, for example with warmup steps"
    return (f"{ranks_text(rows['rank'].to_list())}: {unknown}; {way_out}",)


def _together(rows: pl.DataFrame) -> str:
    longest = duration_text(max(rows["total_ns"].to_list()))
    return longest if len(rows) == 1 else f"up to {longest}"


def _counts(rows: pl.DataFrame) -> dict[str, str]:
    counts = rows.select(pl.col("^.*_count$").sum()).row(0, named=True)
    return {
        "inferred_waits": counted(counts["inferred_wait_count"], "wait"),
        "unknown_launches": counted(counts["unknown_launch_count"], "piece"),
        "contradictions": counted(counts["contradicted_count"], "dependency", "dependencies"),
    }
