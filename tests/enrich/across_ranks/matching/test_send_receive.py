"""Tests of matching sends with receives by source, destination, tag, type, size and order."""

from __future__ import annotations

import polars as pl
import pytest

from calls_of_ranks import of_rank
from holotrace.enrich.across_ranks.matching.groups import process_group
from holotrace.enrich.across_ranks.matching.matching import match


def _send(peer, start_us=0, **columns):
    return {"family": "send", "peer": peer, "times": (start_us, start_us + 20), **columns}


def _receive(peer, start_us=0, **columns):
    return {**_send(peer, start_us, **columns), "family": "recv"}


def _pairs(of_ranks) -> list[tuple[tuple[int, int], ...]]:
    """Return (rank, event_index) of the send and the receive of each match."""
    calls = match(of_ranks).calls.filter(matched_by="send_receive").sort("family")
    ends = calls.group_by("instance", maintain_order=True).agg(pl.struct("rank", "event_index").alias("ends"))
    return sorted(tuple((end["rank"], end["event_index"]) for end in pair) for pair in ends["ends"])


def test_the_kth_send_matches_the_kth_receive() -> None:
    """Rank 0 sends twice to rank 1 and once to rank 2; each send matches the receive in the same position."""
    of_ranks = {
        0: of_rank(_send(1), _send(2, 10), _send(1, 20)),
        1: of_rank(_receive(0, 5), _receive(0, 25)),
        2: of_rank(_receive(0, 15)),
    }

    assert _pairs(of_ranks) == [((0, 0), (1, 0)), ((0, 1), (2, 0)), ((0, 2), (1, 1))]


def test_both_directions_are_apart() -> None:
    """Each rank sends to the other before it receives; each send matches the other rank's receive."""
    of_ranks = {0: of_rank(_send(1), _receive(1, 5)), 1: of_rank(_send(0), _receive(0, 5))}

    assert _pairs(of_ranks) == [((0, 0), (1, 1)), ((1, 0), (0, 1))]


@pytest.mark.parametrize("column", ["tag", "content"])
def test_tags_and_contents_must_agree(column) -> None:
    """The receives come in reverse order, but their tags or contents show which send each receive matches."""
    of_ranks = {
        0: of_rank(_send(1, **{column: 7}), _send(1, 10, **{column: 8})),
        1: of_rank(_receive(0, **{column: 8}), _receive(0, 10, **{column: 7})),
    }

    assert _pairs(of_ranks) == [((0, 0), (1, 1)), ((0, 1), (1, 0))]


def test_a_send_without_a_receive_stays_unmatched() -> None:
    """Rank 1 was recorded but received nothing, and rank 5 was not recorded; the sends to both stay unmatched."""
    calls = match({0: of_rank(_send(1), _send(5, 10)), 1: of_rank({"times": (0, 5)})}).calls

    assert calls.filter(family="send")["instance"].to_list() == [None, None]


@pytest.mark.parametrize("missing", range(4))
@pytest.mark.parametrize("at", [0, 1])
def test_times_show_which_call_of_a_step_is_missing(missing, at) -> None:
    """One of four microbatches lacks its send or receive; the calls of the other three are matched by their times.

    Each receive ends soon after its send.
    """
    sends = [_send(1, 1_000 * number, event_index=number) for number in range(4)]
    begun_early = [(1_000 * number - 900, 1_000 * number + 10) for number in range(4)]
    receives = [{**_receive(0, event_index=number), "times": times} for number, times in enumerate(begun_early)]
    del (sends, receives)[at][missing]

    expected = [((0, number), (1, number)) for number in range(4) if number != missing]
    assert _pairs({0: of_rank(*sends), 1: of_rank(*receives)}) == expected


def test_receives_that_begin_late_do_not_show_it() -> None:
    """All three sends end long before the two receives begin, so times do not show which send lacks its receive."""
    sends = [_send(1, number) for number in range(3)]

    assert _pairs({0: of_rank(*sends), 1: of_rank(_receive(0, 1_000), _receive(0, 2_000))}) == []


def test_a_send_may_arrive_in_the_next_step() -> None:
    """The receiver numbers its steps differently, but there are as many receives as sends, so they match by order."""
    of_ranks = {
        0: of_rank(_send(1, window=1), _send(1, 10, window=2)),
        1: of_rank(_receive(0, 5, window=11), _receive(0, 15, window=12)),
    }

    assert _pairs(of_ranks) == [((0, 0), (1, 0)), ((0, 1), (1, 1))]


STAGES = {rank: process_group([rank, rank + 2], "mesh_pp") for rank in range(2)}
REPLICAS = {rank: process_group([rank, rank + 1], "mesh_dp") for rank in (0, 2)}


def _pipeline(rank, *calls):
    groups = (process_group(range(4), "default_pg"), STAGES[rank % 2], REPLICAS[rank // 2 * 2])
    return of_rank(*calls, groups=groups, world_size=4)


def _within_group(family, number, start_us=0):
    return {"family": family, "group_peer": number, "tag": 0, "times": (start_us, start_us + 9)}


def test_the_group_is_the_one_in_which_the_peer_receives() -> None:
    """Rank 0 sends to the second rank of an unknown group: the group whose second rank receives from rank 0.

    In the pipeline group of rank 0, the second rank is rank 2; in its other groups, it is rank 1. Rank 2 receives
    from rank 0 and rank 1 does not, so the group is the pipeline group.
    """
    of_ranks = {
        0: _pipeline(0, _within_group("send", 1), _within_group("recv", 1, 20)),
        1: _pipeline(1, _within_group("send", 1)),
        2: _pipeline(2, _within_group("recv", 0), _within_group("send", 0, 20)),
        3: _pipeline(3, _within_group("recv", 0)),
    }

    matching = match(of_ranks)

    assert _pairs(of_ranks) == [((0, 0), (2, 0)), ((1, 0), (3, 0)), ((2, 1), (0, 1))]
    assert matching.calls.select("rank", "peer").rows() == [(0, 2), (0, 2), (1, 3), (2, 0), (2, 0), (3, 1)]
    assert set(matching.groups.filter("is_inferred")["description"]) == {"mesh_pp"}


def test_a_recorded_group_decides_whom_the_number_means() -> None:
    """The trace names the group of the send, so the peer's number within the group identifies the peer."""
    group = STAGES[0].number
    of_ranks = {
        0: _pipeline(0, {**_within_group("send", 1), "group": group}),
        1: _pipeline(1),
        2: _pipeline(2, {**_within_group("recv", 0), "group": group}),
    }

    assert _pairs(of_ranks) == [((0, 0), (2, 0))]


def test_peers_that_fit_equally_well_are_not_chosen_between() -> None:
    """Rank 0 sends to the second rank of an unknown group; this may be rank 1 or rank 2, so the peer is null."""
    of_ranks = {
        0: _pipeline(0, _within_group("send", 1)),
        1: _pipeline(1, _within_group("recv", 0)),
        2: _pipeline(2, _within_group("recv", 0)),
    }

    assert match(of_ranks).calls.filter(rank=0)["peer"].to_list() == [None]
