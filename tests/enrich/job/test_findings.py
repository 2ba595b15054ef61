"""Tests of merging the findings of many ranks."""

from __future__ import annotations

import pytest

from holotrace.enrich.job.findings import joined_findings, ranks_text


def test_a_sentence_of_several_ranks_appears_once():
    """Ranks 0 to 2 and 5 have the same finding, which appears once; rank 1 has a second finding of its own."""
    sentences = {0: ["no shapes"], 1: ["no shapes", "no stacks"], 2: ["no shapes"], 5: ["no shapes"]}

    assert joined_findings(sentences) == ("ranks 0-2, 5: no shapes", "rank 1: no stacks")


@pytest.mark.parametrize("sentences", [{}, {0: []}])
def test_without_sentences_there_are_no_findings(sentences):
    """Without ranks, or without findings of any rank, the result is empty."""
    assert joined_findings(sentences) == ()


def test_a_long_list_of_ranks_is_cut():
    """Of 20 ranks that are not consecutive, the text lists the first eight; consecutive ranks become one range."""
    assert ranks_text(list(range(0, 40, 2))) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, …"
    assert ranks_text([*range(4_096)]) == "ranks 0-4095"
