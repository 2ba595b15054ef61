"""What changed between two traces?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import polars as pl

from holotrace.algorithms.changes import change_of_count
from holotrace.algorithms.sums_by_name import sums_by_name
from holotrace.enrich.host.host_names import without_addresses
from holotrace.enrich.steps.step_of_event import step_rows
from holotrace.enrich.steps.steps import steps
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import DEVICE_WORK_KINDS, EventKind
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import counted

Device = Literal["all", "cpu", "gpu"]

HOST_KINDS = (
    EventKind.CPU_OP,
    EventKind.USER_ANNOTATION,
    EventKind.RUNTIME,
    EventKind.DRIVER,
    EventKind.PYTHON_FUNCTION,
    EventKind.OVERHEAD,
    EventKind.OTHER,
)
KINDS_OF_DEVICE: dict[Device, tuple[EventKind, ...]] = {
    "cpu": HOST_KINDS,
    "gpu": DEVICE_WORK_KINDS,
    "all": (*HOST_KINDS, *DEVICE_WORK_KINDS),
}

_SIDES = ("control", "test")
_KEYS = ("kind", "name")
_VALUES = ("event_count", "total_ns", "event_count_in_steps", "ns_in_steps")
_KIND_NAMES = {kind.value: kind.name.lower() for kind in EventKind}


@dataclass(frozen=True, eq=False, repr=False)
class TraceComparison(Result):
    """The differences between two traces, by event name.

    per_name  one row per kind and name in either trace, the largest difference in total time first:

        kind                    str      EventKind in lower case: cpu_op, kernel, …
        name                    str
        change                  str      change of the count: added, deleted, increased, decreased, unchanged
        control_event_count, test_event_count  int64    events; 0 if the trace has none
        event_count_difference  int64    test - control
        control_total_ns, test_total_ns  int64    summed durations; nested events count in full, each under its own name
        difference_ns           int64    test - control
        control_mean_ns, test_mean_ns  float64  mean duration of an event; null if there are no events
        control_event_count_per_step, test_event_count_per_step  float64  mean count per step; null without steps
        control_ns_per_step, test_ns_per_step  float64  mean time of the events per step; null without steps

    sides     one row each for control and test:

        side         str
        rank_count   int64
        step_count   int64  compared steps, summed over the ranks
        event_count  int64
        total_ns     int64  summed durations

    findings  reasons why the traces are hard to compare

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> job = small_job()
    >>> holotrace.compare_traces(job.select([0]), job.select([1])).answer
    'From control to test, the time of gemm changed most: +400 µs.'
    """

    per_name: pl.DataFrame
    sides: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    totals: pl.DataFrame
    step_count: int


class _Side(NamedTuple):
    totals: pl.DataFrame
    step_count: int
    rank_count: int
    skipped: tuple[str, ...]


def compare_traces(  # noqa: PLR0913 -- two sides and what to look at
    control: Trace,
    test: Trace,
    *,
    control_steps: Iterable[int] | None = None,
    test_steps: Iterable[int] | None = None,
    device: Device = "all",
    exact_names: bool = False,
    executor: Executor = IN_PROCESS,
) -> TraceComparison:
    """Compare the counts and times of two traces by event name, per call and per step.

    All ranks of a trace are combined; to compare only some ranks, pass `trace.select(ranks)`. If no steps are chosen for a
    trace, all its events are compared, even events outside steps.

    Args:
        control: the baseline.
        test: the trace to compare with the baseline.
        control_steps: compare only the events of these steps; see `holotrace.enrich.steps.step_of_event`.
        test_steps: the same for `test`.
        device: `cpu` for operators, annotations, runtime calls and Python functions; `gpu` for kernels, copies and
            memsets; `all` for both.
        exact_names: keep full names such as `<built-in method wait of Event object at 0x7f3a>`. By default, this name becomes
            `<built-in method wait>`, because addresses differ between processes.
        executor: processes each rank.

    Raises:
        InvalidOptionError: `device` is not `cpu`, `gpu` or `all`, or no rank of the trace has a requested step.

    Source: docs/reference/analyses/compare_traces.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> job = small_job()
    >>> result = holotrace.compare_traces(job.select([0]), job.select([1]))
    >>> result.per_name.select("name", "control_total_ns", "test_total_ns").head(1).rows()
    [('gemm', 600000, 1000000)]
    """
    if device not in KINDS_OF_DEVICE:
        message = f"device={device!r} is not one of: {', '.join(KINDS_OF_DEVICE)}"
        raise InvalidOptionError(message)
    look = partial(_one_rank, kinds=KINDS_OF_DEVICE[device], exact_names=exact_names)
    sides = [
        _side(trace, None if numbers is None else tuple(numbers), look, executor)
        for trace, numbers in ((control, control_steps), (test, test_steps))
    ]
    return TraceComparison(_joined(*sides), _overall(sides), tuple(_findings(sides)))


def _side(trace: Trace, numbers: tuple[int, ...] | None, look: Callable[..., _Partial], executor: Executor) -> _Side:
    skipped: tuple[str, ...] = ()
    if numbers is not None:
        known = trace.visit(_step_numbers, executor)
        _check_steps(numbers, known.results.values())
        trace, skipped = known.trace, known.findings
    visit = trace.visit(partial(look, numbers=numbers), executor)
    ranks = visit.results.values()
    totals = pl.concat([rank.totals for rank in ranks]).group_by(_KEYS).agg(pl.col(_VALUES).sum())
    return _Side(totals, sum(rank.step_count for rank in ranks), len(ranks), (*skipped, *visit.findings))


def _check_steps(numbers: tuple[int, ...], of_ranks: Iterable[list[int]]) -> None:
    """Raise InvalidOptionError if a requested step exists on no rank, or if the list of requested steps is empty."""
    existing = {step for of_rank in of_ranks for step in of_rank}
    unknown = sorted(set(numbers) - existing)
    if unknown or not numbers:
        raise InvalidOptionError.unknown(unknown, existing, what="step")


def _step_numbers(rank_trace: RankTrace) -> list[int]:
    return steps(rank_trace)["step"].unique().to_list()


def _one_rank(
    rank_trace: RankTrace, *, numbers: tuple[int, ...] | None, kinds: tuple[EventKind, ...], exact_names: bool
) -> _Partial:
    known = set(_step_numbers(rank_trace))
    chosen = known if numbers is None else known & set(numbers)
    events = rank_trace.table("events", ["kind", "name", "duration_ns"])
    sums = sums_by_name(events, *step_rows(rank_trace, numbers))
    totals = sums.filter(pl.col("kind").is_in([kind.value for kind in kinds]))
    all_or_marked = ("count", "total_ns") if numbers is None else ("marked_count", "marked_ns")
    names = rank_trace.texts(totals["name"])
    counted = totals.select(
        "kind",
        names if exact_names else without_addresses(names),
        *(
            pl.col(name).alias(value)
            for name, value in zip((*all_or_marked, "marked_count", "marked_ns"), _VALUES, strict=True)
        ),
    )
    return _Partial(counted.filter(pl.col("event_count") > 0), len(chosen))


def _joined(control: _Side, test: _Side) -> pl.DataFrame:
    parts = [
        side.totals.rename({name: f"{label}_{name}" for name in _VALUES})
        for label, side in zip(_SIDES, (control, test), strict=True)
    ]
    both = parts[0].join(parts[1], on=_KEYS, how="full", coalesce=True).fill_null(0)
    ratios = [_ratios(label, side) for label, side in zip(_SIDES, (control, test), strict=True)]
    return both.select(
        pl.col("kind").replace_strict(_KIND_NAMES, return_dtype=pl.String),
        "name",
        change_of_count(pl.col("control_event_count"), pl.col("test_event_count")).alias("change"),
        "control_event_count",
        "test_event_count",
        (pl.col("test_event_count") - pl.col("control_event_count")).alias("event_count_difference"),
        "control_total_ns",
        "test_total_ns",
        (pl.col("test_total_ns") - pl.col("control_total_ns")).alias("difference_ns"),
        *(ratio for index in range(3) for ratio in (ratios[0][index], ratios[1][index])),
    ).sort(pl.col("difference_ns").abs(), "kind", "name", descending=[True, False, False])


def _ratios(label: str, side: _Side) -> tuple[pl.Expr, ...]:
    """Return mean, count per step and time per step; null if the divisor is 0."""
    step_count = pl.lit(side.step_count or None, pl.Int64)
    count = pl.col(f"{label}_event_count")
    return (
        pl.when(count > 0).then(pl.col(f"{label}_total_ns") / count).alias(f"{label}_mean_ns"),
        (pl.col(f"{label}_event_count_in_steps") / step_count).alias(f"{label}_event_count_per_step"),
        (pl.col(f"{label}_ns_in_steps") / step_count).alias(f"{label}_ns_per_step"),
    )


def _overall(sides: list[_Side]) -> pl.DataFrame:
    rows = [
        (label, side.rank_count, side.step_count, side.totals["event_count"].sum(), side.totals["total_ns"].sum())
        for label, side in zip(_SIDES, sides, strict=True)
    ]
    counts = dict.fromkeys(("rank_count", "step_count", "event_count", "total_ns"), pl.Int64)
    return pl.DataFrame(rows, schema={"side": pl.String, **counts}, orient="row")


def _findings(sides: list[_Side]) -> list[str]:
    without = [label for label, side in zip(_SIDES, sides, strict=True) if not side.step_count]
    empty = [label for label, side in zip(_SIDES, sides, strict=True) if side.totals.is_empty()]
    counts = [side.step_count for side in sides]
    sentences = [f"{label}: {text}" for label, side in zip(_SIDES, sides, strict=True) for text in side.skipped]
    sentences += [f"the {label} trace has no steps, so it has no values per step" for label in without]
    sentences += [f"the {label} trace has no events on the chosen device in the chosen steps" for label in empty]
    if all(counts) and counts[0] != counts[1]:
        sentences.append(
            f"control has {counted(counts[0], 'step')} and test has {counts[1]:,}: compare the per-step columns"
        )
    return sentences
