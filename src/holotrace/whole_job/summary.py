"""All analyses at once, and the one sentence that sums them up."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from holotrace.analyses.stragglers.compute import Stragglers, late_clause, late_ranks, waited_clause
from holotrace.catalogue import ANALYSES
from holotrace.content_equality import EqualByContent
from holotrace.enrich.job.findings import ranks_text
from holotrace.enrich.job.one_job import CUT_OFF_KINDS, Wholeness, file_facts, wholeness_from
from holotrace.enrich.steps.steps import steps
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.question import Analysis, Result
from holotrace.questions.result import html_of, tables_of
from holotrace.recommendations.advice import Advice, advice_on
from holotrace.recommendations.facts import host_plan
from holotrace.schema import EventKind
from holotrace.store.health import loss_text
from holotrace.store.plan import Plan, run_together
from holotrace.store.trace import RankTrace, SkippedFile, Trace
from holotrace.units import duration_text

VERDICT_ANALYSES = ("temporal_breakdown", "idle_time", "communication_overlap", "stragglers")
"""The analyses behind the verdict; a job without GPU work has results only for the last one."""

MOSTLY = 0.5
"""A category with more than this share of the idle time counts as its cause."""

BUSY = 0.1
"""Devices that idle less than this share of the time are called busy."""

STANDS_OUT = 0.05
"""A rank stands out if its idle share exceeds the median rank's by this much."""

LATE_COMMUNICATION = 0.8
LATE_COMPUTATION = 1.05
FEWEST_RANKS = 3
"""A rank seems late if it communicates at most `LATE_COMMUNICATION` times as long as the median rank and computes at
least `LATE_COMPUTATION` times as long, among at least `FEWEST_RANKS` ranks: ranks that arrive early wait in their
collectives, and that waiting counts as communication."""

SLOW_STEP = 1.1
"""A rank stands out if its mean step is at least this many times the median rank's."""

MOST_RANKS_NAMED = 8
"""A finding names at most this many ranks, the first ones."""

_CAUSES = {
    "host_wait": "mostly waiting for the host",
    "kernel_wait": "mostly in short gaps between kernels",
    "other": "mostly in long waits between a kernel's launch and its start",
}
_CPU_SCHEMA = {
    "rank": pl.Int32,
    "event_count": pl.Int64,
    "operator_count": pl.Int64,
    "step_count": pl.Int64,
    "mean_step_ns": pl.Float64,
}


@dataclass(frozen=True, eq=False)
class Summary(EqualByContent):
    """The results of all analyses.

    verdict   one sentence on the whole job
    results   the result of each analysis that could run, by name, in the order of the catalogue
    missing   why the others could not run, by name
    cpu_side  one row per rank: rank int32, event_count, operator_count, step_count int64, mean_step_ns float64, null
              without steps; empty if there is GPU work
    advice    what to try first
    findings  the distinct findings of the analyses
    doubts    why the verdict may not cover the whole job: unrelated traces, files cut off, unreadable or read in part
    ranks     the ranks that the results cover
    skipped   files that are missing from the results, with the reason
    """

    verdict: str
    results: dict[str, Result]
    missing: dict[str, str]
    cpu_side: pl.DataFrame
    advice: Advice
    findings: tuple[str, ...] = field(default_factory=tuple)
    doubts: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python: tables as lists of rows, times in ns, shares 0 to 1."""
        return {
            "doubts": self.doubts,
            "verdict": self.verdict,
            "ranks": self.ranks,
            "analyses": {name: tables_of(result) for name, result in self.results.items()},
            "missing": self.missing,
            **tables_of(self),
            "advice": tables_of(self.advice),
            "findings": self.findings,
            "skipped_files": [{"path": file.path, "reason": file.reason} for file in self.skipped],
        }

    def _repr_html_(self) -> str:
        """Show the verdict, what to try first, and the caveats in a notebook."""
        return html_of(self.verdict, self.advice.shown(), (*self.doubts, *self.findings))


def summary(trace: Trace, *, executor: Executor = IN_PROCESS) -> Summary:
    """Run every analysis of the catalogue, and sum up what matters in one sentence.

    A job without GPU work gets the CPU side instead: the event counts and mean step of each rank.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.summary(small_job()).verdict.split("; ")[2]
    'rank 1 is late: the others together wait 400 µs for it.'
    """
    answers = run_together(trace, _plans(), executor)
    covered, missing = answers.trace, {name: str(error) for name, error in answers.missing.items()}
    results = {entry.name: answers.results[entry.name] for entry in ANALYSES if entry.name not in missing}
    tips, whole = advice_on(answers.results["hosts"], results), wholeness_from(answers.results["files"], covered)
    verdict, cpu_side = verdict_on(covered, results, whole, executor=executor)
    doubts = (*whole.sentences, *answers.results["losses"])
    ranks = tuple(covered.ranks)
    return Summary(verdict, results, missing, cpu_side, tips, _findings(results), doubts, ranks, covered.skipped)


def verdict_on(
    trace: Trace, results: Mapping[str, Any], whole: Wholeness, *, executor: Executor = IN_PROCESS
) -> tuple[str, pl.DataFrame]:
    """Return `verdict` and `cpu_side` of a `Summary`.

    `results` holds at least those of `VERDICT_ANALYSES`; a job without GPU work has no temporal breakdown.
    """
    has_gpu_work = "temporal_breakdown" in results
    cpu_side = pl.DataFrame(schema=_CPU_SCHEMA) if has_gpu_work else _cpu_side(trace, executor)
    verdict = (
        _gpu_verdict(results) if has_gpu_work else _cpu_verdict(cpu_side, results.get("stragglers"), whole.cpu_only)
    )
    if whole.unrelated:
        verdict = f"Taken together, though they do not look like one job: {verdict[:1].lower()}{verdict[1:]}"
    return verdict, cpu_side


def _plans() -> dict[str, Plan[Any, Any]]:
    """Return all plans, computed in one pass over the ranks."""
    analyses = {entry.name: entry.plan() for entry in ANALYSES}
    return {**analyses, "losses": _LOSSES, "files": Plan(file_facts, dict), "hosts": host_plan()}


def losses(trace: Trace, *, executor: Executor = IN_PROCESS) -> tuple[str, ...]:
    """Say which files were read only in part, and what is lost; `wholeness` lists files that end too early."""
    return _LOSSES.run(trace, executor)


def _lost_in_all(losses_of_ranks: Mapping[int, tuple[int, int] | None]) -> tuple[str, ...]:
    lost = {rank: losses for rank, losses in losses_of_ranks.items() if losses is not None}
    if not lost:
        return ()
    ranks = ", ".join(map(str, list(lost)[:MOST_RANKS_NAMED])) + (", …" if len(lost) > MOST_RANKS_NAMED else "")
    events, size = (sum(column) for column in zip(*lost.values(), strict=True))
    amount = f"{loss_text(events, size)} lost" if events or size else "the loss cannot be counted"
    count = f"{len(lost):,} of {len(losses_of_ranks):,} files" if len(losses_of_ranks) > 1 else "The file"
    return (f"{count} could be read only in part (rank {ranks}): {amount}; holotrace check says why.",)


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
    """Return the distinct findings of analyses with rows; those of the others only say what the job does not have."""
    with_rows = (result for result in results.values() if _has_rows(result))
    return tuple(dict.fromkeys(finding for result in with_rows for finding in result.findings))


def shown_analyses(whole: Summary) -> list[Analysis]:
    """Return the analyses that ran; for a job without GPU work, those with rows."""
    made = [analysis for analysis in ANALYSES if analysis.name in whole.results]
    return [analysis for analysis in made if whole.cpu_side.is_empty() or _has_rows(whole.results[analysis.name])]


def _has_rows(result: Result) -> bool:
    return any(len(value) for value in vars(result).values() if isinstance(value, pl.DataFrame))


def _gpu_verdict(results: Mapping[str, Any]) -> str:
    per_device = results["temporal_breakdown"].per_device
    clauses = [
        _idle_clause(per_device, results["idle_time"].per_device),
        _communication_clause(per_device, results["communication_overlap"].per_rank),
        _straggler_clause(results.get("stragglers"), _recorded_ns(per_device))
        or _late_clause(results, per_device)
        or _rank_clause(per_device),
    ]
    return "; ".join(filter(None, clauses)) + "."


def _idle_clause(per_device: pl.DataFrame, idle: pl.DataFrame) -> str:
    share = _ratio(per_device, "idle_ns", "window_ns")
    subject, verb = ("The GPU", "is") if len(per_device) == 1 else ("The GPUs", "are")
    if share < BUSY:
        return f"{subject} {verb} busy {_percent(1 - share)} of the time"
    return f"{subject} {verb} idle {_percent(share)} of the time, {_cause(idle)}"


def _cause(idle: pl.DataFrame) -> str:
    total = _sum(idle, "idle_ns")
    by_category = idle.group_by("category").agg(pl.col("idle_ns").sum()).sort("idle_ns", "category", descending=True)
    category, longest = by_category.row(0) if len(by_category) else ("", 0)
    return _CAUSES[category] if longest > MOSTLY * total else "for no single reason"


def _communication_clause(per_device: pl.DataFrame, per_rank: pl.DataFrame) -> str:
    window, communication = _sum(per_device, "window_ns"), _sum(per_rank, "communication_ns")
    if not communication or not window:
        computing = f"computation takes {_percent(_ratio(per_device, 'computation_ns', 'window_ns'))}"
        return f"{computing}, and no rank communicates" if len(per_rank) > 1 else computing
    hidden = _ratio(per_rank, "overlap_ns", "communication_ns")
    part = f"{_percent(hidden)} of it is" if hidden else "none of it is"
    return f"communication takes {_percent(communication / window)} and {part} hidden behind computation"


def _recorded_ns(per_device: pl.DataFrame) -> float:
    """Return how long the ranks worked, on average."""
    windows = per_device.group_by("rank").agg(pl.col("window_ns").max())["window_ns"].to_list()
    return statistics.fmean(windows) if windows else 0.0


def _straggler_clause(result: Stragglers | None, recorded_ns: float) -> str:
    """Name the rank that the others wait for in their collectives, if it is known and matters."""
    late = [] if result is None else late_ranks(result.per_rank, recorded_ns)
    if not late:
        return ""
    doubt = "" if late[0]["is_cause"] else ", though it may itself wait for another rank"
    return f"{late_clause(late[0])}: {waited_clause(late[0])}{doubt}"


def _late_clause(results: Mapping[str, Any], per_device: pl.DataFrame) -> str:
    """Name the rank that computes longer than the others while they spend more time in their collectives.

    It uses sums alone, for jobs whose collectives cannot be compared one by one.
    """
    compared = results.get("stragglers")
    if compared is not None and len(compared.per_rank):
        return ""
    per_rank = results["communication_overlap"].per_rank
    computing = per_device.group_by("rank").agg(pl.col("computation_ns").sum())
    ranks = per_rank.filter(pl.col("communication_ns") > 0).join(computing, on="rank").sort("communication_ns", "rank")
    if len(ranks) < FEWEST_RANKS:
        return ""
    first = ranks.row(0, named=True)
    waits_least = first["communication_ns"] <= LATE_COMMUNICATION * statistics.median(ranks["communication_ns"])
    computes_longer = first["computation_ns"] >= LATE_COMPUTATION * statistics.median(ranks["computation_ns"])
    if not (waits_least and computes_longer):
        return ""
    return f"rank {first['rank']} computes longer and communicates least, so the others seem to wait for it"


def _rank_clause(per_device: pl.DataFrame) -> str:
    sums = per_device.group_by("rank").agg(pl.col("idle_ns", "window_ns").sum()).filter(pl.col("window_ns") > 0)
    shares = {rank: idle / window for rank, idle, window in sums.sort("rank").iter_rows()}
    worst = max(shares, key=shares.__getitem__, default=None)
    if worst is None or shares[worst] - statistics.median(shares.values()) < STANDS_OUT:
        return ""
    return f"rank {worst} is the most idle ({_percent(shares[worst])})"


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
    """Return the length of each step, over all threads that mark it."""
    length = pl.col("end_ns").max() - pl.col("start_ns").min()
    return steps(rank_trace).group_by("step").agg(length.alias("length_ns")).get_column("length_ns")


def _cpu_verdict(cpu_side: pl.DataFrame, stragglers: Stragglers | None, cut_off: tuple[int, ...]) -> str:
    """Say that there is no GPU work, what to switch on, and what the CPU side shows.

    Files that are `cut_off` may have lost their GPU work, which comes last in a file.
    """
    clauses = [
        _no_gpu_work(len(cpu_side), cut_off),
        f"the CPU side holds {_sum(cpu_side, 'event_count'):,} events and {_steps_text(cpu_side)}",
        _straggler_clause(stragglers, _stepped_ns(cpu_side)) or _slow_rank_clause(cpu_side),
    ]
    return "; ".join(filter(None, clauses)) + "."


def _stepped_ns(cpu_side: pl.DataFrame) -> float:
    """Return how long the steps of a rank took, on average over the ranks that have any."""
    lengths = [count * mean_ns for count, mean_ns in _means(cpu_side).values()]
    return statistics.fmean(lengths) if lengths else 0.0


def _no_gpu_work(ranks: int, cut_off: tuple[int, ...]) -> str:
    where = "the one rank" if ranks == 1 else f"any of the {ranks:,} ranks"
    if not cut_off:
        why = "this job ran on the CPU, or was recorded without ProfilerActivity.CUDA"
        return f"No GPU work was recorded on {where}: {why}"
    files = "its file is" if ranks == 1 else f"the files of {ranks_text(list(cut_off))} are"
    return f"No GPU work could be read on {where}: {files} cut off, and GPU work may have followed"


def _steps_text(cpu_side: pl.DataFrame) -> str:
    count = _sum(cpu_side, "step_count")
    if not count:
        return "no profiler steps"
    total_ns = sum(number * mean_ns for number, mean_ns in _means(cpu_side).values())
    return f"{count:,} step{'' if count == 1 else 's'} of {duration_text(total_ns / count)} on average"


def _slow_rank_clause(cpu_side: pl.DataFrame) -> str:
    means = {rank: mean_ns for rank, (_, mean_ns) in _means(cpu_side).items()}
    slowest = max(means, key=means.__getitem__, default=None)
    if slowest is None or len(means) == 1 or means[slowest] < SLOW_STEP * statistics.median(means.values()):
        return ""
    return f"those of rank {slowest} are the longest ({duration_text(means[slowest])})"


def _means(cpu_side: pl.DataFrame) -> dict[int, tuple[int, float]]:
    """Return {rank: (number of steps, their mean length)} of the ranks that have steps."""
    stepping = cpu_side.drop_nulls("mean_step_ns").select("rank", "step_count", "mean_step_ns")
    return {rank: (count, mean_ns) for rank, count, mean_ns in stepping.iter_rows()}


def _ratio(table: pl.DataFrame, part: str, whole: str) -> float:
    total = _sum(table, whole)
    return _sum(table, part) / total if total else 0.0


def _sum(table: pl.DataFrame, column: str) -> int:
    return int(table.get_column(column).sum())


def _percent(fraction: float) -> str:
    rounded = round(100 * fraction)
    return f"{rounded} %" if rounded or not fraction else "less than 1 %"
