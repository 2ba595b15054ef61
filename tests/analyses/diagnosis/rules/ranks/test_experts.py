"""Tests of the rule about ranks whose experts get more tokens than the experts of other ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

import holotrace
from holotrace.analyses.diagnosis.compute import shown_findings

EXAMPLES = Path(__file__).parents[5] / "examples" / "gpu" / "traces"


def rules_of(job: str) -> list[str]:
    """Return the rules of the findings about a recorded job; leave out each finding that is part of another finding."""
    result = holotrace.diagnosis(holotrace.open_trace(EXAMPLES / job, cache=False))
    return [row["rule"] for row in shown_findings(result)]


def test_uneven_tokens_are_the_cause_not_the_rank() -> None:
    """Rank 0 gets 1.3 times the mean number of tokens; only the uneven tokens are reported, not a late rank."""
    found = rules_of("two_ranks-experts")

    assert "uneven_experts" in found
    assert not {"late_rank", "uneven_work", "jitter"} & set(found)


@pytest.mark.slow
def test_a_rank_that_sleeps_is_late_although_the_other_has_more_tokens() -> None:
    """Rank 1 sleeps for 30 ms, so it is reported as late, although rank 0 has more tokens."""
    assert "late_rank" in rules_of("two_ranks-experts-slow_rank1")
