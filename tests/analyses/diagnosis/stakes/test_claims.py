"""Tests of claims: each nanosecond of a step counts toward at most one finding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.intervals import Intervals, covered_length
from holotrace.analyses.diagnosis.rule import Case, Rule, Said
from holotrace.analyses.diagnosis.stakes.claims import claims

STEP = (np.array([0]), np.array([100]))


def rule(name: str, precedence: int) -> Rule:
    """Return a rule without a check."""
    return Rule(name, "", 0.0, "", "", "", lambda _: (), lambda _: Said("", ""), precedence)


def case(*pairs: tuple[int, int], saved_fraction: float = 1.0) -> Case:
    """Return a case that explains the time in these intervals, given as pairs (start, end)."""
    return Case(intervals(*pairs), 1.0, saved_fraction)


def intervals(*pairs: tuple[int, int]) -> Intervals:
    """Return the starts and the ends of intervals, given as pairs (start, end), as two arrays."""
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def test_a_cause_claims_before_a_symptom_even_if_it_explains_less() -> None:
    """The symptom explains 80 ns, but the cause claims 30 of them first, so the symptom claims 50."""
    cause, symptom = rule("cause", 0), rule("symptom", 2)

    found = claims([(symptom, case((0, 80))), (cause, case((10, 40)))], STEP)

    assert [claim.claimed_ns for claim in found] == [50, 30]
    assert [claim.explained_ns for claim in found] == [80, 30]


def test_what_another_rule_explains_before_is_part_of_it() -> None:
    """The cause has already claimed 30 of the symptom's 40 ns, so the symptom becomes part of the cause."""
    found = claims([(rule("cause", 0), case((0, 30))), (rule("symptom", 1), case((0, 40)))], STEP)

    assert [claim.absorbed_by for claim in found] == ["", "cause"]


def test_time_outside_the_steps_does_not_count() -> None:
    """The rule explains 60 ns, but only 20 ns of them are in the step; it claims only these 20 ns."""
    assert claims([(rule("cause", 0), case((80, 140)))], STEP)[0].claimed_ns == 20


def test_a_case_that_saves_a_share_claims_all_of_its_time() -> None:
    """If the first rule claims half of a kernel's time, other rules cannot claim the other half."""
    found = claims([(rule("first", 0), case((0, 40), saved_fraction=0.5)), (rule("second", 1), case((0, 40)))], STEP)

    assert [claim.claimed_ns for claim in found] == [20, 0]


pairs = st.lists(st.tuples(st.integers(-20, 120), st.integers(0, 60)), max_size=6).map(
    lambda items: [(start, start + length) for start, length in items]
)


@given(st.lists(st.tuples(st.integers(0, 2), pairs, st.sampled_from([0.25, 0.5, 1.0])), max_size=6))
def test_all_claims_together_fit_into_the_steps(items: list[tuple[int, list[tuple[int, int]], float]]) -> None:
    """For any cases, the claims add up to at most the length of the step."""
    cases = [
        (rule(str(row), precedence), case(*explained, saved_fraction=saved))
        for row, (precedence, explained, saved) in enumerate(items)
    ]
    found = claims(cases, STEP)

    assert sum(claim.claimed_ns for claim in found) <= covered_length(*STEP)
    assert all(0 <= claim.claimed_ns <= claim.explained_ns for claim in found)


def test_a_second_case_of_a_rule_claims_what_the_first_leaves() -> None:
    """If two cases of one rule overlap, the time of the overlap is counted only in the larger case."""
    same = rule("same", 1)

    found = claims([(same, case((0, 10))), (same, case((0, 30)))], STEP)

    assert [claim.claimed_ns for claim in found] == pytest.approx([0, 30])
