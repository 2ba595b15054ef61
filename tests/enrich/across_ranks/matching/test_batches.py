"""Tests of matching batches of sends and receives, each performed by one kernel."""

from __future__ import annotations

import pytest

from calls_of_ranks import of_rank
from holotrace.enrich.across_ranks.job_calls import job_calls
from holotrace.enrich.across_ranks.matching import calls
from holotrace.enrich.across_ranks.matching.groups import process_group
from holotrace.enrich.across_ranks.matching.matching import match
from holotrace.testing.builder import TraceBuilder

RING = process_group(range(4), "mesh_cp")


def _batch(*partners, at=0, **columns):
    return {
        "family": "send_recv",
        "dtype": None,
        "partners": list(partners) or None,
        "times": (at, at + 50),
        "stream": 20,
        **columns,
    }


def _operations(of_ranks) -> list[list[tuple[int, int]]]:
    """Return the batches of each operation as (rank, event_index)."""
    found = match(of_ranks).calls.drop_nulls("instance")
    return [
        list(found.filter(instance=number).select("rank", "event_index").sort("rank").iter_rows())
        for number in found["instance"].unique().sort()
    ]


def _from(rank: int) -> int:
    return -1 - rank


def test_partners_connect_the_batches_of_a_ring() -> None:
    """In ring attention, every rank sends to the next rank and receives from the previous rank; all batches match."""
    of_ranks = {
        rank: of_rank(*(_batch((rank + 1) % 4, _from((rank - 1) % 4), at=100 * turn) for turn in (0, 1)))
        for rank in range(4)
    }

    assert _operations(of_ranks) == [[(rank, turn) for rank in range(4)] for turn in (0, 1)]
    assert match(of_ranks).calls["matched_by"].unique().to_list() == ["send_receive"]


def test_partners_connect_an_all_to_all_made_of_sends() -> None:
    """Each rank sends to all others and receives from all others, so the batches of all ranks match."""
    of_ranks = {
        rank: of_rank(_batch(*(peer for other in range(4) if other != rank for peer in (other, _from(other)))))
        for rank in range(4)
    }

    assert _operations(of_ranks) == [[(rank, 0) for rank in range(4)]]


def test_partners_tell_the_stages_of_a_pipeline_apart() -> None:
    """Rank 1 has one batch with rank 0 and one with rank 2; each is matched with the only batch of that rank."""
    of_ranks = {
        0: of_rank(_batch(1, _from(1), at=0)),
        1: of_rank(_batch(0, _from(0), at=0), _batch(2, _from(2), at=100)),
        2: of_rank(_batch(1, _from(1), at=100)),
    }

    assert _operations(of_ranks) == [[(0, 0), (1, 0)], [(1, 1), (2, 0)]]


def test_batches_that_connect_two_of_one_rank_stay_unmatched() -> None:
    """The single batch of rank 1 would match two batches of rank 0, so all three stay unmatched."""
    of_ranks = {
        0: of_rank(_batch(1, at=0), _batch(_from(1), at=100)),
        1: of_rank(_batch(0, _from(0), at=100)),
    }

    assert _operations(of_ranks) == []
    assert any(
        "counterparts on other ranks are missing or ambiguous" in finding for finding in match(of_ranks).findings
    )


def test_a_missing_batch_is_not_replaced_by_the_next_one() -> None:
    """Rank 1 lacks one of two batches, so its other batch is not matched by order with a batch of rank 0."""
    of_ranks = {0: of_rank(_batch(1), _batch(1, at=100)), 1: of_rank(_batch(_from(0), at=100))}

    assert _operations(of_ranks) == []


@pytest.mark.parametrize(("late", "count"), [(0, 2), (200, 0)])
def test_without_partners_equal_counts_at_equal_times_match(late, count) -> None:
    """Four ranks have two batches each; the n-th batches of all ranks are matched if they overlap in time.

    They do not match if rank 3 starts each batch only after the other ranks have finished theirs.
    """
    of_ranks = {
        rank: of_rank(
            *(_batch(at=1_000 * turn + (late if rank == 3 else rank), group=RING.number) for turn in (0, 1)),
            groups=(RING,),
        )
        for rank in range(4)
    }

    assert len(_operations(of_ranks)) == count
    if count:
        assert match(of_ranks).calls["matched_by"].unique().to_list() == ["stream_order"]
    else:
        assert "do not all have the same number of such batches at the same times" in match(of_ranks).findings[-1]


def test_a_rank_without_batches_leaves_the_others_unmatched() -> None:
    """Only three of four ranks have a batch, so the batches cannot be matched."""
    silent = of_rank({"times": (0, 1)}, groups=(RING,))
    of_ranks = {rank: of_rank(_batch(group=RING.number), groups=(RING,)) for rank in range(3)} | {3: silent}

    assert match(of_ranks).calls.filter(family="send_recv")["instance"].null_count() == 3


def _request(builder: TraceBuilder, kind: str, peer: int, start_us: int) -> None:
    end = {"send": "Dst Rank", "recv": "Src Rank"}[kind]
    args = {
        "Collective name": kind,
        "In msg nelems": 64,
        "Out msg nelems": 64,
        "Group size": 3,
        "dtype": "Float",
        "Process Group Description": "mesh_cp",
        "Process Group Ranks": "[0, 1, 2]",
        end: peer,
    }
    builder.operator("record_param_comms", start_us=start_us, duration_us=2, args=args)


def test_recorded_requests_name_the_partners_of_a_kernel() -> None:
    """The kernel of `nccl:coalesced` has no args, so the peers come from the requests recorded before its launch."""
    builder = TraceBuilder()
    for rank in range(3):
        builder.rank(rank).header(host_name="node-1")
        for turn in (0, 100):
            _request(builder, "send", (rank + 1) % 3, turn + 5)
            _request(builder, "recv", (rank - 1) % 3, turn + 8)
            builder.annotation("nccl:coalesced", start_us=turn + 12, duration_us=6)
            builder.kernel(
                "ncclDevKernel_SendRecv", stream=20, start_us=turn + 20, duration_us=30 + rank, launch_us=turn + 14
            )
    trace = builder.build()
    of_ranks = {rank: calls.of_rank(rank_trace) for rank, rank_trace in trace.ranks.items()}

    assert of_ranks[0].calls["partners"].to_list() == [[1, _from(2)]] * 2
    assert [len(operation) for operation in _operations(of_ranks)] == [3, 3]
    timed = job_calls(of_ranks).calls
    assert timed["process_group"].unique().to_list() == ["mesh_cp [0-2]"]
    assert timed.filter(rank=2)["wait_ns"].to_list() == [0, 0]
