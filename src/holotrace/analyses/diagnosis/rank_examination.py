"""Apply the rules to one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.intervals import Intervals, concatenated, covered_length, difference, intersection, union
from holotrace.analyses.diagnosis.claims import Claim, claims
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.evidence.sampled_steps import sampled
from holotrace.analyses.diagnosis.predictions import predictions
from holotrace.analyses.diagnosis.rank_numbers import RankNumbers, rank_numbers
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, RankCase, Rule
from holotrace.content_equality import EqualByContent
from holotrace.enrich.host.source_lines import records_python
from holotrace.errors import MissingDataError
from holotrace.store.trace import RankTrace

_REFUTED = 0.05
"""A cause is refuted if its replay saves less than this share of what it claims."""


@dataclass(frozen=True, eq=False)
class RankExamination(EqualByContent):
    """What the rules found on one rank.

    numbers      the headline numbers
    cases        by rule name: the cases that reach the threshold, by subject
    not_checked  by rule name: the input that is missing, and how to record it
    left_out     a sentence on the steps that were not examined; empty if all were
    """

    numbers: RankNumbers
    cases: Mapping[str, Mapping[str, RankCase]]
    not_checked: Mapping[str, str]
    left_out: str = ""


def examined(rank_trace: RankTrace, *, rules: Sequence[Rule]) -> RankExamination:
    """Apply the rules to a rank, and divide its time among their cases."""
    examined_part, left_out = sampled(rank_trace)
    evidence = RankEvidence(examined_part)
    found: list[tuple[Rule, Case]] = []
    not_checked: dict[str, str] = {}
    for rule in rules:
        try:
            if (missing := rule.needs(evidence)) is not None:
                not_checked[rule.name] = missing
                continue
            found += [(rule, case) for case in rule.check(evidence) if case.value >= rule.threshold]
        except MissingDataError as error:
            not_checked[rule.name] = error.finding
    return RankExamination(rank_numbers(evidence), _rank_cases(evidence, found), not_checked, left_out)


def _rank_cases(evidence: RankEvidence, found: Sequence[tuple[Rule, Case]]) -> dict[str, dict[str, RankCase]]:
    cases: dict[str, dict[str, RankCase]] = {}
    claimed = claims(found, evidence.step_windows)
    predicted = predictions(evidence, [(rule, case, claim) for (rule, case), claim in zip(found, claimed, strict=True)])
    saved = [
        None if _is_certain(case, claim, saved_ns, evidence.step_count) else saved_ns
        for (_, case), claim, saved_ns in zip(found, claimed, predicted, strict=True)
    ]
    kept = [
        (rule, _with_further(case, saved_ns, evidence.step_count), saved_ns)
        for (rule, case), claim, saved_ns in zip(found, claimed, saved, strict=True)
        if not (_is_idle(evidence, case) and _is_refuted(evidence, rule, claim, saved_ns))
    ]
    claimed = claims([(rule, case) for rule, case, _ in kept], evidence.step_windows)
    for (rule, case, saved_ns), claim in zip(kept, claimed, strict=True):
        cases.setdefault(rule.name, {})[case.subject] = RankCase(
            evidence.rank,
            case.value,
            claim.claimed_ns / evidence.step_count,
            claim.explained_ns / evidence.step_count,
            saved_ns,
            case.count,
            case.place,
            case.words,
            claim.absorbed_by,
        )
    return cases


def _is_certain(case: Case, claim: Claim, saved_ns: float | None, steps: int) -> bool:
    return saved_ns is not None and case.is_certain and saved_ns * steps < claim.claimed_ns


def _with_further(case: Case, saved_ns: float | None, steps: int) -> Case:
    """Let the case explain as much further time, from its beginning on, as its replay saves beyond what it explains."""
    if case.further is None or saved_ns is None:
        return case
    further = difference(case.further, case.explained)
    beyond_ns = round(saved_ns * steps) - covered_length(*case.explained)
    kept = (further[0], np.minimum(further[1], further[0] + np.maximum(0, beyond_ns - _length_before(further))))
    is_left = kept[1] > kept[0]
    return replace(case, explained=union(*concatenated([case.explained, (kept[0][is_left], kept[1][is_left])])))


def _length_before(intervals: Intervals) -> npt.NDArray[np.int64]:
    """Return, for each interval, the length of all before it."""
    lengths = intervals[1] - intervals[0]
    before: npt.NDArray[np.int64] = np.cumsum(lengths) - lengths
    return before


def _is_idle(evidence: RankEvidence, case: Case) -> bool:
    """Whether most of what a case explains is idle time, which other causes may explain as well."""
    explained = intersection(case.explained, evidence.step_windows)
    return 2 * covered_length(*intersection(explained, evidence.idle)) > covered_length(*explained)


def _is_refuted(evidence: RankEvidence, rule: Rule, claim: Claim, saved_ns: float | None) -> bool:
    """Whether a replay without the cause saves next to nothing: then the time has another cause, which may claim it.

    Half of the share that the rule asks for is next to nothing, too, unless Python functions were recorded: that slows the
    host, which then hides part of what the cause costs without the profiler.
    """
    if saved_ns is None:
        return False
    asked = 0.0 if rule.unit != OF_THE_STEP or records_python(evidence.rank_trace) else rule.threshold / 2
    return saved_ns * evidence.step_count < max(_REFUTED * claim.claimed_ns, asked * evidence.time_ns)
