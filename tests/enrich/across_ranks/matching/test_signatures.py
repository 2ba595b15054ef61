"""Tests of matching the calls of a group by order and signature, even if calls are missing."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from calls_of_ranks import of_rank
from holotrace.enrich.across_ranks.matching.groups import process_group
from holotrace.enrich.across_ranks.matching.matching import match

GROUP = process_group(range(3))


def _rank(text: str, *, late_us: int = 0, ahead_us: int = 0, host: str = "a", **columns):
    """Return a rank with one call per letter of `text`, which is the call's content; a dot means a missing call.

    All ranks leave a call at the same time. This rank enters each call `late_us` late, and its clock is
    ahead by `ahead_us`.
    """
    calls = [
        {
            "content": ord(letter),
            "times": (100 * place + late_us + ahead_us, 100 * place + 50 + ahead_us),
            "event_index": place,
            "group": GROUP.number,
            **columns,
        }
        for place, letter in enumerate(text)
        if letter != "."
    ]
    return of_rank(*calls, host=host)


def _operations(of_ranks) -> dict[int, tuple[str | None, dict[int, int]]]:
    """For each operation, return how it was matched, and the event_index of each rank's call."""
    calls = match(of_ranks).calls.drop_nulls("instance")
    operations: dict[int, tuple[str | None, dict[int, int]]] = {}
    for instance, rank, event_index, how in calls.select("instance", "rank", "event_index", "matched_by").iter_rows():
        known = operations.setdefault(instance, (how, {}))
        known[1][rank] = event_index
    return operations


def _whole(*numbers: int, ranks=range(3), how="signature"):
    return {instance: (how, dict.fromkeys(ranks, number)) for instance, number in enumerate(numbers)}


def test_equal_calls_match_in_order() -> None:
    """Three ranks make the same calls; the k-th calls with the same signature match."""
    assert _operations({rank: _rank("AABA") for rank in range(3)}) == _whole(0, 1, 2, 3)


def test_the_calls_around_a_missing_one_show_which_it_is() -> None:
    """Rank 1 lacks the A between B and C; its A before B and its A after C still match."""
    of_ranks = {0: _rank("ABACA"), 1: _rank("AB.CA"), 2: _rank("ABACA")}

    assert {number: len(ranks) for number, (_, ranks) in _operations(of_ranks).items()} == {
        0: 3,
        1: 3,
        2: 2,
        3: 3,
        4: 3,
    }


def test_time_shows_which_of_equal_calls_is_missing() -> None:
    """Rank 1 lacks the second of three equal calls; only the times show which one is missing."""
    of_ranks = {0: _rank("AAA"), 1: _rank("A.A"), 2: _rank("AAA")}

    calls = match(of_ranks).calls

    assert calls.filter(rank=1).select("event_index", "instance", "matched_by").rows() == [
        (0, 0, "time"),
        (2, 2, "time"),
    ]
    assert calls.filter(rank=0)["instance"].to_list() == [0, 1, 2]


def test_time_counts_on_roughly_aligned_clocks() -> None:
    """The clock of rank 1 is a second ahead; the other calls reveal this offset, so times can be compared."""
    first = [_rank("BCDAAA", host=str(rank)) for rank in range(2)]
    of_ranks = {0: first[0], 1: _rank("BCDA.A", ahead_us=1_000_000, host="1")}

    assert {ranks[1] for _, ranks in _operations(of_ranks).values()} == {0, 1, 2, 3, 5}
    assert all(ranks[0] == ranks[1] for _, ranks in _operations(of_ranks).values())


def test_without_a_clear_difference_in_time_nothing_is_guessed() -> None:
    """The call of rank 1 ends halfway between two equal calls of rank 0, so it matches neither."""
    placed = {"group": GROUP.number}
    of_ranks = {
        0: of_rank({**placed, "times": (0, 100)}, {**placed, "times": (60, 200)}),
        1: of_rank({**placed, "times": (0, 150)}),
    }

    assert _operations(of_ranks) == {}


def test_calls_that_do_not_overlap_are_not_the_same() -> None:
    """Rank 0 lacks the first of three equal calls, and rank 1 lacks the last.

    Matching them by order would pair calls that do not overlap.
    """
    of_ranks = {0: _rank("BCDE.AA"), 1: _rank("BCDEAA.")}

    operations = _operations(of_ranks)

    assert operations == {**_whole(0, 1, 2, 3, ranks=range(2)), 4: ("time", {0: 5, 1: 5})}


def test_a_clock_that_jumps_changes_no_match() -> None:
    """After five calls, the clock of rank 1 jumps by one second; all calls still match, so the jump can be seen."""
    calls = [{"group": GROUP.number, "content": place, "times": (100 * place, 100 * place + 50)} for place in range(9)]
    jumped = [
        {**call, "times": tuple(time + 1_000_000 for time in call["times"])} if place > 4 else call
        for place, call in enumerate(calls)
    ]

    ranks = {0: of_rank(*calls), 1: of_rank(*jumped, host="b")}

    assert _operations(ranks) == _whole(*range(9), ranks=range(2))


def test_steps_are_matched_by_number() -> None:
    """Rank 0 recorded steps 1 and 2, and rank 1 steps 2 and 3; only the calls of step 2 match."""
    ranks = {
        rank: of_rank(
            *({"group": GROUP.number, "window": step, "times": (100 * step, 100 * step + 50)} for step in steps)
        )
        for rank, steps in {0: (1, 2), 1: (2, 3)}.items()
    }

    assert _operations(ranks) == {0: ("signature", {0: 1, 1: 0})}


def test_kernels_of_which_only_the_kind_is_known_match_where_counts_agree() -> None:
    """Custom all-reduces have no args; they match in step 0 but not in step 1, where rank 1 has one fewer."""
    kernels = [
        {"dtype": None, "stream": 7, "group": GROUP.number, "window": step, "times": (start_us, start_us + 9)}
        for step, start_us in ((0, 0), (0, 10), (1, 20), (1, 30))
    ]

    assert _operations({0: of_rank(*kernels), 1: of_rank(*kernels[:3])}) == _whole(
        0, 1, ranks=(0, 1), how="stream_order"
    )


def test_numbers_come_first() -> None:
    """Calls that have sequence numbers are matched by number; all other calls are matched by order."""
    numbered = [{"group": GROUP.number, "sequence": number, "content": number} for number in (5, 6)]
    unnumbered = {"group": GROUP.number, "content": 9, "times": (500, 510)}

    calls = match({0: of_rank(*numbered, unnumbered), 1: of_rank(*numbered[1:], unnumbered)}).calls

    assert calls["matched_by"].to_list() == [None, "sequence", "signature", "sequence", "signature"]


def test_groups_of_one_rank_match_nothing() -> None:
    """The two recorded ranks belong to different groups, so their calls do not match."""
    other = process_group([5, 6])

    assert _operations({0: _rank("AB"), 1: _rank("AB", group=other.number)}) == {}


def test_the_order_is_that_of_the_requests() -> None:
    """On rank 1, the call that was requested second starts first; it still matches the second call of rank 0."""
    request = [
        {"group": GROUP.number, "asked_ns": asked, "times": times} for asked, times in ((0, (0, 50)), (1, (10, 60)))
    ]
    swapped = [{**call, "times": times} for call, times in zip(request, ((11, 50), (10, 60)), strict=True)]

    calls = match({0: of_rank(*request), 1: of_rank(*swapped)}).calls

    assert calls.sort("rank", "asked_ns")["instance"].to_list() == [0, 1, 0, 1]
    assert calls["matched_by"].cast(pl.String).unique().to_list() == ["signature"]


@st.composite
def _incomplete_jobs(draw):
    """Draw three ranks that make the same calls; each rank lacks up to three of them."""
    text = draw(st.text("ABC", min_size=4, max_size=24))
    missing = [draw(st.sets(st.integers(0, len(text) - 1), max_size=3)) for _ in range(3)]
    return {
        rank: _rank(
            "".join("." if place in missing[rank] else letter for place, letter in enumerate(text)),
            late_us=draw(st.integers(0, 40)),
        )
        for rank in range(3)
    }


def test_ranks_that_miss_different_ends_of_a_row_of_equal_calls_are_not_shifted() -> None:
    """Rank 1 lacks the first of four equal calls, and rank 2 the last; no call is matched with an adjacent one.

    Matching by order would pair calls that do not overlap. All ranks share one clock, so the cause must be missing
    calls, not a jump of a clock.
    """
    of_ranks = {0: _rank("AAAA"), 1: _rank(".AAA"), 2: _rank("AAA.")}

    assert all(len(set(ranks.values())) == 1 for _, ranks in _operations(of_ranks).values())


def test_ranks_of_one_host_share_its_clock() -> None:
    """If calls were matched by order, only the fourth calls of ranks 1 and 2 would overlap.

    All ranks share the clock of one host, so calls that do not overlap cannot belong to the same collective. Therefore,
    some calls must be missing.
    """
    of_ranks = {0: _rank("AAAAA"), 1: _rank(".AAAA"), 2: _rank("AAA.A")}

    assert all(len(set(ranks.values())) == 1 for _, ranks in _operations(of_ranks).values())


@given(_incomplete_jobs())
def test_missing_calls_never_make_a_wrong_match(of_ranks) -> None:
    """Whichever calls are missing, calls match only if they have the same position in the program."""
    assert all(len(set(ranks.values())) == 1 for _, ranks in _operations(of_ranks).values())
