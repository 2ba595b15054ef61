"""Tests of matching calls by the sequence numbers and communication ids that traces record."""

from __future__ import annotations

import polars as pl
import pytest

from calls_of_ranks import of_rank
from holotrace.enrich.across_ranks.matching.groups import process_group
from holotrace.enrich.across_ranks.matching.matching import match

GROUP = process_group([0, 1])


def _call(sequence, **columns):
    return {"group": GROUP.number, "sequence": sequence, **columns}


def _instances(of_ranks):
    calls = match(of_ranks).calls.filter(pl.col("matched_by").is_in(["sequence", "communication_id"]))
    return calls.select("rank", "event_index", "instance", "kernel_count").rows()


def test_sequence_numbers_match_in_spite_of_missing_calls() -> None:
    """Rank 1 lacks the call with number 2; the calls with number 3 still match."""
    of_ranks = {0: of_rank(_call(1), _call(2), _call(3)), 1: of_rank(_call(1), _call(3))}

    assert _instances(of_ranks) == [(0, 0, 0, 1), (0, 2, 1, 1), (1, 0, 0, 1), (1, 1, 1, 1)]


def test_equal_numbers_of_other_groups_or_families_are_other_operations() -> None:
    """Calls with equal numbers do not match if their groups, families or contents differ."""
    other = process_group([0, 1], "mesh_dp").number
    calls = [_call(1), _call(1, group=other), _call(1, family="all_gather"), _call(1, content=2)]
    of_ranks = {0: of_rank(*calls), 1: of_rank(*reversed(calls))}

    assert {instance: rank for rank, _, instance, _ in _instances(of_ranks)} == dict.fromkeys(range(4), 1)


def test_coalesced_calls_become_one() -> None:
    """Two kernels of rank 0 and one kernel of rank 1 have the same number; they match as one call from 10 to 25 µs."""
    of_ranks = {
        0: of_rank(_call(1, times=(10, 15)), _call(1, times=(20, 25))),
        1: of_rank(_call(1, times=(10, 25), in_bytes=16)),
    }

    calls = match(of_ranks).calls

    columns = calls.select("rank", "start_ns", "end_ns", "in_bytes", "kernel_count", "instance")
    assert columns.rows() == [(0, 10_000, 25_000, 16, 2, 0), (1, 10_000, 25_000, 16, 1, 0)]


def test_equally_many_kernels_of_a_number_are_matched_in_order() -> None:
    """If both ranks have two kernels with the same number, the kernels match in order."""
    twice = of_rank(_call(1), _call(1))

    assert _instances({0: twice, 1: twice}) == [(0, 0, 0, 1), (0, 1, 1, 1), (1, 0, 0, 1), (1, 1, 1, 1)]


def test_communication_ids_match_without_groups() -> None:
    """Calls with the same communication id match, even without groups."""
    first, second = ({"communication_id": number} for number in (7, 8))

    assert _instances({0: of_rank(first, second), 1: of_rank(second)}) == [(0, 1, 0, 1), (1, 0, 0, 1)]


def test_a_constant_is_not_a_sequence_number() -> None:
    """Some libraries write one constant as the number of all calls; this number is not used for matching."""
    constant = of_rank(*[_call(0)] * 20)

    assert _instances({0: constant, 1: constant}) == []


@pytest.mark.parametrize("family", ["send", "recv"])
def test_sends_and_receives_count_for_themselves(family) -> None:
    """Sender and receiver count independently, so equal numbers do not match them."""
    assert _instances({0: of_rank(_call(1, family=family)), 1: of_rank(_call(1, family=family))}) == []


def test_coalesced_sends_and_receives_have_equal_numbers_only_in_groups_of_two() -> None:
    """In a pipeline of three stages, the middle rank has twice as many exchanges, so calls do not match by number."""
    pair, three = GROUP, process_group([0, 1, 2])
    exchange = of_rank(_call(1, family="send_recv", group=pair.number))
    exchange_of_three = of_rank(_call(1, family="send_recv", group=three.number), groups=(three,))

    assert len(_instances({0: exchange, 1: exchange})) == 2
    middle = of_rank(*[_call(number, family="send_recv", group=three.number) for number in (1, 2)], groups=(three,))
    stages = {0: exchange_of_three, 1: middle, 2: exchange_of_three}
    assert match(stages).calls["instance"].null_count() == 4


def test_coverage_is_the_share_of_calls_bytes_and_time() -> None:
    """The matched call, one of two per rank, accounts for a quarter of the bytes and half of the time.

    Calls in groups of one rank are ignored.
    """
    alone = process_group([0])
    by_rank = of_rank(_call(1, in_bytes=8), {"in_bytes": 24, "times": (50, 55), "content": 5})
    with_alone = of_rank(
        _call(1, in_bytes=8),
        {"in_bytes": 24, "times": (20, 25), "content": 6},
        {"group": alone.number, "in_bytes": 99},
        groups=(alone, GROUP),
    )

    matching = match({0: with_alone, 1: by_rank})

    assert matching.coverage.rows() == [("sequence", 2, 0.5, 0.25, 0.5), (None, 2, 0.5, 0.75, 0.5)]
    assert matching.groups.drop("group").rows() == [([0], 1, None, False), ([0, 1], 2, None, False)]
