"""The matched calls of the latest job are cached."""

from __future__ import annotations

import copy

from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.across_ranks.timed_calls import timed_calls
from holotrace.testing import small_job


def test_equal_ranks_give_the_remembered_calls_and_other_ranks_new_ones() -> None:
    """Equal ranks get the cached result; with fewer ranks, or with `sends=False`, the calls are matched again."""
    of_ranks = {rank: of_rank(rank_trace) for rank, rank_trace in small_job().ranks.items()}
    first = timed_calls(of_ranks)
    assert timed_calls(copy.deepcopy(of_ranks)) is first
    assert timed_calls(of_ranks, sends=False) is not first
    alone = timed_calls({1: of_ranks[1]})
    assert alone.calls["rank"].unique().to_list() == [1]
    assert timed_calls(of_ranks) is not first
    assert timed_calls(of_ranks).calls.equals(first.calls)
