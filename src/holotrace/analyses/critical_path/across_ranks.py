"""What determines how long a step of the whole job takes, across all its ranks?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from holotrace.enrich.critical_path.event_graph import PathClass
from holotrace.enrich.critical_path.path_window import PathWindow
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.enrich.job.findings import ranks_text
from holotrace.enrich.job_graph.expansion import expansion
from holotrace.enrich.job_graph.job_path import hops, legs, segments, wanted_of_ranks
from holotrace.enrich.job_graph.job_window import JobWindow, WindowOptions, job_window
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import duration_text

if TYPE_CHECKING:
    from holotrace.questions.tables import View

HOST_GAP_NAME = "host gap"
_CLASS_NAMES = {int(path_class): path_class.name.lower() for path_class in PathClass}
_UNKNOWN = _CLASS_NAMES[PathClass.UNKNOWN]


@dataclass(frozen=True, eq=False, repr=False)
class JobCriticalPath(Result):
    """The chain of work, waits and transfers that spans a step of the job, across all its ranks.

    All times are on the clock of the reference host.

    per_rank   one row per rank, sorted by rank:

        rank           int32
        window         str      name of the rank's window, such as `ProfilerStep#5`
        start_ns       int64    when the rank's window begins
        end_ns         int64    when the rank's window ends, including its device work
        total_ns        int64    time of the path on this rank; the sum over all ranks is the length of the step
        fraction  float64  0..1 of the step
        slack_ns       int64    how much later all events of the rank could happen without delaying the end of
                                the step; 0 if the critical path contains events of the rank
        contradicted_count  int64  dependencies within the rank in which, by the timestamps, an event happens before the
                                   one on which it depends

    per_class  rank, path_class, total_ns, fraction: time of every class of the path on each rank, sorted by rank and class

    per_name   rank, path_class, module, name, total_ns, fraction, segment_count: the longest first

        module   str  innermost `nn.Module` around the event; null if unknown
        name     str  name of the event; outside all events, name of the innermost Python function, or `host gap` if
                      that is unknown

    path       the longest segments, at most `segment_limit`, in time order:

        rank, name, module, path_class  as above
        event_index  uint32  null outside all events
        start_ns, end_ns, duration_ns  int64

    hops       points at which the path crosses from one rank to another, in time order:

        time_ns        int64  when the last rank arrived
        from_rank      int32  the rank that arrived last
        to_rank        int32  the rank on which the path continues
        collective     str
        process_group  str
        transfer_ns    int64  from the last arrival until `to_rank` leaves the collective
        clock_half_width_ns  int64  uncertainty of the difference between the two ranks' clocks; null if unknown

    steps      one row: the step of the job

        window         str
        start_ns, end_ns, duration_ns  int64
        rank_count     int64  ranks in the graph
        hop_count      int64
        clock_half_width_ns  int64  the largest clock_half_width_ns of a hop; null if any is unknown
        unknown_ns     int64  time of the path whose cause was not recorded
        incomplete_ns   int64  time of the path in communication that some ranks did not record; it may include waiting
        clock_contradiction_ns  int64  sum of the times by which dependencies between ranks seem to end before they
                                       begin, because of clock errors

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> path = holotrace.critical_path(small_job(), across_ranks=True)
    >>> path.per_rank.select("rank", "total_ns").rows()
    [(0, 320000), (1, 680000)]
    """

    per_rank: pl.DataFrame
    per_class: pl.DataFrame
    per_name: pl.DataFrame
    path: pl.DataFrame
    hops: pl.DataFrame
    steps: pl.DataFrame
    findings: tuple[str, ...] = ()

    def _main_view(self) -> View:
        view: View = self._beside("tables").JOB_VIEWS[0]
        return view


def critical_path_across_ranks(
    trace: Trace,
    *,
    options: WindowOptions | None = None,
    segment_limit: int | None = 2_000,
    executor: Executor = IN_PROCESS,
) -> JobCriticalPath:
    """Find the critical path of a window of the whole job; see `holotrace.critical_path` with `across_ranks=True`."""
    window = job_window(trace, options or WindowOptions(data_loading=DATA_LOADING), executor)
    return critical_path_in(window, segment_limit=segment_limit, executor=executor)


def critical_path_in(
    window: JobWindow, *, segment_limit: int | None = 2_000, executor: Executor = IN_PROCESS
) -> JobCriticalPath:
    """Find the critical path of a window from `job_window`; with `segment_limit=None`, list all segments."""
    found = legs(window.graph)
    wanted = wanted_of_ranks(found)
    expand = partial(_expanded, spans=window.spans, wanted=wanted, data_loading=window.options.data_loading)
    expanded = window.trace.select(list(wanted)).visit(expand, executor).results if wanted else {}
    path = _readable(_with_unrecorded(window, segments(window.graph, found, expanded)))
    return _result(window, path, _moved(window, found), segment_limit)


def _moved(window: JobWindow, found: pl.DataFrame) -> pl.DataFrame:
    return hops(window.graph, found).drop("instance").rename({"half_width_ns": "clock_half_width_ns"})


def _expanded(
    rank_trace: RankTrace,
    *,
    spans: Mapping[int, PathWindow],
    wanted: Mapping[int, list[tuple[int, int, int]]],
    data_loading: tuple[str, ...],
) -> pl.DataFrame:
    return expansion(rank_trace, spans[rank_trace.rank], wanted[rank_trace.rank], data_loading)


def _with_unrecorded(window: JobWindow, path: pl.DataFrame) -> pl.DataFrame:
    """Cut the path where a rank's recording begins and ends, because what happened outside the recording is unknown."""
    bounds = pl.DataFrame(
        [(rank, *_aligned(window, rank, [of.start_ns, of.end_ns])) for rank, of in window.recorded.items()],
        {"rank": pl.Int32, "first_ns": pl.Int64, "last_ns": pl.Int64},
        orient="row",
    )
    known = path.join(bounds, on="rank", how="left", maintain_order="left")
    first, last = (pl.col(name).clip("start_ns", "end_ns") for name in ("first_ns", "last_ns"))
    in_call = pl.col("call").is_not_null()
    parts = [
        known.with_columns(end_ns=first, path_class=pl.lit(int(PathClass.UNKNOWN), pl.UInt8)),
        known.with_columns(start_ns=first, end_ns=last),
        known.with_columns(start_ns=last, path_class=pl.lit(int(PathClass.UNKNOWN), pl.UInt8)),
    ]
    outside = pl.concat([parts[0], parts[2]]).with_columns(
        pl.lit(None, pl.UInt32).alias("event_index"), pl.lit(None, pl.String).alias("name")
    )
    cut = pl.concat([known.filter(in_call), *(part.filter(~in_call) for part in (outside, parts[1]))])
    return cut.filter(pl.col("end_ns") > pl.col("start_ns")).sort("start_ns").drop("first_ns", "last_ns")


def _aligned(window: JobWindow, rank: int, times_ns: Sequence[int]) -> list[int]:
    shown = window.job.clocks.corrections(rank, np.array(times_ns, np.int64))
    return (shown["at_ns"] + shown["offset_ns"].fill_null(0)).to_list()


def _readable(path: pl.DataFrame) -> pl.DataFrame:
    named = path.with_columns(
        pl.col("path_class").replace_strict(_CLASS_NAMES, return_dtype=pl.String),
        (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
    )
    is_gap = pl.col("path_class").is_in(["host_gap"])
    default = pl.when(is_gap).then(pl.lit(HOST_GAP_NAME)).otherwise("path_class")
    return named.with_columns(pl.coalesce("name", default))


def _result(window: JobWindow, path: pl.DataFrame, moved: pl.DataFrame, segment_limit: int | None) -> JobCriticalPath:
    graph = window.graph
    step = _step(window, path, moved)
    place = pl.col("duration_ns").rank("ordinal", descending=True)
    longest = path if segment_limit is None else path.filter(place <= segment_limit)
    return JobCriticalPath(
        _per_rank(window, path),
        _per_class(window, path),
        _sums(path, ["rank", "path_class", "module", "name"], graph.duration_ns),
        longest.select("rank", "event_index", "name", "module", "path_class", "start_ns", "end_ns", "duration_ns"),
        moved,
        step,
        (*window.findings, *_findings(window, step)),
    )


def _per_rank(window: JobWindow, path: pl.DataFrame) -> pl.DataFrame:
    graph, slack_ns = window.graph, window.graph.slack_ns()
    rows = [
        {
            "rank": rank,
            "window": window.windows[rank].name,
            "start_ns": _aligned(window, rank, [window.windows[rank].start_ns])[0],
            "end_ns": int(graph.time_ns[graph.rank == rank][-1]),
            "slack_ns": int(slack_ns[graph.rank == rank].min()),
            "contradicted_count": of.contradicted_count,
        }
        for rank, of in window.graphs.items()
    ]
    sums = path.group_by("rank").agg(pl.col("duration_ns").sum().alias("total_ns"))
    known = pl.DataFrame(rows, schema_overrides={"rank": pl.Int32}).join(
        sums, on="rank", how="left", maintain_order="left"
    )
    return known.select(
        "rank",
        "window",
        "start_ns",
        "end_ns",
        pl.col("total_ns").fill_null(0),
        _fraction(pl.col("total_ns").fill_null(0), graph.duration_ns),
        "slack_ns",
        "contradicted_count",
    )


def _per_class(window: JobWindow, path: pl.DataFrame) -> pl.DataFrame:
    ranks = pl.Series("rank", list(window.graphs), pl.Int32).to_frame()
    every = ranks.join(pl.DataFrame({"path_class": list(_CLASS_NAMES.values())}), how="cross")
    sums = path.group_by("rank", "path_class").agg(pl.col("duration_ns").sum().alias("total_ns"))
    known = every.join(sums, on=["rank", "path_class"], how="left", maintain_order="left")
    total = pl.col("total_ns").fill_null(0)
    return known.select("rank", "path_class", total, _fraction(total, window.graph.duration_ns))


def _sums(path: pl.DataFrame, keys: list[str], duration_ns: int) -> pl.DataFrame:
    sums = path.group_by(keys).agg(
        pl.col("duration_ns").sum().alias("total_ns"), pl.len().cast(pl.Int64).alias("segment_count")
    )
    ordered = sums.sort("total_ns", *keys, descending=[True, *(False for _ in keys)])
    return ordered.select(*keys, "total_ns", _fraction(pl.col("total_ns"), duration_ns), "segment_count")


def _fraction(time_ns: pl.Expr, duration_ns: int) -> pl.Expr:
    return (time_ns / duration_ns if duration_ns else pl.lit(None, pl.Float64)).alias("fraction")


def _step(window: JobWindow, path: pl.DataFrame, moved: pl.DataFrame) -> pl.DataFrame:
    graph = window.graph
    complete = graph.calls.select(
        pl.col("call").cast(pl.Int64), (pl.col("is_complete") | (pl.col("group_size") == 1)).alias("is_complete")
    )
    in_calls = path.drop_nulls("call").join(complete, on="call", how="left")
    late = np.maximum(0, graph.time_ns[graph.edges.source] + graph.length_ns - graph.time_ns[graph.edges.target])
    row = {
        "window": window.name,
        "start_ns": int(graph.time_ns[0]),
        "end_ns": int(graph.time_ns[-1]),
        "duration_ns": graph.duration_ns,
        "rank_count": len(window.graphs),
        "hop_count": len(moved),
        "clock_half_width_ns": None
        if moved["clock_half_width_ns"].null_count()
        else (moved["clock_half_width_ns"].max() or 0),
        "unknown_ns": path.filter(pl.col("path_class") == _UNKNOWN)["duration_ns"].sum(),
        "incomplete_ns": in_calls.filter(~pl.col("is_complete").fill_null(value=False))["duration_ns"].sum(),
        "clock_contradiction_ns": int(late[graph.call >= 0].sum()),
    }
    return pl.DataFrame([row], schema_overrides={"clock_half_width_ns": pl.Int64})


def _findings(window: JobWindow, step: pl.DataFrame) -> tuple[str, ...]:
    row = step.row(0, named=True)
    sentences = [*_missing_ranks(window)]
    if row["incomplete_ns"]:
        sentences.append(
            f"{duration_text(row['incomplete_ns'])} of the path is communication that some ranks did not record, so "
            "it may include waiting for these ranks; record all ranks at the same time, and open all their files"
        )
    if row["unknown_ns"]:
        sentences.append(
            f"the cause of {duration_text(row['unknown_ns'])} of the path is unknown, because this time is outside the "
            "recording of a rank or before the rank's first recorded work; record whole steps, and warmup steps "
            "before them"
        )
    if row["clock_half_width_ns"] is None:
        sentences.append("the clocks of some ranks on the path cannot be compared; hops between them are uncertain")
    elif row["clock_half_width_ns"]:
        sentences.append(
            f"the clocks of ranks on the path are aligned to within ±{duration_text(row['clock_half_width_ns'])}"
        )
    if row["clock_contradiction_ns"]:
        sentences.append(
            "some events seem to happen before events of other ranks on which they depend, by "
            f"{duration_text(row['clock_contradiction_ns'])} in total, because the clocks are not exact"
        )
    return tuple(sentences)


def _missing_ranks(window: JobWindow) -> tuple[str, ...]:
    recorded = {rank for ranks in window.job.groups["ranks"].drop_nulls().to_list() for rank in ranks}
    missing = sorted(recorded - set(window.graphs))
    if not missing:
        return ()
    return (f"{ranks_text(missing)}: not recorded, so the cause of waits for these ranks is unknown",)
