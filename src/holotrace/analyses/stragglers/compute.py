"""For which rank do the other ranks wait?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from holotrace.algorithms.covered_by_group import covered_by_group
from holotrace.enrich.across_ranks.arrivals import waits_by_duration
from holotrace.enrich.across_ranks.job_calls import job_calls
from holotrace.enrich.across_ranks.matching.calls import OfRank, of_rank
from holotrace.enrich.across_ranks.matching.matching import match, matched_without_numbers
from holotrace.enrich.across_ranks.timed_calls import timed_calls
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT
from holotrace.enrich.job.rank_tables import typed
from holotrace.enrich.job_graph.causes.delay_costs import delay_costs, with_call_rows
from holotrace.enrich.job_graph.causes.histories import Histories, histories
from holotrace.enrich.job_graph.causes.roles import CULPRIT, VICTIM, cause_text, roles
from holotrace.enrich.steps.steps import annotation_names, windows
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import counted, duration_text, percent_text

LEAST_WAIT = 0.5
MOST_CAUSED = 0.5
"""The mean wait of a straggler per collective is at most `LEAST_WAIT` times that of the median rank, and the straggler
causes more than the fraction `MOST_CAUSED` of all waiting in its collectives."""

MOST_EXPLAINED = 0.5
"""A straggler is considered the cause (`is_cause`) if its own waiting explains less than this fraction of its skew."""

LEAST_ELSEWHERE = 0.01
"""Waits are traced to causes if a rank spends at least this fraction of its communication time outside its main group.

The main group is the group with which the rank spends the most time.

In jobs with sends and receives, waits are always traced, because a late rank of a pipeline may spend hardly any time in
communication with its neighbours.
"""

_MOST_NAMED = 8
_PER_RANK = {
    "rank": pl.Int32,
    "collective_count": pl.Int64,
    "wait_ns": pl.Int64,
    "mean_wait_ns": pl.Float64,
    "mean_skew_ns": pl.Float64,
    "last_count": pl.Int64,
    "last_fraction": pl.Float64,
    "caused_wait_ns": pl.Int64,
    "caused_fraction": pl.Float64,
    "is_straggler": pl.Boolean,
    "uncompared_ns": pl.Int64,
    "is_cause": pl.Boolean,
    "role": pl.String,
    "cost_ns": pl.Int64,
}
_PER_STEP = {
    "step": pl.Int64,
    "rank": pl.Int32,
    "collective_count": pl.Int64,
    "wait_ns": pl.Int64,
    "mean_skew_ns": pl.Float64,
    "last_count": pl.Int64,
}


@dataclass(frozen=True, eq=False, repr=False)
class Stragglers(Result):
    """How long the ranks wait for each other in collectives.

        wait of a rank  time from the rank's start in a collective to the last rank's start, as in `collectives`
        skew of a rank  time from the first rank's start in a collective to the rank's start: longest wait - the rank's wait

    per_rank  one row per rank that recorded a collective which another rank also recorded, sorted by rank:

        rank              int32
        collective_count  int64    compared collectives
        wait_ns           int64    time that the rank waits for other ranks in these collectives
        mean_wait_ns      float64  mean wait per collective
        mean_skew_ns      float64  mean skew per collective
        last_count        int64    collectives in which this rank alone came last
        last_fraction     float64  0..1, last_count / collective_count
        caused_wait_ns    int64    time that the other ranks waited in the collectives in which this rank came last
        caused_fraction   float64  0..1, caused_wait_ns as a share of all waiting in the rank's collectives; null if no rank waits
        is_straggler      bool     whether the rank waits at most half as long as the median rank, and causes most of the
                                   waiting in its collectives
        uncompared_ns     int64    time in sends and receives, and in collectives that no other rank recorded
        is_cause          bool     whether the rank is a culprit; if waits are not traced to their causes, whether the rank is
                                   a straggler and `wait_ns + uncompared_ns` explains less than half of its skew
        role              str      culprit, victim or null, as in `wait_causes`; if waits are not traced, culprit if
                                   is_cause is true, else null
        cost_ns           int64    time that all ranks together wait because of this rank, as in `wait_causes`; null if
                                   waits are not traced

    Waits are traced to their causes in jobs whose ranks communicate in several groups, or send and receive messages.
    In other jobs, no tracing is needed: each rank communicates in only one group, so the last rank to arrive cannot be
    late because it waited for another rank.

    per_step  the same per step, sorted by step and rank; `step` is null for collectives outside all steps:

        step, rank, collective_count, wait_ns, mean_skew_ns, last_count

    findings  the stragglers, and collectives that could not be compared

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.stragglers(small_job()).answer
    'The other ranks wait 400 µs for rank 1, which is late.'
    """

    per_rank: pl.DataFrame
    per_step: pl.DataFrame
    findings: tuple[str, ...] = ()

    def candidates(self, count: int) -> list[int]:
        """Return at most `count` ranks that came last at least once, the worst rank first.

        Ranks are sorted by the waiting that they cause minus their own waiting. So a rank that is late only because it waited
        for another rank comes after that rank.
        """
        late = self.per_rank.filter(pl.col("last_count") > 0)
        net = pl.col("caused_wait_ns") - pl.col("wait_ns")
        return late.sort(net, "rank", descending=[True, False]).head(count)["rank"].to_list()


class _Partial(NamedTuple):
    communication: OfRank
    windows: list[int]
    available: tuple[str, ...]
    histories: Histories | None


def stragglers(
    trace: Trace,
    *,
    steps: Sequence[int] | None = None,
    annotation: str | None = None,
    executor: Executor = IN_PROCESS,
) -> Stragglers:
    """Compare when the ranks arrive at each collective: the rank that waits the least is late.

    Collectives are matched across ranks, and waits are measured on one clock, as in `collectives`. The communication
    kernels of all libraries and streams are included. In jobs without such kernels, the host annotations of gloo, MPI
    and UCC are used instead. Sends and receives between two ranks are not compared.

    Args:
        trace: the job.
        steps: count only collectives of these steps.
        annotation: name of host annotations to use as steps, numbered from 0.
        executor: processes each rank.

    Raises:
        InvalidOptionError: the step or annotation does not exist; the message lists the existing ones.

    Source: docs/reference/analyses/stragglers.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> ranks = holotrace.stragglers(small_job()).per_rank
    >>> ranks.select("rank", "wait_ns", "caused_wait_ns", "is_straggler").rows()
    [(0, 400000, 0, False), (1, 0, 400000, True)]
    """
    return plan(steps=steps, annotation=annotation).run(trace, executor)


def plan(
    *, steps: Sequence[int] | None = None, annotation: str | None = None, by_durations: bool = False
) -> Plan[_Partial, Stragglers]:
    """Return the two functions of `stragglers`: one runs on each rank, the other combines the results of the ranks.

    With `by_durations`, a rank's wait in a collective is the duration of its call minus that of the shortest call of
    any rank, as in HTA.
    """
    combine = partial(_combine, steps=steps, annotation=annotation, by_durations=by_durations)
    return Plan(partial(_one_rank, annotation=annotation, is_followed=not by_durations), combine)


def _combine(
    partials: dict[int, _Partial], *, steps: Sequence[int] | None, annotation: str | None, by_durations: bool
) -> Stragglers:
    _require_annotation(annotation, partials)
    _require_steps(steps, partials)
    timed, of_matching = _timed({rank: of_one.communication for rank, of_one in partials.items()}, by_durations)
    calls = timed.with_row_index("row").filter(
        pl.lit(value=True) if steps is None else pl.col("window").is_in(list(steps))
    )
    collectives = calls.filter(~IS_POINT_TO_POINT)
    compared = _compared(collectives)
    judged = _per_rank(compared, calls.join(compared, on="row", how="anti"))
    known_roles = _roles(partials, steps)
    per_rank = typed(_with_roles(judged, known_roles), _PER_RANK)
    return Stragglers(
        per_rank, _per_step(compared), _findings(partials, collectives, per_rank, known_roles, of_matching)
    )


def _timed(of_ranks: dict[int, OfRank], by_durations: bool) -> tuple[pl.DataFrame, tuple[str, ...]]:  # noqa: FBT001
    """Return the matched calls with their waits, and sentences about calls that could not be matched."""
    if by_durations:
        matching = match(of_ranks, sends=False)
        return waits_by_duration(matching.calls), matching.findings
    timed = timed_calls(of_ranks, sends=False)
    return timed.calls, timed.matching.findings


def _one_rank(rank_trace: RankTrace, *, annotation: str | None, is_followed: bool) -> _Partial:
    step_windows = windows(rank_trace, annotation)
    missing = annotation is not None and step_windows.is_empty()
    communication = of_rank(rank_trace, annotation)
    return _Partial(
        communication,
        step_windows["window"].to_list(),
        annotation_names(rank_trace) if missing else (),
        histories(rank_trace) if is_followed and _may_be_victim(communication.calls) else None,
    )


def _may_be_victim(calls: pl.DataFrame) -> bool:
    """Return whether the rank communicates in several groups, and so may be late because it waited in another group."""
    group = (
        pl.when(IS_POINT_TO_POINT)
        .then(pl.concat_str(pl.lit("p"), "peer", ignore_nulls=True))
        .otherwise(pl.col("group").cast(pl.String))
    )
    spent = calls.group_by(group.alias("with")).agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns"))["ns"]
    total, most = int(spent.sum()), max(spent.to_list(), default=0)
    has_messages = not calls.filter(IS_POINT_TO_POINT).is_empty()
    return has_messages or (len(spent) > 1 and total - most >= LEAST_ELSEWHERE * total)


def _roles(partials: dict[int, _Partial], steps: Sequence[int] | None) -> pl.DataFrame | None:
    """Return the table that `roles` computes, or None if waits are not traced to their causes."""
    known = {rank: of_one.histories for rank, of_one in partials.items() if of_one.histories is not None}
    if len(known) < 2:  # noqa: PLR2004 -- no other rank to wait for
        return None
    communicating = {rank: of_one.communication for rank, of_one in partials.items()}
    calls = with_call_rows(job_calls(communicating).calls, communicating)
    return roles(delay_costs(calls, known, steps), list(partials))


def _with_roles(judged: pl.DataFrame, known: pl.DataFrame | None) -> pl.DataFrame:
    if known is None:
        role = pl.when("is_cause").then(pl.lit(CULPRIT)).alias("role")
        return judged.with_columns(role, pl.lit(None, pl.Int64).alias("cost_ns"))
    joined = judged.join(known.select("rank", "role", "cost_ns"), on="rank", how="left", maintain_order="left")
    return joined.with_columns((pl.col("role") == CULPRIT).fill_null(value=False).alias("is_cause"))


def _require_annotation(annotation: str | None, partials: dict[int, _Partial]) -> None:
    if annotation is None or any(of_rank.windows for of_rank in partials.values()):
        return
    names = [name for of_rank in partials.values() for name in of_rank.available]
    raise InvalidOptionError.unknown([annotation], names, what="annotation")


def _require_steps(steps: Sequence[int] | None, partials: dict[int, _Partial]) -> None:
    available = {window for of_rank in partials.values() for window in of_rank.windows}
    unknown = sorted(set(steps or ()) - available)
    if unknown or (steps is not None and not steps):
        raise InvalidOptionError.unknown(unknown, available, what="step")


def _compared(collectives: pl.DataFrame) -> pl.DataFrame:
    """Return each rank's collectives that another rank also recorded, with the rank's wait and skew."""
    wait = pl.col("wait_ns")
    matched = collectives.filter(wait.is_not_null())
    return matched.with_columns(wait.sum().over("instance").alias("waited_by_all")).select(
        "row",
        "rank",
        "window",
        "wait_ns",
        (wait.max().over("instance") - wait).alias("skew_ns"),
        "waited_by_all",
        "is_last",
        pl.when("is_last").then("waited_by_all").otherwise(0).alias("caused_wait_ns"),
    )


def _per_rank(compared: pl.DataFrame, uncompared: pl.DataFrame) -> pl.DataFrame:
    sums = compared.group_by("rank").agg(
        pl.len().cast(pl.Int64).alias("collective_count"),
        pl.col("wait_ns").sum(),
        pl.col("wait_ns").mean().alias("mean_wait_ns"),
        pl.col("skew_ns").mean().alias("mean_skew_ns"),
        pl.col("is_last").sum().cast(pl.Int64).alias("last_count"),
        pl.col("caused_wait_ns", "waited_by_all", "skew_ns").sum(),
    )
    elsewhere = covered_by_group(uncompared, ["rank"], name="uncompared_ns")
    total = pl.col("waited_by_all")
    shares = sums.join(elsewhere, on="rank", how="left").with_columns(
        pl.col("uncompared_ns").fill_null(0),
        (pl.col("last_count") / pl.col("collective_count")).alias("last_fraction"),
        pl.when(total > 0).then(pl.col("caused_wait_ns") / total).alias("caused_fraction"),
    )
    waits_least = pl.col("mean_wait_ns") <= LEAST_WAIT * pl.col("mean_wait_ns").median()
    is_straggler = waits_least & (pl.col("caused_fraction") > MOST_CAUSED).fill_null(value=False)
    own_waiting = pl.col("wait_ns") + pl.col("uncompared_ns")
    is_cause = is_straggler & (own_waiting < MOST_EXPLAINED * pl.col("skew_ns"))
    judged = shares.with_columns(is_straggler.alias("is_straggler"), is_cause.alias("is_cause"))
    return judged.sort("rank")


def _per_step(compared: pl.DataFrame) -> pl.DataFrame:
    sums = compared.group_by(pl.col("window").alias("step"), "rank").agg(
        pl.len().alias("collective_count"),
        pl.col("wait_ns").sum(),
        pl.col("skew_ns").mean().alias("mean_skew_ns"),
        pl.col("is_last").sum().alias("last_count"),
    )
    return sums.select(pl.col(name).cast(kind) for name, kind in _PER_STEP.items()).sort("step", "rank")


def _findings(
    partials: dict[int, _Partial],
    collectives: pl.DataFrame,
    per_rank: pl.DataFrame,
    known_roles: pl.DataFrame | None,
    of_matching: tuple[str, ...],
) -> tuple[str, ...]:
    if per_rank.is_empty():
        reasons = of_matching if len(partials) > 1 and len(collectives) else ()
        return (*_nothing_compared(partials, collectives, known_roles), *reasons)
    causes = {} if known_roles is None else {row["rank"]: row for row in known_roles.iter_rows(named=True)}
    late = late_first(per_rank).head(_MOST_NAMED)
    late_sentences = [_late_sentence(row, causes.get(row["rank"])) for row in late.iter_rows(named=True)]
    return (*late_sentences, *_doubts(partials, collectives, per_rank), *of_matching)


def late_first(per_rank: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of late ranks: culprits, then ranks that only arrive last; in each group, the costliest first."""
    late = per_rank.filter(pl.col("is_straggler") | pl.col("is_cause"))
    order = ["is_cause", "cost_ns", "caused_wait_ns", "rank"]
    return late.sort(order, descending=[True, True, True, False], nulls_last=True)


def _late_sentence(row: dict[str, Any], cause: dict[str, Any] | None) -> str:
    if cause is not None and row["is_cause"]:
        return _culprit_sentence(cause)
    return (
        f"{late_clause(row)}: the other ranks waited {duration_text(row['caused_wait_ns'])} for it "
        f"({percent_text(row['caused_fraction'])} of all waiting in its collectives); it came last in "
        f"{row['last_count']:,} of {counted(row['collective_count'], 'collective')}{_doubt(row)}"
    )


def _culprit_sentence(cause: dict[str, Any]) -> str:
    return (
        f"rank {cause['rank']} is late: all ranks together waited {duration_text(cause['cost_ns'])} because of it "
        f"({percent_text(cause['cost_fraction'])} of all waiting); the largest cause is {cause_text(cause)}"
    )


def late_clause(row: dict[str, Any]) -> str:
    """Return "rank 3 is late" if this row of `per_rank` is a cause of waiting; otherwise "rank 3 arrives last"."""
    return f"rank {row['rank']} is late" if row["is_cause"] else f"rank {row['rank']} arrives last"


def _doubt(row: dict[str, Any]) -> str:
    if row["is_cause"]:
        return ""
    if row["role"] == VICTIM:
        return "; it is a victim: it is late only because it waited for other ranks first"
    return (
        f"; it also waits {duration_text(row['wait_ns'])} in these collectives and up to "
        f"{duration_text(row['uncompared_ns'])} in other communication, so another rank may be the cause"
    )


def _nothing_compared(
    partials: dict[int, _Partial], collectives: pl.DataFrame, known_roles: pl.DataFrame | None
) -> Iterator[str]:
    if len(partials) == 1:
        yield f"only rank {next(iter(partials))} was recorded; open all ranks of the job to compare their waiting"
        return
    waited = known_roles is not None and bool(known_roles["wait_ns"].sum())
    if known_roles is not None:
        culprits = known_roles.filter(role=CULPRIT).sort("cost_ns", "rank", descending=[True, False])
        yield from map(_culprit_sentence, culprits.head(_MOST_NAMED).iter_rows(named=True))
    communicating = collectives["rank"].n_unique()
    if communicating:
        others = "; wait_causes lists the causes of waiting in sends and receives" if waited else ""
        yield f"no collective was recorded on more than one rank ({communicating} of {len(partials)} ranks have collectives){others}"
    elif waited:
        yield "no rank has collectives; wait_causes lists the causes of waiting in sends and receives"
    elif any(len(of_one.communication.calls) for of_one in partials.values()):
        yield "no rank has collectives, and no waiting in sends and receives was found"
    else:
        yield "no collectives were recorded, so it is unknown whether ranks wait for each other"


def _doubts(partials: dict[int, _Partial], collectives: pl.DataFrame, per_rank: pl.DataFrame) -> Iterator[str]:
    alone = sorted(set(partials) - set(per_rank["rank"]))
    named = ", ".join(map(str, alone[:_MOST_NAMED])) + (", …" if len(alone) > _MOST_NAMED else "")
    if alone:
        yield f"no collective of rank{'s'[: len(alone) != 1]} {named} was also recorded on another rank"
    yield from matched_without_numbers(collectives)
