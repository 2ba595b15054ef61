"""Turn the cases of all ranks into findings, ranked by cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rule import Delay, JobCase, JobRule, RankCase, Rule
from holotrace.analyses.diagnosis.rules.needs import ONLY_THE_HOST
from holotrace.enrich.job.findings import joined_findings

PER_FINDING = pl.Schema(
    {
        "rule": pl.String(),
        "finding": pl.String(),
        "advice": pl.String(),
        "stake_ns": pl.Int64(),
        "stake_error_ns": pl.Int64(),
        "stake_fraction": pl.Float64(),
        "basis": pl.String(),
        "confidence": pl.String(),
        "rank_count": pl.Int64(),
        "rank": pl.Int32(),
        "module": pl.String(),
        "operator": pl.String(),
        "kernel": pl.String(),
        "source_line": pl.String(),
        "event_index": pl.UInt32(),
        "at_ns": pl.Int64(),
        "event_count": pl.Int64(),
        "part_of": pl.String(),
        "subject": pl.String(),
    }
)
"""Columns of `Diagnosis.per_finding`."""

EVIDENCE = pl.Schema(
    {
        "rule": pl.String(),
        "subject": pl.String(),
        "rank": pl.Int32(),
        "measured": pl.Float64(),
        "threshold": pl.Float64(),
        "unit": pl.String(),
        "claimed_ns": pl.Int64(),
        "explained_ns": pl.Int64(),
        "saved_ns": pl.Int64(),
    }
)
"""Columns of `Diagnosis.evidence`."""

LEAST_COST = 0.005
"""Findings that cost less than this share of the step are left out, because steps of most jobs vary by more."""

LEAST_COST_BETWEEN_RANKS = 0.02
"""Findings about several ranks are left out if they cost less than this share of the step. The limit is higher than
`LEAST_COST` because ranks always wait a little for each other."""

_WEIGHTS = {"jitter": 0.25, "exposed_communication": 0.5, "exposed_on_one_rank": 0.5}
"""For sorting, the costs of these findings are multiplied by these factors, because the full cost cannot be saved: no
single change ends jitter, and ranks must exchange data anyway. As a result, causes that can be removed come first."""

ABOUT_RECORDING = frozenset({"slow_recording", "profiler_overhead"})
"""Rules about the overhead of recording the trace; their findings come after the findings about the job itself."""

_MOST_NAMED = 4
"""A caveat names at most this many of the rules that could not be checked, and counts the others."""

_MOST_OF_WAITING = 2
"""A case can be the cause of a rank's delay if its cost is at most this multiple of the delay.

If its cost is higher, it can be the cause only if it costs at least twice the median cost of the same cause on the
other ranks.
"""

_ABSORBED = 0.2
"""Several findings may explain the same time, but only one of them claims it. If other findings leave less than this
share of the explained time to a finding, it is shown as a part of the finding that claimed most of this time."""


class Ranking(NamedTuple):
    """Rows of `PER_FINDING` and `EVIDENCE`, and sentences about rules that could not be checked."""

    per_finding: list[dict[str, Any]]
    evidence: list[dict[str, Any]]
    findings: tuple[str, ...]


class _Group(NamedTuple):
    """All cases of one rule and subject, the costliest rank first.

    culprit  the rank that causes the cases; None if no single rank causes them
    delays   by late rank: the length of its delay, and the lines of code that cause it
    """

    rule: Rule | JobRule
    subject: str
    cases: list[RankCase]
    culprit: int | None
    delays: Mapping[int, Delay]


def ranking(evidence: JobEvidence, rules: Sequence[Rule], job_rules: Sequence[JobRule]) -> Ranking:
    """Return the findings of all rules, the costliest first."""
    groups = _groups(evidence, _rank_groups(evidence, rules), _job_cases(evidence, job_rules))
    rows = [(group, _finding(group, evidence)) for group in groups]
    kept = _with_their_whole([(group, row) for group, row in rows if _matters(group, row)])
    kept.sort(key=lambda pair: (*rank_of(pair[1]), -weight(pair[1]["rule"]) * _sorted_ns(*pair)))
    return Ranking(
        [row for _, row in kept],
        [numbers for group, _ in kept for numbers in _numbers(group)],
        _not_checked(evidence, job_rules),
    )


def weight(rule: str) -> float:
    """Return the factor by which a finding's cost is multiplied for sorting."""
    return _WEIGHTS.get(rule, 1.0)


def rank_of(row: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return a sort key: findings about the job, then about the recording; last, findings that are part of another."""
    return row["part_of"] is not None, row["rule"] in ABOUT_RECORDING


def _sorted_ns(group: _Group, row: Mapping[str, Any]) -> float:
    """Return the cost by which a finding is sorted; if its cost is unknown, the cost expected in later steps."""
    later_ns: float = group.cases[0].words.get("later_ns", 0)
    return later_ns if row["stake_ns"] is None else row["stake_ns"]


def _rank_groups(evidence: JobEvidence, rules: Sequence[Rule]) -> list[_Group]:
    groups = []
    for rule in rules:
        by_subject: dict[str, list[RankCase]] = {}
        for of_rank in evidence.ranks.values():
            for subject, case in of_rank.cases.get(rule.name, {}).items():
                by_subject.setdefault(subject, []).append(case)
        groups += [_Group(rule, subject, _costliest_first(cases), None, {}) for subject, cases in by_subject.items()]
    return groups


def _groups(
    evidence: JobEvidence, of_ranks: Sequence[_Group], found: Sequence[tuple[JobRule, JobCase]]
) -> list[_Group]:
    """Return all groups with the costs of their cases.

    The findings about several ranks divide the exposed communication of each rank among themselves, one finding after
    the other (see `_job_groups`). Findings that are too cheap to report get their part last.
    """
    last: set[int] = set()
    while True:
        of_job = _job_groups(evidence, found, last)
        alone, of_delays = _without_shared(of_ranks, of_job, len(evidence.ranks))
        with_delays = [_with_delays(group, evidence, alone, own) for group, own in zip(of_job, of_delays, strict=True)]
        shares = [_stake_fraction(group.cases, evidence) for group in with_delays]
        small = (number for number, share in enumerate(shares) if (share or 0) < LEAST_COST_BETWEEN_RANKS)
        first = next((number for number in small if number not in last), None)
        if first is None:
            return [*with_delays, *alone]
        last.add(first)


def _job_cases(evidence: JobEvidence, rules: Sequence[JobRule]) -> list[tuple[JobRule, JobCase]]:
    """Return the cases found by rules about several ranks, sorted by the rule's precedence and then by falling cost."""
    found = [
        (rule, case)
        for rule in rules
        if rule.needs(evidence) is None
        for case in rule.check(evidence)
        if case.value >= rule.threshold
    ]
    return sorted(found, key=lambda pair: (pair[0].precedence, -sum(pair[1].cost_ns.values())))


def _job_groups(evidence: JobEvidence, found: Sequence[tuple[JobRule, JobCase]], last: Collection[int]) -> list[_Group]:
    """Return a group for each case, in the same order; cases with indices in `last` claim time after the others.

    On each rank, all cases together claim at most the rank's exposed communication. This limit does not apply to the
    `else_ns` of a case, which is other time; it is added to the cost of the case.
    """
    left = evidence.exposed_ns
    groups: dict[int, _Group] = {}
    for number in sorted(range(len(found)), key=lambda number: number in last):
        rule, case = found[number]
        cases = [_claimed(case, rank, cost_ns, left) for rank, cost_ns in case.cost_ns.items()]
        groups[number] = _Group(rule, case.subject, _costliest_first(cases), case.rank, _delays(case, cases))
    return [groups[number] for number in range(len(found))]


def _delays(case: JobCase, cases: Sequence[RankCase]) -> Mapping[int, Delay]:
    """Return the delay of each late rank: it is as long as the longest wait for this rank."""
    if case.rank is None:
        return case.delays
    lines = {case.place.source_line, *case.words.get("lines", ())} - {None}
    longest_ns = max((waiting.cost_ns for waiting in cases), default=0.0)
    return {case.rank: Delay(longest_ns, frozenset(lines))}


def _without_shared(
    groups: Sequence[_Group], of_job: Sequence[_Group], rank_count: int
) -> tuple[list[_Group], list[list[RankCase]]]:
    """Remove the cases that cause the delay of a late rank from `groups`.

    Otherwise, two findings would report the same delay: one for the late rank, and one for the ranks that wait for it.

    Returns:
        Two values: the groups with the other cases; for each finding in `of_job`, the removed cases that cause the
        delays in this finding.
    """
    left = []
    of_delays: list[list[RankCase]] = [[] for _ in of_job]
    for group in groups:
        kept: list[RankCase] = []
        for case in group.cases:
            elsewhere_ns = _elsewhere_ns(group, case, rank_count)
            late = next(
                (
                    number
                    for number, other in enumerate(of_job)
                    if _is_delay(other, group.rule.name, case, elsewhere_ns)
                ),
                None,
            )
            (kept if late is None else of_delays[late]).append(case)
        if kept:
            left.append(group._replace(cases=kept))
    return left, of_delays


def _elsewhere_ns(group: _Group, case: RankCase, rank_count: int) -> float:
    """Return the median cost of the same cause on the other ranks."""
    costs = [other.cost_ns for other in group.cases if other.rank != case.rank]
    missing = max(0, rank_count - 1 - len(costs))
    return median([*costs, *[0.0] * missing]) if costs or missing else 0.0


def _is_delay(late: _Group, rule: str, case: RankCase, elsewhere_ns: float) -> bool:
    """Return whether a case that a rule found on a late rank is the cause of the rank's delay.

    The case must name a line of code that delays the rank. If lines were not recorded, the case must instead have the
    same kind of cause as the delay. In addition, the cost of the case must be at most twice the length of the delay, or
    at least twice the median cost of the same cause on the other ranks.
    """
    delay = late.delays.get(case.rank)
    is_same_kind = case.place.source_line is None and late.cases[0].words.get("kind") == rule
    if delay is None or not (is_same_kind or case.place.source_line in delay.lines):
        return False
    return case.cost_ns <= _MOST_OF_WAITING * delay.own_ns or elsewhere_ns <= case.cost_ns / 2


def _with_delays(group: _Group, evidence: JobEvidence, of_ranks: Sequence[_Group], found: Sequence[RankCase]) -> _Group:
    """Add to each late rank's cost the time that the rank itself loses to its delay, as measured by other rules.

    For a rank whose loss no rule has measured, add the length of its delay, but at most the part of its step that is
    neither exposed communication nor claimed by other findings.
    """
    known = {case.rank for case in found}
    missing = [rank for rank in group.delays if rank not in known]
    cases = {case.rank: case for case in group.cases}
    for own in [*found, *(_own_delay(group, rank, evidence, of_ranks) for rank in missing)]:
        cases[own.rank] = _together(cases[own.rank], own) if own.rank in cases else own
    return group._replace(cases=list(cases.values()))


def _own_delay(group: _Group, rank: int, evidence: JobEvidence, of_ranks: Sequence[_Group]) -> RankCase:
    numbers, first = evidence.ranks[rank].numbers, group.cases[0]
    claimed = sum(case.cost_ns for other in of_ranks for case in other.cases if case.rank == rank)
    free_ns = max(0.0, numbers.step_ns - numbers.exposed_ns - claimed)
    own_ns = min(free_ns, group.delays[rank].own_ns)
    return RankCase(rank, first.value, own_ns, own_ns, None, 0, first.place, first.words)


def _together(waiting: RankCase, own: RankCase) -> RankCase:
    """Add the cost of a rank's own delay to the case about the time that this rank waits for other ranks."""
    cost_ns, explained_ns = waiting.cost_ns + _stake_ns(own), waiting.explained_ns + own.explained_ns
    return replace(waiting, cost_ns=cost_ns, explained_ns=explained_ns, count=waiting.count + own.count, saved_ns=None)


def _claimed(case: JobCase, rank: int, cost_ns: float, left: dict[int, float]) -> RankCase:
    claimed = max(0.0, min(cost_ns, left.get(rank, 0.0)))
    left[rank] = left.get(rank, 0.0) - claimed
    more_ns = case.else_ns.get(rank, 0.0)
    return RankCase(rank, case.value, claimed + more_ns, cost_ns + more_ns, None, case.count, case.place, case.words)


def _costliest_first(cases: Sequence[RankCase]) -> list[RankCase]:
    return sorted(cases, key=lambda case: (-case.cost_ns, -case.explained_ns, case.rank))


def _finding(group: _Group, evidence: JobEvidence) -> dict[str, Any]:
    rule, first = group.rule, group.cases[0]
    said = rule.say(group.cases)
    place = first.place
    return {
        "rule": rule.name,
        "finding": said.what if evidence.has_steps else said.what.replace(" per step", ""),
        "advice": _possible(said.advice, evidence),
        "stake_ns": round(_cost_ns(group.cases, evidence)) if _is_costed(group.cases) else None,
        "stake_error_ns": None,
        "stake_fraction": _stake_fraction(group.cases, evidence),
        "basis": _basis(group.cases),
        "confidence": first.words.get("confidence", rule.confidence),
        "rank_count": len({case.rank for case in group.cases}),
        "rank": first.rank if group.culprit is None else group.culprit,
        **place._asdict(),
        "event_count": sum(case.count for case in group.cases),
        "part_of": _absorber(group.cases),
        "subject": group.subject or None,
    }


_COMPILE = "torch.compile"
_TOO_NEW = f"{_COMPILE} needs PyTorch 2.0, but this job used an older version."


def _possible(advice: str, evidence: JobEvidence) -> str:
    """Return the advice; if it mentions torch.compile but the job's PyTorch lacks it, add a sentence that says so."""
    is_old = any(of_rank.numbers.is_before_compile for of_rank in evidence.ranks.values())
    return f"{advice} {_TOO_NEW}" if is_old and _COMPILE in advice and "PyTorch 2.0" not in advice else advice


def _cost_ns(cases: Sequence[RankCase], evidence: JobEvidence) -> float:
    return sum(_stake_ns(case) for case in cases) / len(evidence.ranks)


def _is_costed(cases: Sequence[RankCase]) -> bool:
    return any(case.explained_ns > 0 for case in cases)


def _stake_fraction(cases: Sequence[RankCase], evidence: JobEvidence) -> float | None:
    """Return the cost as a share of the mean step; None if it is unknown."""
    return _cost_ns(cases, evidence) / evidence.step_ns if _is_costed(cases) and evidence.step_ns else None


def _basis(cases: Sequence[RankCase]) -> str:
    if any(case.is_estimate for case in cases):
        return "estimate"
    return "bound" if any(case.saved_ns is None or case.is_at_most for case in cases) else "what-if"


def _stake_ns(case: RankCase) -> float:
    """Return how much fixing the case saves: as much as the replay predicts, but at most the cost of the case."""
    return case.cost_ns if case.saved_ns is None else max(0.0, min(case.cost_ns, case.saved_ns))


def _absorber(cases: Sequence[RankCase]) -> str | None:
    claimed, explained = (sum(getattr(case, name) for case in cases) for name in ("cost_ns", "explained_ns"))
    if not explained or claimed >= _ABSORBED * explained:
        return None
    known = (case.absorbed_by for case in cases if case.absorbed_by not in ABOUT_RECORDING)
    return next(filter(None, known), None)


def _with_their_whole(kept: Sequence[tuple[_Group, dict[str, Any]]]) -> list[tuple[_Group, dict[str, Any]]]:
    """Drop each finding that is part of another finding if `kept` does not contain that other finding."""
    whole = {row["rule"] for _, row in kept if row["part_of"] is None}
    return [(group, row) for group, row in kept if row["part_of"] is None or row["part_of"] in whole]


def _matters(group: _Group, row: Mapping[str, Any]) -> bool:
    least = LEAST_COST_BETWEEN_RANKS if isinstance(group.rule, JobRule) else LEAST_COST
    return row["stake_fraction"] is None or row["part_of"] is not None or row["stake_fraction"] >= least


def _numbers(group: _Group) -> list[dict[str, Any]]:
    return [
        {
            "rule": group.rule.name,
            "subject": group.subject or None,
            "rank": case.rank,
            "measured": case.value,
            "threshold": group.rule.threshold,
            "unit": group.rule.unit,
            "claimed_ns": round(case.cost_ns),
            "explained_ns": round(case.explained_ns),
            "saved_ns": None if case.saved_ns is None else round(case.saved_ns),
        }
        for case in group.cases
    ]


def _not_checked(evidence: JobEvidence, job_rules: Sequence[JobRule]) -> tuple[str, ...]:
    """Return, for each kind of missing data, a sentence that names the rules that need this data."""
    of_ranks = {
        rank: [*filter(None, [of_rank.left_out]), *_by_need(of_rank.not_checked)]
        for rank, of_rank in evidence.ranks.items()
    }
    missing = {rule.name: sentence for rule in job_rules if (sentence := rule.needs(evidence))}
    return (*joined_findings(of_ranks), *_by_need(missing))


def _by_need(not_checked: Mapping[str, str]) -> list[str]:
    names: dict[str, list[str]] = {}
    for rule, missing in not_checked.items():
        names.setdefault(missing, []).append(rule)
    return [
        missing if missing == ONLY_THE_HOST else f"cannot check {_listed(rules)}: {missing}"
        for missing, rules in names.items()
    ]


def _listed(rules: Sequence[str]) -> str:
    """Name the first few rules, and count the others."""
    if len(rules) <= _MOST_NAMED:
        return ", ".join(rules)
    return f"{', '.join(rules[:_MOST_NAMED])} and {len(rules) - _MOST_NAMED} more rules"
