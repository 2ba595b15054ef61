"""What did each step spend its time on?"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import polars as pl

from holotrace.analyses.step_time.jitter import JITTER, jitter
from holotrace.enrich.attribution import Attribution
from holotrace.enrich.compat import Compat, attribution_of
from holotrace.enrich.device.device_work import device_rows, missing_device_work
from holotrace.enrich.job.findings import joined_findings
from holotrace.enrich.steps.step_roles import ROLES
from holotrace.enrich.steps.steps import annotation_names, steps, windows
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import EventKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import counted

CATEGORIES = (*ROLES, "other")
"""Categories in order of priority: time that fits several categories counts toward the first."""

_TIMES = tuple(f"{category}_part_ns" for category in CATEGORIES)

_PER_STEP = pl.Schema(
    {
        "rank": pl.Int32(),
        "step": pl.Int64(),
        "start_ns": pl.Int64(),
        "end_ns": pl.Int64(),
        "duration_ns": pl.Int64(),
        **dict.fromkeys(_TIMES, pl.Int64()),
    }
)

NO_STEPS = "no steps were recorded, so the whole recording counts as step 0; call prof.step() after each step"
"""The finding about a rank without steps."""


@dataclass(frozen=True, eq=False, repr=False)
class StepTime(Result):
    """The time of each step, divided into categories.

    per_step  one row per rank and step, sorted by rank and start:

        rank                   int32
        step                   int64  N of ProfilerStep#N, or the number of the annotation that replaces the step
        start_ns, end_ns       int64  ns since the Unix epoch; a step ends with its annotation or last device work,
                                      whichever is later
        duration_ns            int64  end_ns - start_ns, the sum of the eight times below
        kernel_part_ns         int64  a kernel computes
        memcpy_part_ns         int64  a copy runs, and no kernel computes
        memset_part_ns         int64  a memset runs, and none of the above
        communication_part_ns  int64  exposed communication: a collective runs, and none of the above
        runtime_part_ns        int64  the host is in the runtime or the driver, and none of the above
        dataloader_part_ns     int64  the host waits for its data loader, and none of the above
        cpu_part_ns            int64  an operator runs on the host, and none of the above
        other_part_ns          int64  none of the above

    mean      how the mean step of each rank is divided: one row for each of the eight parts above, in the same order:

        rank         int32
        category     str      kernel, memcpy, memset, communication, runtime, dataloader, cpu or other
        mean_ns      float64  per step
        fraction     float64  0..1, share of the mean step; null if the mean step is 0 ns long

    jitter    the difference of each step from the typical step of its rank, in the order of `per_step`:

        rank                int32
        step                int64
        step_kind           str    warm-up: long steps at the beginning; outlier: later long steps; steady: all other steps
        duration_ns         int64
        typical_ns          int64  median duration of the rank's steady steps
        excess_ns           int64  duration_ns - typical_ns
        category            str    the category whose time exceeds its median in steady steps by the most; null if no
                                   category exceeds its median
        category_excess_ns  int64  excess of this category
        event               str    the event of this category whose self time exceeds its median in steady steps by the most;
                                   for `other`, a Python function; null in steady steps, or if unknown
        event_excess_ns     int64  excess of this event

    findings  missing steps, ignored steps, and missing data

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.step_time(small_job()).answer
    'A step takes 1 ms on average; its largest part is kernels (45.0 %).'
    """

    per_step: pl.DataFrame
    mean: pl.DataFrame
    jitter: pl.DataFrame = field(default_factory=JITTER.to_frame)
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_step: pl.DataFrame
    jitter: pl.DataFrame
    findings: tuple[str, ...]
    annotations: tuple[str, ...]


def step_time(
    trace: Trace,
    *,
    annotation: str | None = None,
    compat: Compat | None = None,
    executor: Executor = IN_PROCESS,
) -> StepTime:
    """Divide each step into eight categories; time that fits several categories counts toward the first of them.

    A step begins when its annotation begins on the host or, if the previous step has not ended by then, when that step
    ends. It ends when both its annotation and all device work that it launched have ended. Steps at the end of the
    recording are ignored if their device work was not recorded.

    Args:
        trace: the job.
        annotation: use the host annotations (or operators) with this name as steps, and number them from 0.
        compat: "torch_tb_profiler" gives the numbers of PyTorch's TensorBoard plugin; not possible with `annotation`.
        executor: processes each rank.

    Raises:
        InvalidOptionError: there is no such annotation (the message lists all annotations), or `compat` is set as well.
        MissingDataError: no rank has steps or operators.

    Source: docs/reference/analyses/step_time.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> steps = holotrace.step_time(small_job()).per_step
    >>> steps.select("rank", "step", "duration_ns", "kernel_part_ns", "communication_part_ns").head(2).rows()
    [(0, 1, 1000000, 350000, 300000), (0, 2, 1000000, 350000, 300000)]
    """
    return plan(annotation=annotation, compat=compat).run(trace, executor)


def plan(*, annotation: str | None = None, compat: Compat | None = None) -> Plan[_Partial, StepTime]:
    """Return the two functions of `step_time`: one runs on each rank, the other combines the results of the ranks."""
    attribution = attribution_of(compat)
    attribution.check_annotation(annotation)
    one_rank = partial(_one_rank, annotation=annotation, attribution=attribution)
    return Plan(one_rank, partial(_combine, annotation=annotation))


def _combine(partials: dict[int, _Partial], *, annotation: str | None) -> StepTime:
    if annotation is not None and all(of_rank.per_step.is_empty() for of_rank in partials.values()):
        names = [name for of_rank in partials.values() for name in of_rank.annotations]
        raise InvalidOptionError.unknown([annotation], names, what="annotation")
    per_step = pl.concat([of_rank.per_step for of_rank in partials.values()])
    findings = joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()})
    jitters = pl.concat([of_rank.jitter for of_rank in partials.values()])
    return StepTime(per_step, _mean(per_step), jitters, findings)


def _one_rank(rank_trace: RankTrace, *, annotation: str | None, attribution: Attribution) -> _Partial:
    step_windows = attribution.step_windows(rank_trace, annotation)
    if step_windows.is_empty() and annotation is None:
        message = f"step_time: rank {rank_trace.rank} has neither steps nor operators to measure ({rank_trace.source})"
        raise MissingDataError(message)
    times = attribution.role_times(attribution.roles(rank_trace), step_windows)
    per_step = step_windows.select(
        pl.lit(rank_trace.rank, pl.Int32).alias("rank"),
        pl.col("window").alias("step"),
        "start_ns",
        "end_ns",
        (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
    ).with_columns(pl.Series(f"{category}_part_ns", values) for category, values in times.items())
    findings = attribution.shown_findings(_findings(rank_trace, step_windows, annotation))
    names = annotation_names(rank_trace) if step_windows.is_empty() and annotation is not None else ()
    return _Partial(per_step.match_to_schema(_PER_STEP), jitter(rank_trace, per_step), findings, names)


def _mean(per_step: pl.DataFrame) -> pl.DataFrame:
    means = per_step.group_by("rank", maintain_order=True).agg(pl.col(*_TIMES, "duration_ns").mean())
    long = means.unpivot(_TIMES, index=["rank", "duration_ns"], variable_name="category", value_name="mean_ns")
    total = pl.col("duration_ns")
    return long.sort("rank", maintain_order=True).select(
        "rank",
        pl.col("category").str.strip_suffix("_part_ns"),
        "mean_ns",
        pl.when(total > 0).then(pl.col("mean_ns") / total).alias("fraction"),
    )


def _findings(rank_trace: RankTrace, step_windows: pl.DataFrame, annotation: str | None) -> tuple[str, ...]:
    ignored = len(windows(rank_trace, annotation)) - len(step_windows)
    is_whole = annotation is None and steps(rank_trace).is_empty()
    sentences = (
        (is_whole, NO_STEPS),
        (
            ignored,
            f"{counted(ignored, 'step is', 'steps are')} ignored at the end, because the device work was not recorded",
        ),
        (device_rows(rank_trace).is_empty(), missing_device_work(rank_trace)),
        (not _has_operators(rank_trace), "no operators were recorded; record with ProfilerActivity.CPU"),
    )
    return tuple(sentence for is_so, sentence in sentences if is_so and not step_windows.is_empty())


def _has_operators(rank_trace: RankTrace) -> bool:
    return not rank_trace.events_of([EventKind.CPU_OP], ["event_index"]).is_empty()
