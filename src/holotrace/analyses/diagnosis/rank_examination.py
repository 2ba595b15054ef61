"""Apply the rules to one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holotrace.analyses.diagnosis.evidence.gradient_rounds import ONE_PER_UPDATE, GradientRounds, gradient_rounds
from holotrace.analyses.diagnosis.evidence.input_sizes import InputSize, input_sizes
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.evidence.sampled_steps import sampled
from holotrace.analyses.diagnosis.evidence.step_work import working_ns
from holotrace.analyses.diagnosis.evidence.user_functions import user_functions
from holotrace.analyses.diagnosis.rank_numbers import RankNumbers, rank_numbers
from holotrace.analyses.diagnosis.rule import Case, RankCase, Rule
from holotrace.analyses.diagnosis.stakes.claims import claims
from holotrace.analyses.diagnosis.stakes.replayed_cases import may_apply, upheld
from holotrace.content_equality import EqualByContent
from holotrace.errors import MissingDataError
from holotrace.ingest.trace_writer import other_writer, other_writer_text
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace
from holotrace.units import duration_text

_SHORTEST_NS = 50_000
"""Shorter recordings contain too few events to be sure of a cause."""


@dataclass(frozen=True, eq=False)
class RankExamination(EqualByContent):
    """What the rules found on one rank.

    numbers          the headline numbers
    cases            by rule name, then by subject: the cases that reach the threshold
    not_checked      by rule name: the input that is missing, and how to record it
    left_out         a sentence about what was not examined: steps of a long recording, or a file written by another
                     program; empty if everything was examined
    input_sizes      how many elements the products, convolutions and embeddings of the rank read in each step
    working_ns       how long its devices compute and copy in each step; without device work, how long its operators run
    gradient_rounds  how often the rank reduces its gradients before it updates the weights
    user_functions   how long each function of the user takes per step, including the functions that it calls
    """

    numbers: RankNumbers
    cases: Mapping[str, Mapping[str, RankCase]]
    not_checked: Mapping[str, str]
    left_out: str = ""
    input_sizes: Mapping[int, InputSize] = field(default_factory=dict)
    working_ns: Mapping[int, int] = field(default_factory=dict)
    gradient_rounds: GradientRounds = ONE_PER_UPDATE
    user_functions: Mapping[str, int] = field(default_factory=dict)


def examined(rank_trace: RankTrace, *, rules: Sequence[Rule]) -> RankExamination:
    """Apply the rules to a rank, and divide the lost time among the cases that they find."""
    examined_part, left_out = sampled(rank_trace)
    evidence = RankEvidence(examined_part)
    found: list[tuple[Rule, Case]] = []
    not_checked: dict[str, str] = {}
    is_short = evidence.time_ns < _SHORTEST_NS
    for rule in () if is_short else rules:
        try:
            if (missing := rule.needs(evidence)) is not None:
                not_checked[rule.name] = missing
                continue
            found += [(rule, case) for case in rule.check(evidence) if may_apply(rule, case)]
        except MissingDataError as error:
            not_checked[rule.name] = error.finding
    if (writer := other_writer(rank_trace)) and EventKind.CPU_OP not in rank_trace.event_counts():
        left_out, not_checked = f"the file was {other_writer_text(writer)}", {}
    if is_short and evidence.time_ns:
        left_out = left_out or f"the recording covers only {duration_text(evidence.time_ns)}, too little to find causes"
    return RankExamination(
        rank_numbers(evidence),
        _rank_cases(evidence, found),
        not_checked,
        left_out,
        input_sizes(examined_part),
        working_ns(evidence),
        gradient_rounds(evidence),
        user_functions(evidence),
    )


def _rank_cases(evidence: RankEvidence, found: Sequence[tuple[Rule, Case]]) -> dict[str, dict[str, RankCase]]:
    cases: dict[str, dict[str, RankCase]] = {}
    kept = upheld(evidence, found)
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
            case.is_at_most,
            case.is_estimate,
        )
    return cases
