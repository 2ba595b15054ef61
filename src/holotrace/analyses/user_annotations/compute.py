"""How long do the annotated parts of the program take, and which kernels do they launch?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.summary import summary_by_number
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.host.annotations import (
    annotation_of_work,
    device_annotations,
    device_ranges,
    has_recorded_device_annotations,
    host_annotations,
)
from holotrace.enrich.job.findings import ranks_text
from holotrace.errors import InvalidOptionError, what_exists
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import EventKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

Side: TypeAlias = Literal["cpu", "gpu"]

STEPS = "ProfilerStep"
"""Common name of `ProfilerStep#1`, `ProfilerStep#2` … after merging."""

_STEP_NUMBER = r"^ProfilerStep\s*#\s*\d+$"
_MOST_LISTED = 20
_PER_ANNOTATION = {
    "rank": pl.Int32,
    "side": pl.String,
    "name": pl.String,
    "call_count": pl.Int64,
    "total_ns": pl.Int64,
    "self_ns": pl.Int64,
    "kernel_count": pl.Int64,
    "kernel_ns": pl.Int64,
    "mean_ns": pl.Float64,
    "std_ns": pl.Float64,
    "min_ns": pl.Int64,
    "max_ns": pl.Int64,
}
_PER_KERNEL = {
    "rank": pl.Int32,
    "annotation": pl.String,
    "name": pl.String,
    "call_count": pl.Int64,
    "total_ns": pl.Int64,
}

_NAMES_OF_STATISTICS = {
    "count": "call_count",
    "sum": "total_ns",
    **{name: f"{name}_ns" for name in ("mean", "std", "min", "max")},
}
_DURATION = (
    pl.len().cast(pl.Int64).alias("call_count"),
    pl.col("ns").sum().alias("total_ns"),
    pl.col("ns").mean().alias("mean_ns"),
    pl.col("ns").std(ddof=1).fill_null(0.0).alias("std_ns"),
    pl.col("ns").min().alias("min_ns"),
    pl.col("ns").max().alias("max_ns"),
)


@dataclass(frozen=True, eq=False, repr=False)
class UserAnnotations(Result):
    """The time of user annotations on the host and on the devices, and the kernels launched inside them.

    per_annotation  one row per rank, side and name, sorted by all three:

        rank             int32
        side             str      `gpu`: projected onto the streams; `cpu`: on the host
        name             str
        call_count       int64    ranges with this name; on the gpu, a call has one range on each stream that it uses
        total_ns         int64    summed durations of these ranges, including the annotations inside them
        self_ns          int64    part of total_ns in which no shorter annotation is active on the same stream or thread
        kernel_count     int64    kernels, copies and memsets whose innermost annotation is this one; null on the cpu
        kernel_ns        int64    summed durations of this work; null on the cpu
        mean_ns, std_ns  float64  mean and sample standard deviation of the durations; std_ns is 0 for one range
        min_ns, max_ns   int64

    per_kernel  device work launched inside each annotation, the longest first within a rank and annotation:

        rank        int32
        annotation  str    innermost annotation; null for work without an annotation
        name        str    name of the kernel, copy or memset
        call_count  int64
        total_ns    int64

    findings    ranks whose GPU annotations are derived from launches, and ranks without annotations

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().annotation("forward", start_us=0, duration_us=50).build()
    >>> holotrace.user_annotations(trace).answer
    '50 µs of host time on rank 0 goes into forward, the costliest annotation, in 1 call.'
    """

    per_annotation: pl.DataFrame
    per_kernel: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_annotation: pl.DataFrame
    per_kernel: pl.DataFrame
    names: tuple[str, ...]
    is_derived: bool


def user_annotations(
    trace: Trace,
    *,
    allow: Sequence[str] | None = None,
    merge_steps: bool = False,
    executor: Executor = IN_PROCESS,
) -> UserAnnotations:
    """Add up the time of user annotations, such as `record_function("forward")`, and of the kernels launched inside them.

    On each GPU stream, an annotation lasts from the start of the first work to the end of the last work launched inside it. If
    the profiler did not record annotations on GPU streams, they are derived from the launches. Work counts towards its
    innermost annotation, which is the shortest annotation on its device and stream when the work begins; see
    `holotrace.enrich.host.annotations`.

    Args:
        trace: the job.
        allow: regular expressions; only annotations with a matching name are returned.
        merge_steps: count `ProfilerStep#1`, `ProfilerStep#2` … together as `ProfilerStep`.
        executor: processes each rank.

    Raises:
        InvalidOptionError: an expression is not valid, or no name matches; the message lists the names.

    Source: docs/reference/analyses/user_annotations.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().annotation("forward", start_us=0, duration_us=50).build()
    >>> holotrace.user_annotations(trace).per_annotation.select("name", "side", "call_count", "total_ns").rows()
    [('forward', 'cpu', 1, 50000)]
    """
    return plan(allow=allow, merge_steps=merge_steps).run(trace, executor)


def plan(*, allow: Sequence[str] | None = None, merge_steps: bool = False) -> Plan[_Partial, UserAnnotations]:
    """Return the two functions of `user_annotations`: one runs on each rank, the other combines the results of the ranks."""
    patterns = None if allow is None else tuple(map(_compiled, allow))
    one_rank = partial(_one_rank, patterns=patterns, merge_steps=merge_steps)
    return Plan(one_rank, partial(_combine, allow=allow))


def annotation_durations(trace: Trace, side: Side, *, executor: Executor = IN_PROCESS) -> dict[int, pl.DataFrame]:
    """Return the durations of each rank's annotations on one side, in the form of `UserAnnotations.per_annotation`.

    The tables lack the columns rank and side, and also the columns about self times and kernels, which take the
    longest to compute.
    """
    return trace.map(partial(_durations_of_rank, side=side), executor)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        message = f"{pattern!r} is not a regular expression: {error}"
        raise InvalidOptionError(message) from error


def _one_rank(rank_trace: RankTrace, *, patterns: tuple[re.Pattern[str], ...] | None, merge_steps: bool) -> _Partial:
    host, device = host_annotations(rank_trace), device_annotations(rank_trace)
    work = device_work(rank_trace).select("event_index", "name", (pl.col("end_ns") - pl.col("start_ns")).alias("ns"))
    owned = work.hstack(annotation_of_work(rank_trace).select("annotation"))
    kernels = _per_kernel(rank_trace, owned, merge_steps=merge_steps)
    sides = [
        _durations(rank_trace, device, "gpu", merge_steps=merge_steps).join(_totals(kernels), on="name", how="left"),
        _durations(rank_trace, host, "cpu", merge_steps=merge_steps).with_columns(
            pl.lit(None, pl.Int64).alias("kernel_count"), pl.lit(None, pl.Int64).alias("kernel_ns")
        ),
    ]
    names = tuple(pl.concat([side["name"] for side in sides]).unique().to_list())
    chosen = [name for name in names if patterns is None or any(pattern.search(name) for pattern in patterns)]
    per_annotation = pl.concat(
        [_filled(side.filter(pl.col("name").is_in(chosen)), rank_trace.rank) for side in sides]
    ).sort("side", "name", descending=[True, False])
    belongs = pl.lit(value=True) if patterns is None else pl.col("annotation").is_in(chosen)
    per_kernel = kernels.filter(belongs).select(pl.lit(rank_trace.rank, pl.Int32).alias("rank"), pl.all())
    is_derived = bool(len(device)) and not has_recorded_device_annotations(rank_trace)
    return _Partial(per_annotation, per_kernel, names, is_derived)


def _durations_of_rank(rank_trace: RankTrace, *, side: Side) -> pl.DataFrame:
    statistics = summary_by_number(*_names_and_durations(rank_trace, side))
    names = rank_trace.texts(pl.Series(statistics.number))
    return pl.DataFrame(
        {"name": names, **{column: getattr(statistics, name) for name, column in _NAMES_OF_STATISTICS.items()}}
    )


def _names_and_durations(rank_trace: RankTrace, side: Side) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    kind = EventKind.USER_ANNOTATION if side == "cpu" else EventKind.GPU_USER_ANNOTATION
    recorded = rank_trace.events_of([kind], ["name", "duration_ns"])
    if side == "cpu" or len(recorded):
        return recorded["name"].to_numpy(), recorded["duration_ns"].to_numpy().clip(min=0)
    projected = device_ranges(rank_trace)
    return projected["name"].to_numpy(), (projected["end_ns"] - projected["start_ns"]).to_numpy()


def _per_kernel(rank_trace: RankTrace, owned: pl.DataFrame, *, merge_steps: bool) -> pl.DataFrame:
    sums = owned.group_by("annotation", "name").agg(
        pl.len().cast(pl.Int64).alias("call_count"), pl.col("ns").sum().alias("total_ns")
    )
    named = sums.with_columns(
        _named(rank_trace, sums["annotation"], merge_steps=merge_steps), rank_trace.texts(sums["name"])
    )
    merged = named.group_by("annotation", "name").agg(pl.col("call_count", "total_ns").sum())
    return merged.sort("annotation", "total_ns", "name", descending=[False, True, False], nulls_last=True)


def _totals(kernels: pl.DataFrame) -> pl.DataFrame:
    totals = kernels.group_by(pl.col("annotation").alias("name")).agg(pl.col("call_count", "total_ns").sum())
    return totals.rename({"call_count": "kernel_count", "total_ns": "kernel_ns"})


def _durations(rank_trace: RankTrace, ranges: pl.DataFrame, side: Side, *, merge_steps: bool) -> pl.DataFrame:
    named = ranges.with_columns(
        _named(rank_trace, ranges["name"], merge_steps=merge_steps),
        (pl.col("end_ns") - pl.col("start_ns")).alias("ns"),
    )
    return named.group_by("name").agg(pl.lit(side).alias("side"), *_DURATION, pl.col("self_ns").sum())


def _named(rank_trace: RankTrace, ids: pl.Series, *, merge_steps: bool) -> pl.Series:
    distinct = ids.unique().drop_nulls()
    texts = rank_trace.texts(distinct)
    shown = texts.str.replace(_STEP_NUMBER, STEPS) if merge_steps else texts
    return ids.replace_strict(distinct, shown, return_dtype=pl.String, default=None)


def _filled(side: pl.DataFrame, rank: int) -> pl.DataFrame:
    """Set kernel_count and kernel_ns to 0 for GPU annotations that are never innermost; order and cast the columns."""
    has_work = pl.col("side") == "gpu"
    counted = side.with_columns(
        pl.when(has_work).then(pl.col(name).fill_null(0)).alias(name) for name in ("kernel_count", "kernel_ns")
    )
    columns = counted.with_columns(pl.lit(rank).alias("rank"))
    return columns.select(pl.col(name).cast(kind) for name, kind in _PER_ANNOTATION.items())


def _combine(partials: dict[int, _Partial], allow: Sequence[str] | None) -> UserAnnotations:
    names = {name for of_rank in partials.values() for name in of_rank.names}
    per_annotation = pl.concat([of_rank.per_annotation for of_rank in partials.values()])
    if allow is not None and names and per_annotation.is_empty():
        listed = what_exists(names, wanted=next(iter(allow), ""))
        message = f"no annotation matches {' or '.join(map(repr, allow)) or 'an empty list'}; available: {listed}"
        raise InvalidOptionError(message)
    per_kernel = pl.concat([of_rank.per_kernel for of_rank in partials.values()])
    return UserAnnotations(
        per_annotation,
        per_kernel.select(pl.col(name).cast(kind) for name, kind in _PER_KERNEL.items()),
        _findings(partials),
    )


def _findings(partials: dict[int, _Partial]) -> tuple[str, ...]:
    derived = [rank for rank, of_rank in partials.items() if of_rank.is_derived]
    without = [rank for rank, of_rank in partials.items() if not of_rank.names]
    sentences = (
        (
            derived,
            f"{ranks_text(derived)}: GPU annotations are derived from launches, because the profiler recorded none",
        ),
        (
            without,
            f"{ranks_text(without)}: no user annotations; mark parts of the program with torch.profiler.record_function",
        ),
    )
    return tuple(sentence for ranks, sentence in sentences if ranks)
