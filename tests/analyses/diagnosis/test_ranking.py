"""Tests of how findings about several ranks are ranked; their stakes sum to at most the exposed communication."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rank_examination import RankExamination
from holotrace.analyses.diagnosis.rank_numbers import RankNumbers
from holotrace.analyses.diagnosis.ranking import ranking
from holotrace.analyses.diagnosis.rule import JobCase, JobRule, Said

_STEP_NS = 1_000_000.0


def _evidence(exposed_ns: float) -> JobEvidence:
    """Return the evidence of a job with two ranks, neither of which has findings of its own."""
    numbers = RankNumbers(
        has_steps=True,
        step_count=3,
        step_ns=_STEP_NS,
        step_std_ns=0.0,
        busy_ns=500_000.0,
        unknown_ns=0.0,
        exposed_ns=exposed_ns,
        device_name=None,
        is_cut_off=False,
        is_unread=False,
        mfu_fraction=None,
        costed_fraction=None,
        memory=None,
        main_work=None,
        is_before_compile=False,
        host_library=None,
    )
    return JobEvidence({rank: RankExamination(numbers, {}, {}) for rank in range(2)}, {})


def _rule(name: str, precedence: int, cost_ns: float) -> JobRule:
    return JobRule(name, "", 0.0, "", "", "", (), _check(cost_ns), lambda _: Said("what", "advice"), precedence)


def _check(cost_ns: float) -> Callable[[JobEvidence], Iterator[JobCase]]:
    return lambda _: iter([JobCase({0: cost_ns, 1: cost_ns}, 1.0)])


def _stakes(*rules: JobRule, exposed_ns: float = 100_000) -> dict[str, int]:
    found = ranking(_evidence(exposed_ns), (), rules).per_finding
    return {row["rule"]: row["stake_ns"] for row in found}


def test_a_finding_takes_time_from_those_after_it() -> None:
    """10 % of the step is exposed communication; the first finding claims 3 %, which leaves 7 % for the second."""
    assert _stakes(_rule("first", 0, 30_000), _rule("second", 1, 100_000)) == {"second": 70_000, "first": 30_000}


def test_a_finding_that_is_not_shown_takes_no_time() -> None:
    """The first finding (1 % of the step) is too small to be shown, so the second claims all 10 % of exposed time."""
    assert _stakes(_rule("first", 0, 10_000), _rule("second", 1, 100_000)) == {"second": 100_000}


def test_a_finding_that_only_small_ones_would_hide_is_shown() -> None:
    """The third finding claims 2.5 % of the step; the first two (1.5 % each) are too small to be shown, so claim nothing.

    In total, 4 % of the step is exposed communication.
    """
    first = _rule("first", 0, 15_000)
    rules = (first, replace(first, name="again"), _rule("second", 1, 25_000))
    assert _stakes(*rules, exposed_ns=40_000) == {"second": 25_000}
