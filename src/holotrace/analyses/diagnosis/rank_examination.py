"""Apply the rules to one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import NamedTuple

from holotrace.algorithms.intervals import covered_length, intersection
from holotrace.analyses.diagnosis.claims import Claim, claims
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.evidence.sampled_steps import sampled
from holotrace.analyses.diagnosis.predictions import predictions
from holotrace.analyses.diagnosis.rule import Case, RankCase, Rule
from holotrace.content_equality import EqualByContent
from holotrace.enrich.job.one_job import CUT_OFF_KINDS
from holotrace.errors import MissingDataError
from holotrace.store.trace import RankTrace

_REFUTED = 0.05
"""A cause is refuted if its replay saves less than this share of what it claims."""


class RankNumbers(NamedTuple):
    """The headline numbers of one rank; times are per steady step.

    has_steps         whether the recording has steps; otherwise the whole recording counts as one
    step_count        steady steps
    step_ns           mean length
    step_std_ns       standard deviation of the length
    busy_ns           a device works; null without device work
    unknown_ns        a device may run a graph replay of which the device rows are lost
    exposed_ns        the rank communicates, and no kernel computes
    device_name       of the first device; None if unknown
    is_cut_off        whether the file ends early, so that device work may be missing
    """

    has_steps: bool
    step_count: int
    step_ns: float
    step_std_ns: float
    busy_ns: float | None
    unknown_ns: float
    exposed_ns: float
    device_name: str | None
    is_cut_off: bool


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
    return RankExamination(_numbers(evidence), _rank_cases(evidence, found), not_checked, left_out)


def _rank_cases(evidence: RankEvidence, found: Sequence[tuple[Rule, Case]]) -> dict[str, dict[str, RankCase]]:
    cases: dict[str, dict[str, RankCase]] = {}
    claimed = claims(found, evidence.step_windows)
    saved = predictions(evidence, [(rule, case, claim) for (rule, case), claim in zip(found, claimed, strict=True)])
    kept = [
        (rule, case, saved_ns)
        for (rule, case), claim, saved_ns in zip(found, claimed, saved, strict=True)
        if not (_is_refuted(claim, saved_ns, evidence.step_count) and _is_idle(evidence, case))
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


def _is_idle(evidence: RankEvidence, case: Case) -> bool:
    """Whether most of what a case explains is idle time, which other causes may explain as well."""
    explained = intersection(case.explained, evidence.step_windows)
    return 2 * covered_length(*intersection(explained, evidence.idle)) > covered_length(*explained)


def _is_refuted(claim: Claim, saved_ns: float | None, steps: int) -> bool:
    """Whether a replay without the cause saves next to nothing: then the time has another cause, which may claim it."""
    return saved_ns is not None and saved_ns * steps < _REFUTED * claim.claimed_ns


def _numbers(evidence: RankEvidence) -> RankNumbers:
    lengths = evidence.step_lengths_ns or [0]
    return RankNumbers(
        evidence.has_steps,
        len(evidence.step_lengths_ns),
        fmean(lengths),
        pstdev(lengths),
        covered_length(*evidence.busy) / evidence.step_count if evidence.has_device_work else None,
        covered_length(*evidence.unknown) / evidence.step_count,
        covered_length(*evidence.exposed_communication) / evidence.step_count,
        next((device["device_name"] for device in evidence.devices), None),
        any(finding.kind in CUT_OFF_KINDS for finding in evidence.rank_trace.health.findings),
    )
