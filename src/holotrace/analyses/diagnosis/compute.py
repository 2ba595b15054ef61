"""Why is the job slow, and what should you do about it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from holotrace.analyses.collectives.compute import plan as collectives
from holotrace.analyses.diagnosis.headline import HEADLINE, headline
from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rank_examination import RankExamination, examined
from holotrace.analyses.diagnosis.ranking import EVIDENCE, PER_FINDING, Ranking, ranking
from holotrace.analyses.diagnosis.rules.all_rules import JOB_RULES, RULES
from holotrace.analyses.diagnosis.stakes.across_ranks import with_replays
from holotrace.analyses.parallelism.compute import plan as parallelism
from holotrace.analyses.wait_causes.compute import plan as wait_causes
from holotrace.errors import MissingDataError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

ANALYSES_OF_JOBS: dict[str, Callable[[], Plan[Any, Any]]] = {
    "wait_causes": wait_causes,
    "collectives": collectives,
    "parallelism": parallelism,
}
"""Rules about several ranks use the results of these analyses; the keys are the names of the analyses."""


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result):
    """The causes of lost time, ranked by cost, and what to do about each.

    All times are per steady step: warmup steps and steps that take far longer than the others are left out. Without
    steps, the whole recording counts as one step.

    headline     one row with the numbers that describe the job; most fractions are shares of the mean step:

        rank_count       int64
        step_count       int64    smallest number of steady steps of any rank; 0 if the recording has no steps
        step_ns          int64    mean length of a steady step, over all ranks
        step_std_ns      int64    standard deviation of the step lengths of each rank, averaged over the ranks
        busy_fraction    float64  0..1, time in which a device is busy; null if there is no device work
        unknown_fraction float64  0..1, time in which no recorded work runs, but unrecorded work may run: a graph replay, or
                                  work from before the recording
        exposed_fraction float64  0..1, time in which a rank communicates without computing (on its devices or, without
                                  device work, on its host)
        waiting_fraction float64  0..1, time in which ranks wait for other ranks; null if unknown
        waited_for_rank  int32    the rank that causes most of this waiting; null if no rank does
        mfu_fraction     float64  0..1: model FLOPs utilization of the steady steps, averaged over the ranks; null if unknown
        costed_fraction  float64  0..1, share of the compute time that is spent in operators whose FLOPs are known;
                                  `mfu_fraction` counts only these operators
        memory_peak_bytes      int64  highest memory peak of any device; null if not recorded
        memory_capacity_bytes  int64  memory size of that device; null if unknown
        device_name      str      null if unknown, or if the ranks differ
        main_work        str      the kernel that takes the most device time on most ranks; without device work, the
                                  operator that takes the most host time; null if unknown
        main_fraction    float64  0..1: share of the step that `main_work` takes
        main_source_line str      without device work: the user's function that runs `main_work`; null if unknown
        cut_off_count    int64    files that end early
        unread_count     int64    files whose device work cannot be read

    per_finding  one row per cause, the costliest first; causes of unknown cost come last:

        rule            str      section of docs/reference/analyses/diagnosis.md that describes the rule
        finding         str      what happens, in a sentence
        advice          str      what to do about it
        stake_ns        int64    upper bound on the time per step that a fix can save, averaged over all ranks; null if
                                 unknown. Each nanosecond is counted in at most one finding, so the costs of all
                                 findings add up to at most the length of the step
        stake_error_ns  int64    half the range of stake_ns over the replayed steps; null if fewer than two steps
                                 were replayed
        stake_fraction  float64  0..1 of the mean step
        basis           str      origin of stake_ns: `what-if` if the step was replayed without the cause; `bound` if it
                                 was not replayed, or if the replay assumes the best speed that kernels reach;
                                 `estimate` if only other jobs show the cost
        confidence      str      high, medium or low: how certain the cause is
        rank_count      int64    ranks on which the rule applies
        rank            int32    the rank that is the cause or, if no rank is, the rank that loses the most time
        module, operator, kernel, source_line  str  location of the cause; null if it is unknown or does not apply
        event_index     uint32   the first event to look at on that rank; null if none
        at_ns           int64    when that event began
        event_count     int64    events that cause the lost time, on all ranks and in all steps
        part_of         str      the rule whose finding already explains most of the lost time; null if there is none
        subject         str      distinguishes several findings of one rule; null if there is only one

    evidence     the numbers, one row per rule, subject and rank:

        rule, subject, rank  as above
        measured        float64  what the rule measured
        threshold       float64  the smallest value at which the rule applies
        unit            str      of measured and threshold
        claimed_ns      int64    time per step, on this rank, that this finding explains and no earlier finding explains
        explained_ns    int64    time per step, on this rank, that this finding explains; other findings may explain
                                 some of it, too
        saved_ns        int64    time by which a replay without the cause shortens a step of this rank; null if no
                                 replay limits the cost

    findings     rules that could not be checked, and what to record for them

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.diagnosis(small_job()).answer.split("; ")[0]
    'A step takes 1 ms, and the GPUs are busy 70.0 % of it'
    """

    headline: pl.DataFrame
    per_finding: pl.DataFrame
    evidence: pl.DataFrame
    findings: tuple[str, ...] = ()


def diagnosis(trace: Trace, *, executor: Executor = IN_PROCESS) -> Diagnosis:
    """Look for known causes of slow jobs, and rank the causes that apply by their cost.

    The cost of a cause is the time that is lost because of it. If a replay of the step without the cause saves less
    time than that, the cost is only what the replay saves. The replay is ignored if the cause is certain to cost all of
    the lost time.

    If several causes may explain the same time, it counts towards the cost of only one of them. Certain causes come
    first, then likely causes, then uncertain causes and the overhead of recording. Symptoms come last.

    Args:
        trace: the job.
        executor: processes each rank.

    Source: docs/reference/analyses/diagnosis.md lists all rules, each with its threshold, reason and source.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> result = holotrace.diagnosis(small_job())
    >>> result.per_finding.select("rule", "rank", "stake_ns").head(3).rows()
    [('device_synchronisation', 0, 260000), ('late_rank', 1, 200000), ('exposed_communication', 0, 100000)]
    """
    return with_replays(plan_for(trace).run(trace, executor), trace, executor)


def plan_for(trace: Trace) -> Plan[dict[str, Any], Diagnosis]:
    """Return the same as `plan`, but without the comparisons between ranks if the trace has only one rank."""
    return _plan(ANALYSES_OF_JOBS if len(trace.ranks) > 1 else {})


def plan() -> Plan[dict[str, Any], Diagnosis]:
    """Return the two functions of `diagnosis`: one runs on each rank, the other combines the results of the ranks."""
    return _plan(ANALYSES_OF_JOBS)


def _plan(compares: Mapping[str, Callable[[], Plan[Any, Any]]]) -> Plan[dict[str, Any], Diagnosis]:
    """Return a plan of `diagnosis` that includes these comparisons between ranks."""
    plans = {name: make() for name, make in compares.items()}
    one_rank = partial(_one_rank, parts={name: known.one_rank for name, known in plans.items()})
    return Plan(one_rank, partial(_combine, plans=plans))


def examination_plan() -> Plan[RankExamination, dict[int, RankExamination]]:
    """Return a plan that examines each rank separately; `diagnosed` combines the examinations into a diagnosis."""
    return Plan(partial(examined, rules=RULES), dict)


def diagnosed(ranks: Mapping[int, RankExamination], results: Mapping[str, Any]) -> Diagnosis:
    """Return the diagnosis, given the results of `examination_plan` and of `ANALYSES_OF_JOBS`."""
    evidence = JobEvidence(ranks, results)
    ranked: Ranking = ranking(evidence, RULES, JOB_RULES)
    return Diagnosis(
        pl.DataFrame([headline(evidence)], HEADLINE, orient="row"),
        pl.DataFrame(ranked.per_finding, PER_FINDING, orient="row"),
        pl.DataFrame(ranked.evidence, EVIDENCE, orient="row"),
        ranked.findings,
    )


def _one_rank(rank_trace: RankTrace, *, parts: Mapping[str, Any]) -> dict[str, Any]:
    answers = {name: _answer(part, rank_trace) for name, part in parts.items()}
    return {**answers, "examination": examined(rank_trace, rules=RULES)}


def _answer(part: Callable[[RankTrace], Any], rank_trace: RankTrace) -> Any:  # noqa: ANN401 -- any partial answer
    try:
        return part(rank_trace)
    except MissingDataError as error:
        return error


def _combine(answers: Mapping[int, Mapping[str, Any]], *, plans: Mapping[str, Plan[Any, Any]]) -> Diagnosis:
    ranks = {rank: of_rank["examination"] for rank, of_rank in answers.items()}
    results = {}
    for name, known in plans.items():
        with suppress(MissingDataError):
            results[name] = known.result_of({rank: of_rank[name] for rank, of_rank in answers.items()})
    return diagnosed(ranks, results)


def shown_findings(result: Diagnosis) -> Sequence[dict[str, Any]]:
    """Return the findings that are not part of another finding."""
    return result.per_finding.filter(pl.col("part_of").is_null()).to_dicts()
