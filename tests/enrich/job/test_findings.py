"""Findings of many ranks."""

from __future__ import annotations

import pytest

from holotrace.enrich.job.findings import joined_findings


def test_a_sentence_of_several_ranks_is_said_once():
    """Ranks 0 to 2 and 5 say the same, rank 1 something else besides."""
    said = {0: ["no shapes"], 1: ["no shapes", "no stacks"], 2: ["no shapes"], 5: ["no shapes"]}

    assert joined_findings(said) == ("ranks 0-2, 5: no shapes", "rank 1: no stacks")


@pytest.mark.parametrize("said", [{}, {0: []}])
def test_nothing_said_is_no_finding(said):
    """No rank, or none with anything to say."""
    assert joined_findings(said) == ()
