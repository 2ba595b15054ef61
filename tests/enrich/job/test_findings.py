"""Findings of many ranks."""

from __future__ import annotations

import pytest

from holotrace.enrich.job.findings import joined_findings


def test_a_sentence_of_several_ranks_appears_once():
    """Ranks 0 to 2 and 5 share a sentence; rank 1 has another one, too."""
    said = {0: ["no shapes"], 1: ["no shapes", "no stacks"], 2: ["no shapes"], 5: ["no shapes"]}

    assert joined_findings(said) == ("ranks 0-2, 5: no shapes", "rank 1: no stacks")


@pytest.mark.parametrize("said", [{}, {0: []}])
def test_without_sentences_there_are_no_findings(said):
    """No ranks, or ranks without findings."""
    assert joined_findings(said) == ()
