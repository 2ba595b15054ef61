"""Findings of many ranks."""

from __future__ import annotations

import pytest

from holotrace.enrich.job.findings import joined_findings, ranks_text


def test_a_sentence_of_several_ranks_appears_once():
    """Ranks 0 to 2 and 5 share a sentence; rank 1 has another one, too."""
    said = {0: ["no shapes"], 1: ["no shapes", "no stacks"], 2: ["no shapes"], 5: ["no shapes"]}

    assert joined_findings(said) == ("ranks 0-2, 5: no shapes", "rank 1: no stacks")


@pytest.mark.parametrize("said", [{}, {0: []}])
def test_without_sentences_there_are_no_findings(said):
    """No ranks, or ranks without findings."""
    assert joined_findings(said) == ()


def test_of_many_ranges_the_first_are_named():
    """A finding about every other of 40 ranks stays readable."""
    assert ranks_text(list(range(0, 40, 2))) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, …"
    assert ranks_text([*range(4_096)]) == "ranks 0-4095"
