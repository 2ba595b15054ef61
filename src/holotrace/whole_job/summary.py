"""Summarise a job: a verdict in one sentence, the diagnosis, and the answers to the first questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from holotrace.analyses.diagnosis.compute import ANALYSES_OF_JOBS, Diagnosis, diagnosed, examination_plan
from holotrace.analyses.diagnosis.stakes.across_ranks import with_replays
from holotrace.catalogue import ANALYSES, analysis
from holotrace.content_equality import EqualByContent
from holotrace.enrich.job.one_job import CUT_OFF_KINDS, Wholeness, file_facts, wholeness_from
from holotrace.enrich.steps.steps import steps
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.question import Analysis, Result
from holotrace.questions.result import MOST_ROWS, html_of, tables_of, text_of
from holotrace.questions.tables import print_view
from holotrace.schema import EventKind
from holotrace.store.health import loss_text
from holotrace.store.plan import Plan, run_together
from holotrace.store.trace import RankTrace, SkippedFile, Trace
from holotrace.units import duration_text

DIAGNOSIS = "diagnosis"
"""The question that the summary answers first."""

_EXAMINATION = "examination"
FIRST = ("temporal_breakdown", "kernel_breakdown", "communication_overlap", "idle_time")
"""The questions that the summary answers for jobs with GPU work, besides the diagnosis."""
FIRST_WITHOUT_GPU_WORK = ("critical_path", "step_time", "operators", "user_annotations")
"""The questions that the summary answers for jobs without GPU work, besides the diagnosis."""

MOST_RANKS_NAMED = 8
"""Maximum number of ranks that a finding names."""

MOST_JOBS_NAMED = 8
"""If the traces are from several jobs, a sentence replaces the verdict; it lists at most this many jobs."""

_CPU_SCHEMA = {
    "rank": pl.Int32,
    "event_count": pl.Int64,
    "operator_count": pl.Int64,
    "step_count": pl.Int64,
    "mean_step_ns": pl.Float64,
}


@dataclass(frozen=True, eq=False)
class Summary(EqualByContent):
    """The verdict on a job, and the results of the diagnosis and of other analyses.

    verdict   one sentence on the whole job: the answer of the diagnosis
    results   the results of the diagnosis and of the other analyses that ran, by name
    missing   the reasons why other analyses could not run, by name
    cpu_side  one row per rank: rank int32, event_count, operator_count, step_count int64, mean_step_ns float64, null
              without steps; empty if there is GPU work
    findings  the distinct findings of the analyses
    doubts    why the verdict may not cover the whole job: unrelated traces, or files that are cut off, unreadable or
              written by other programs
    ranks     the ranks that the results cover
    skipped   files that are missing from the results, with the reason

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> result = holotrace.summary(small_job())
    >>> result.ranks, list(result.results)[:3]
    ((0, 1), ['diagnosis', 'temporal_breakdown', 'kernel_breakdown'])
    """

    verdict: str
    results: dict[str, Result]
    missing: dict[str, str]
    cpu_side: pl.DataFrame
    findings: tuple[str, ...] = field(default_factory=tuple)
    doubts: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()

    @property
    def diagnosis(self) -> Diagnosis:
        """The diagnosis: why the job is slow, and what to do."""
        known: Diagnosis = self.results[DIAGNOSIS]  # type: ignore[assignment]
        return known

    @property
    def covers_one_job(self) -> bool:
        """Whether the traces are from one job and from PyTorch's profiler; if not, the diagnosis gives no verdict."""
        return self.verdict == self.diagnosis.answer

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects: tables as lists of rows, times in ns, fractions from 0 to 1."""
        return {
            "doubts": self.doubts,
            "verdict": self.verdict,
            "ranks": self.ranks,
            "analyses": {name: tables_of(result) for name, result in self.results.items()},
            "missing": self.missing,
            **tables_of(self),
            "findings": self.findings,
            "skipped_files": [{"path": file.path, "reason": file.reason} for file in self.skipped],
        }

    def __repr__(self) -> str:
        """Show the verdict, the names of the results, and the caveats."""
        return text_of(
            f"Summary: {self.verdict}", [f"results: {', '.join(self.results)}"], (*self.doubts, *self.findings)
        )

    def _repr_html_(self) -> str:
        """Show the verdict, the findings of the diagnosis, and the caveats in a notebook."""
        shown = print_view(analysis(DIAGNOSIS).views[0], self.diagnosis, MOST_ROWS)
        return html_of(self.verdict, shown, (*self.doubts, *self.findings))


def summary(trace: Trace, *, executor: Executor = IN_PROCESS) -> Summary:
    """Diagnose the job, sum up the result in one sentence, and run four other analyses.

    For a job without GPU work, these analyses are about the CPU, and `cpu_side` has the event counts and the mean step
    duration of each rank.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.summary(small_job()).verdict.split("; ")[0]
    'A step takes 1 ms, and the GPUs are busy 70.0 % of it'
    """
    whole = summary_of(trace, FIRST, executor=executor)
    if whole.cpu_side.is_empty():
        return whole
    return summary_of(trace, FIRST_WITHOUT_GPU_WORK, executor=executor)


def summary_of(trace: Trace, questions: Collection[str], *, executor: Executor = IN_PROCESS) -> Summary:
    """Return `summary` with the results of the diagnosis and of the questions with these names."""
    compares = ANALYSES_OF_JOBS if len(trace.ranks) > 1 else {}
    answers = run_together(trace, _plans({*questions, *compares}), executor)
    covered, missing = answers.trace, {name: str(error) for name, error in answers.missing.items()}
    known = {entry.name: answers.results[entry.name] for entry in ANALYSES if entry.name in answers.results}
    asked = {name: result for name, result in known.items() if name in questions}
    diagnosis = with_replays(diagnosed(answers.results[_EXAMINATION], known), covered, executor)
    results: dict[str, Result] = {DIAGNOSIS: diagnosis, **asked}
    whole = wholeness_from(answers.results["files"], covered)
    verdict, cpu_side = verdict_on(covered, results, whole, executor=executor)
    doubts = (*whole.sentences, *answers.results["losses"])
    ranks = tuple(covered.ranks)
    caveats = () if whole.is_foreign else _findings(results)
    return Summary(verdict, results, missing, cpu_side, caveats, doubts, ranks, covered.skipped)


def verdict_on(
    trace: Trace, results: Mapping[str, Any], whole: Wholeness, *, executor: Executor = IN_PROCESS
) -> tuple[str, pl.DataFrame]:
    """Return `verdict` and `cpu_side` of a `Summary`.

    `results` must contain at least the diagnosis.
    """
    known: Diagnosis = results[DIAGNOSIS]
    has_gpu_work = known.headline["busy_fraction"].null_count() == 0
    cpu_side = pl.DataFrame(schema=_CPU_SCHEMA) if has_gpu_work else _cpu_side(trace, executor)
    return verdict_of(known, whole), cpu_side


def verdict_of(known: Diagnosis, whole: Wholeness) -> str:
    """Return the answer of the diagnosis; for several jobs or another program's traces, say why there is none."""
    if whole.unrelated:
        return _of_different_jobs(whole.jobs)
    return _of_other_program(known) if whole.is_foreign else known.answer


def _of_other_program(known: Diagnosis) -> str:
    length_ns = known.headline["step_ns"][0]
    length = f"; the recording lasts {duration_text(length_ns)}" if length_ns else ""
    return f"This is not a trace of PyTorch's profiler, so no rule can say where the time goes{length}."


def _of_different_jobs(jobs: Sequence[str]) -> str:
    """Return a sentence that lists the jobs; it is shown instead of a verdict, which would mix the jobs."""
    count = f"{len(jobs):,} different jobs" if len(jobs) > 1 else "different jobs"
    more = f"; {len(jobs) - MOST_JOBS_NAMED:,} more" if len(jobs) > MOST_JOBS_NAMED else ""
    return f"These files belong to {count}, so no single verdict applies to all of them; open each job separately: {'; '.join(jobs[:MOST_JOBS_NAMED])}{more}."


def _plans(questions: Collection[str]) -> dict[str, Plan[Any, Any]]:
    """Return the plans that answer these questions and diagnose the job in one pass over the ranks."""
    analyses = {entry.name: entry.plan() for entry in ANALYSES if entry.name in questions and entry.name != DIAGNOSIS}
    return {**analyses, "losses": _LOSSES, "files": Plan(file_facts, dict), _EXAMINATION: examination_plan()}


def losses(trace: Trace, *, executor: Executor = IN_PROCESS) -> tuple[str, ...]:
    """Return one sentence about files with unreadable parts, if there are any.

    Files that end early are not included; `wholeness` reports them.
    """
    return _LOSSES.run(trace, executor)


def _lost_in_all(losses_of_ranks: Mapping[int, tuple[int, int] | None]) -> tuple[str, ...]:
    lost = {rank: losses for rank, losses in losses_of_ranks.items() if losses is not None}
    if not lost:
        return ()
    ranks = ", ".join(map(str, list(lost)[:MOST_RANKS_NAMED])) + (", …" if len(lost) > MOST_RANKS_NAMED else "")
    events, size = (sum(column) for column in zip(*lost.values(), strict=True))
    amount = f"{loss_text(events, size)} lost" if events or size else "the loss cannot be counted"
    count = f"{len(lost):,} of {len(losses_of_ranks):,} files" if len(losses_of_ranks) > 1 else "The file"
    return (
        f"{count} could be read only in part (rank{'' if len(lost) == 1 else 's'} {ranks}): {amount}; holotrace check says why.",
    )


def _losses_of_rank(rank_trace: RankTrace) -> tuple[int, int] | None:
    """Return the events and bytes lost in unreadable parts of a file; None if there are none."""
    dropped = [
        finding
        for finding in rank_trace.health.findings
        if finding.severity == "dropped" and finding.kind not in CUT_OFF_KINDS
    ]
    if not dropped:
        return None
    return sum(finding.events_lost for finding in dropped), sum(finding.bytes_lost for finding in dropped)


_LOSSES = Plan(_losses_of_rank, _lost_in_all)


def _findings(results: dict[str, Result]) -> tuple[str, ...]:
    """Return the findings of the analyses whose tables have rows, without duplicates.

    If all tables of an analysis are empty, its findings say only that data are missing.
    """
    with_rows = (result for result in results.values() if has_rows(result))
    return tuple(dict.fromkeys(finding for result in with_rows for finding in result.findings))


def shown_analyses(whole: Summary) -> list[Analysis]:
    """Return the analyses that ran; for a job without GPU work, only those whose tables have rows."""
    made = [analysis for analysis in ANALYSES if analysis.name in whole.results]
    return [analysis for analysis in made if whole.cpu_side.is_empty() or has_rows(whole.results[analysis.name])]


def has_rows(result: Result) -> bool:
    """Return whether any table of a result has rows."""
    return any(len(value) for value in vars(result).values() if isinstance(value, pl.DataFrame))


def _cpu_side(trace: Trace, executor: Executor) -> pl.DataFrame:
    rows = [{"rank": rank, **facts} for rank, facts in trace.map(_cpu_facts, executor).items()]
    return pl.DataFrame(rows, schema=_CPU_SCHEMA)


def _cpu_facts(rank_trace: RankTrace) -> dict[str, Any]:
    counts = rank_trace.event_counts()
    lengths = _step_lengths(rank_trace)
    return {
        "event_count": sum(counts.values()),
        "operator_count": counts.get(EventKind.CPU_OP, 0),
        "step_count": len(lengths),
        "mean_step_ns": lengths.mean(),
    }


def _step_lengths(rank_trace: RankTrace) -> pl.Series:
    """Return the duration of each step, from the earliest start to the latest end on all threads that mark the step."""
    length = pl.col("end_ns").max() - pl.col("start_ns").min()
    return steps(rank_trace).group_by("step").agg(length.alias("length_ns")).get_column("length_ns")
