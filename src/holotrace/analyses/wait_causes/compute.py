"""Why do ranks wait for each other, and which rank is the cause?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from holotrace.analyses.wait_causes.jitter import jitter
from holotrace.enrich.across_ranks.job_calls import job_calls
from holotrace.enrich.across_ranks.matching.calls import OfRank, of_rank
from holotrace.enrich.job.rank_tables import typed
from holotrace.enrich.job_graph.causes.delay_costs import DelayCosts, delay_costs, with_call_rows
from holotrace.enrich.job_graph.causes.histories import Histories, histories
from holotrace.enrich.job_graph.causes.roles import cause_text, roles
from holotrace.enrich.steps.steps import annotation_names, windows
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import duration_text, percent_text

_MOST_NAMED = 3
_PER_CAUSE = {
    "step": pl.Int64,
    "cause_rank": pl.Int32,
    "waiting_rank": pl.Int32,
    "cause": pl.String,
    "name": pl.String,
    "module": pl.String,
    "frame": pl.String,
    "cost_ns": pl.Int64,
    "error_ns": pl.Int64,
    "wait_count": pl.Int64,
    "first_instance": pl.Int64,
    "first_ns": pl.Int64,
}
_PER_RANK = {
    "rank": pl.Int32,
    "role": pl.String,
    "cost_ns": pl.Int64,
    "cost_fraction": pl.Float64,
    "wait_ns": pl.Int64,
    "passed_on_ns": pl.Int64,
    "cause": pl.String,
    "name": pl.String,
    "module": pl.String,
    "frame": pl.String,
}
_PER_PAIR = {"cause_rank": pl.Int32, "waiting_rank": pl.Int32, "cost_ns": pl.Int64}
_PER_STEP = {"step": pl.Int64, "rank": pl.Int32, "cost_ns": pl.Int64, "wait_ns": pl.Int64}


@dataclass(frozen=True, eq=False, repr=False)
class WaitCauses(Result):
    """The causes of all waiting between ranks, and the cost of each cause.

    per_cause  one row per step, cause and waiting rank, the largest cost first; all costs add up to the total wait:

        step            int64  step of the wait; null outside the steps
        cause_rank      int32  the rank that causes the wait; null if unknown
        waiting_rank    int32
        cause           str    computation, copy, operator, python, data_loading, garbage_collection, allocation,
                               launch_delay, host_idle, synchronisation, communication, or unknown
        name            str    kernel, operator or Python function; for an unknown cause, why it is unknown; null if none
        module          str    innermost module around the cause; null if unknown
        frame           str    innermost function of the user's Python code around the cause; null if unknown
        cost_ns         int64  time that the rank waits because of the cause
        error_ns        int64  how far cost_ns may be off
        wait_count      int64  calls in which ranks waited directly because of this cause, over all steps
        first_instance  int64  `instance`, in `collectives`, of the first of these calls; null if there are none
        first_ns        int64  when the late rank arrived at the first of these calls, on its own clock

    per_rank   one row per rank, sorted by rank:

        rank            int32
        role            str      culprit, victim or null
        cost_ns         int64    time that all ranks together wait because of this rank
        cost_fraction   float64  0..1 of all waiting; null if no rank waits
        wait_ns         int64    time that the rank waits
        passed_on_ns    int64    time that other ranks wait because this rank waited itself
        cause, name, module, frame  str  the rank's most costly cause; null if the rank causes no waiting

    per_pair   one row per pair: a rank that causes waiting (null if unknown), and a rank that waits; sorted by both:

        cause_rank, waiting_rank, cost_ns

    per_step   one row per step and rank, sorted by both: step, rank, cost_ns, wait_ns

    jitter     one row per rank and step, sorted by both: how much longer than usual the rank waits, and the cause
               whose cost is furthest above its typical value

        rank             int32    the rank that waits
        step             int64
        wait_ns          int64
        typical_wait_ns  int64    median of the rank's waits per step
        wait_excess_ns   int64    wait_ns - typical_wait_ns
        cause_rank, cause, name, module, frame  the cause whose cost for this rank is furthest above its cost in the
                                                median step; null if no cost is above it
        cost_excess_ns   int64    cost of this cause in the step, minus its cost in the median step

    findings   which ranks are culprits, and which data are missing

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.wait_causes(small_job()).answer
    'Rank 1 causes 100.0 % of all waiting (400 µs over all ranks); 100.0 % of this waiting is due to kernel gemm.'
    """

    per_cause: pl.DataFrame
    per_rank: pl.DataFrame
    per_pair: pl.DataFrame
    per_step: pl.DataFrame
    jitter: pl.DataFrame
    findings: tuple[str, ...] = ()


class WaitingRank(NamedTuple):
    """The partial result of one rank: its communication, its activity before each call, and its steps."""

    communicating: OfRank
    histories: Histories
    windows: list[int]
    available: tuple[str, ...]


def wait_causes(
    trace: Trace,
    *,
    steps: Sequence[int] | None = None,
    annotation: str | None = None,
    executor: Executor = IN_PROCESS,
) -> WaitCauses:
    """Divide all waiting between ranks among its causes.

    In a collective, send or receive, a rank waits until the last rank has arrived. The cause is the activity that
    took longer on the late rank than on the waiting rank since the two ranks last communicated: a kernel, an operator,
    a Python function, data loading … If the late rank itself waited for another rank in this time, the cause of
    that wait is also a cause of this one, and so on. The costs of all causes add up to the total waiting, to the
    nanosecond.

    Args:
        trace: the job.
        steps: divide only the waits in these steps.
        annotation: name of host annotations to use as steps, numbered from 0.
        executor: processes each rank.

    Raises:
        InvalidOptionError: the step or annotation does not exist; the message lists the existing ones.

    Source: the definitions are derived in docs/reference/analyses/wait_causes.md.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> causes = holotrace.wait_causes(small_job()).per_cause
    >>> causes.select("cause_rank", "waiting_rank", "cause", "cost_ns").rows()
    [(1, 0, 'computation', 200000), (1, 0, 'computation', 200000)]
    """
    return plan(steps=steps, annotation=annotation).run(trace, executor)


def plan(*, steps: Sequence[int] | None = None, annotation: str | None = None) -> Plan[WaitingRank, WaitCauses]:
    """Return the two functions of `wait_causes`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(partial(waiting_rank, annotation=annotation), partial(_combine, steps=steps, annotation=annotation))


def waiting_rank(rank_trace: RankTrace, *, annotation: str | None) -> WaitingRank:
    """Return the partial result of one rank."""
    step_windows = windows(rank_trace, annotation)
    missing = annotation is not None and step_windows.is_empty()
    return WaitingRank(
        of_rank(rank_trace, annotation),
        histories(rank_trace),
        step_windows["window"].to_list(),
        annotation_names(rank_trace) if missing else (),
    )


def _combine(ranks: dict[int, WaitingRank], *, steps: Sequence[int] | None, annotation: str | None) -> WaitCauses:
    _require_options(ranks, steps, annotation)
    communicating = {rank: known.communicating for rank, known in ranks.items()}
    job = job_calls(communicating)
    calls = with_call_rows(job.calls, communicating)
    found = delay_costs(calls, {rank: known.histories for rank, known in ranks.items()}, steps)
    per_cause = typed(found.costs.with_columns(pl.col("cause").cast(pl.String)), _PER_CAUSE)
    per_rank = typed(roles(found, list(ranks)), _PER_RANK)
    return WaitCauses(
        per_cause,
        per_rank,
        typed(_per_pair(per_cause), _PER_PAIR),
        typed(_per_step(found), _PER_STEP),
        jitter(per_cause, {rank: _chosen(known.windows, steps) for rank, known in ranks.items()}),
        (*_findings(per_cause, per_rank, calls, ranks), *job.findings),
    )


def _chosen(windows: Sequence[int], steps: Sequence[int] | None) -> list[int]:
    return [window for window in windows if steps is None or window in steps]


def _require_options(ranks: Mapping[int, WaitingRank], steps: Sequence[int] | None, annotation: str | None) -> None:
    available = {window for known in ranks.values() for window in known.windows}
    if annotation is not None and not available:
        names = [name for known in ranks.values() for name in known.available]
        raise InvalidOptionError.unknown([annotation], names, what="annotation")
    unknown = sorted(set(steps or ()) - available)
    if unknown or (steps is not None and not steps):
        raise InvalidOptionError.unknown(unknown, available, what="step")


def _per_pair(per_cause: pl.DataFrame) -> pl.DataFrame:
    sums = per_cause.group_by("cause_rank", "waiting_rank").agg(pl.col("cost_ns").sum())
    return sums.sort("cause_rank", "waiting_rank", nulls_last=True)


def _per_step(found: DelayCosts) -> pl.DataFrame:
    costs = found.costs.group_by("step", rank="cause_rank").agg(pl.col("cost_ns").sum()).drop_nulls("rank")
    waits = found.waits.filter(pl.col("wait_ns") > 0).group_by("step", "rank").agg(pl.col("wait_ns").sum())
    both = costs.join(waits, on=["step", "rank"], how="full", coalesce=True, nulls_equal=True)
    return both.with_columns(pl.col("cost_ns", "wait_ns").fill_null(0)).sort("step", "rank", nulls_last=True)


def _findings(
    per_cause: pl.DataFrame, per_rank: pl.DataFrame, calls: pl.DataFrame, ranks: Mapping[int, WaitingRank]
) -> Iterator[str]:
    if len(ranks) == 1:
        yield f"only rank {next(iter(ranks))} was recorded; open all ranks of the job to see which ranks it waits for"
    culprits = per_rank.filter(pl.col("role") == "culprit").sort("cost_ns", descending=True)
    yield from (culprit_clause(row) for row in culprits.head(_MOST_NAMED).iter_rows(named=True))
    unknown = per_cause.filter(pl.col("cause") == "unknown").group_by("name").agg(pl.col("cost_ns").sum())
    for name, cost_ns in unknown.sort("cost_ns", descending=True).iter_rows():
        yield f"the cause of {duration_text(cost_ns)} of waiting is unknown: {name}"
    unmatched = int(calls.filter(pl.col("wait_ns").is_null())["duration_ns"].sum())
    if unmatched:
        yield f"{duration_text(unmatched)} of communication may include waiting: no other rank recorded matching calls"
    if not _has_stacks(per_cause):
        yield "no Python functions or modules were recorded; record with with_stack=True to see which code is late"


def _has_stacks(per_cause: pl.DataFrame) -> bool:
    return (
        per_cause.is_empty()
        or per_cause.select(pl.any_horizontal(pl.col("frame", "module").is_not_null().any())).item()
    )


def culprit_clause(row: dict[str, Any]) -> str:
    """Say how much waiting a rank (a row of `per_rank`) causes, and name the largest cause."""
    share = percent_text(row["cost_fraction"])
    return f"rank {row['rank']} causes {share} of all waiting ({duration_text(row['cost_ns'])}): {cause_text(row)}"
