"""Tests of the findings about calls that could not be matched, including cases with unusual input."""

from __future__ import annotations

from calls_of_ranks import of_rank
from holotrace.enrich.across_ranks.matching.groups import process_group
from holotrace.enrich.across_ranks.matching.matching import match

PAIR = process_group([0, 1])


def _call(start_us=0, **columns):
    return {"group": PAIR.number, "times": (start_us, start_us + 5), **columns}


def test_matched_calls_give_no_findings() -> None:
    """Two ranks make the same call a microsecond apart; the calls match, and there is no finding."""
    assert match({0: of_rank(_call()), 1: of_rank(_call(1))}).findings == ()


def test_nothing_at_all_is_an_answer() -> None:
    """If there are no ranks, or if the ranks have no calls, all tables are empty."""
    for of_ranks in ({}, {0: of_rank(), 1: of_rank()}):
        matching = match(of_ranks)

        assert matching.calls.is_empty()
        assert matching.coverage.is_empty()
    assert matching.findings == ("ranks 0-1: no communication was recorded",)


def test_one_rank_alone_has_nobody_to_be_matched_with() -> None:
    """All calls of a single rank are listed as unmatched, whether or not they name their group."""
    for group in (PAIR.number, None):
        matching = match({3: of_rank(_call(group=group))})

        assert matching.findings == (
            "the trace has only rank 3, so its calls cannot be matched with those of other ranks",
        )
        assert matching.calls["instance"].to_list() == [None]


def test_ranks_of_jobs_of_different_sizes() -> None:
    """For files of two jobs, with 8 and 16 ranks, a finding names both sizes."""
    of_ranks = {
        0: of_rank(_call(), world_size=8),
        1: of_rank(_call(1), world_size=8),
        2: of_rank(_call(2, group=5), world_size=16),
    }

    assert match(of_ranks).findings == (
        "the ranks belong to jobs of different sizes: 8 (ranks 0-1), 16 (rank 2)",
        "1 of 3 calls (1 all_reduce) belong to groups with only one rank in the trace; add the files of the other ranks",
    )


def test_the_same_recording_twice() -> None:
    """If rank 1's file is a copy of rank 0's, a finding says that both may be the same recording."""
    assert match(dict.fromkeys((0, 1), of_rank(_call(), _call(9)))).findings == (
        "ranks 0-1 have the same calls at the same times: their files may be copies of one recording",
    )


def test_recordings_of_different_steps() -> None:
    """If rank 0 recorded step 1 and rank 1 recorded step 2, a finding says that no two ranks share a step."""
    assert match({0: of_rank(_call(window=1)), 1: of_rank(_call(90, window=2))}).findings == (
        "no two ranks recorded the same step, so their calls cannot be matched by order",
        "2 of 2 calls (2 all_reduce) have no clear counterpart on the other ranks of their group",
    )


def test_each_reason_is_one_sentence() -> None:
    """For each reason why calls are unmatched, there is one finding.

    The reasons: the call names no group, the call names a peer that the trace lacks, the call names no peer, the ranks
    of a group have different numbers of batches, or the call has no clear counterpart.
    """
    three = process_group([0, 1, 2], "mesh_pp")
    send, exchange = {"family": "send"}, {"family": "send_recv", "group": three.number, "sequence": 1}
    of_ranks = {
        0: of_rank(_call(**send, peer=1), _call(9, **send, peer=7), _call(20, **send), _call(30, group=None)),
        1: of_rank(_call(240, group=None), _call(50, **exchange), groups=(three,)),
        2: of_rank(_call(51, **exchange), groups=(three,)),
    }

    assert match(of_ranks).findings == (
        "2 of 7 calls (2 all_reduce) name no group, and no group of the job fits their order and times",
        "1 of 7 calls (1 send) send to or receive from ranks that the trace lacks; add their files",
        "1 of 7 calls (1 send) do not name the rank at the other end",
        (
            "2 of 7 calls (2 send_recv) are batches of sends and receives that do not name their partners, and the ranks of "
            "their group do not all have the same number of such batches at the same times"
        ),
        "1 of 7 calls (1 send) have no clear counterpart on the other rank",
    )


def test_many_kinds_of_calls_are_shortened() -> None:
    """The finding names the three most frequent kinds of calls."""
    families = ["barrier", "reduce", "reduce", "gather", "scatter"]
    of_ranks = {0: of_rank(*(_call(9 * number, family=family) for number, family in enumerate(families))), 1: of_rank()}

    alone = match(of_ranks).findings[1]

    assert alone.startswith("5 of 5 calls (2 reduce, 1 barrier, 1 gather, …) belong to groups")


def test_sends_can_be_left_out() -> None:
    """With `sends=False`, sends are neither matched nor mentioned in findings."""
    of_ranks = {0: of_rank(_call(family="send", peer=1)), 1: of_rank(_call(family="recv", peer=0))}

    assert match(of_ranks).calls["instance"].to_list() == [0, 0]
    assert match(of_ranks, sends=False).calls["instance"].to_list() == [None, None]
    assert match(of_ranks, sends=False).findings == ()


def test_ranks_that_number_their_operations_apart() -> None:
    """Rank 0 recorded operations 1 to 4 of the group, and rank 1 operations 101 to 104, so none match."""
    of_ranks = {
        rank: of_rank(*(_call(100 * number, sequence=number + 1 + 100 * rank) for number in range(4)))
        for rank in (0, 1)
    }

    assert match(of_ranks).findings[-1] == (
        "ranks 0 and 1 share a process group, but have no sequence number in common (1-4 and 101-104): they were recorded at "
        "different times, or in different jobs"
    )


def test_ranks_of_different_jobs_of_equal_size() -> None:
    """Rank 0 only reduces and rank 1 only gathers, so a finding says that the files may belong to different jobs."""
    of_ranks = {0: of_rank(_call(0), _call(20)), 1: of_rank(_call(5, family="all_gather", content=9))}

    assert match(of_ranks).findings == (
        "no call of any rank fits a call of another rank, so the files may belong to different jobs",
        "3 of 3 calls (2 all_reduce, 1 all_gather) have no clear counterpart on the other ranks of their group",
    )
