"""Tests of matching the calls of recorded jobs, both complete and with one call removed."""

from __future__ import annotations

import functools

import polars as pl
import pytest

from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.across_ranks.matching.matching import match
from recordings import opened


@functools.cache
def _of_ranks(folder):
    return {rank: of_rank(rank_trace) for rank, rank_trace in opened(folder).ranks.items()}


def _operations(matching) -> set[frozenset[tuple[int, int]]]:
    calls = (
        matching.calls.drop_nulls("instance").group_by("instance").agg(pl.struct("rank", "event_index").alias("calls"))
    )
    return {frozenset((call["rank"], call["event_index"]) for call in operation) for operation in calls["calls"]}


def _without_call(of_ranks, rank, number):
    """Remove one call; return the remaining calls of all ranks, and the removed call as (rank, event_index)."""
    calls = of_ranks[rank].calls
    kept = calls.filter(pl.int_range(pl.len()) != number)
    return {**of_ranks, rank: of_ranks[rank]._replace(calls=kept)}, (rank, calls["event_index"][number])


@pytest.mark.parametrize(("name", "count", "size"), [("dlrm_8rank", 8, 8), ("ddp_gloo_4rank", 12, 4)])
def test_all_collectives_of_a_job_match(name, count, size, real_traces) -> None:
    """Without recorded groups and sequence numbers, calls still match, as all ranks make them at the same times."""
    operations = _operations(match(_of_ranks(real_traces / name)))

    assert [len(operation) for operation in operations] == [size] * count


def test_sampled_ranks_match_where_possible(real_traces) -> None:
    """The traces of two of 128 ranks lack some kernels; the calls that match end within 0.4 ms of each other."""
    calls = match(_of_ranks(real_traces / "two_rank_128")).calls.drop_nulls("instance")

    ends = calls.group_by("instance").agg((pl.col("end_ns").max() - pl.col("end_ns").min()).alias("spread"))["spread"]
    assert len(ends) == 5
    assert ends.max() < 400_000
    assert sorted(calls.filter(rank=0)["family"]) == [
        "all_gather",
        "all_gather",
        "all_reduce",
        "all_reduce",
        "all_to_all",
    ]


@pytest.mark.parametrize(("rank", "number"), [(0, 0), (2, 3), (7, 7)])
def test_a_missing_kernel_shifts_no_other(rank, number, real_traces) -> None:
    """If a kernel is missing, its operation has one call fewer, and all other matches stay the same."""
    of_ranks = _of_ranks(real_traces / "dlrm_8rank")

    fewer, missing = _without_call(of_ranks, rank, number)

    assert _operations(match(fewer)) == {operation - {missing} for operation in _operations(match(of_ranks))}


def test_all_reduces_of_a_pipeline_belong_to_the_data_parallel_groups(real_traces) -> None:
    """All four ranks run equally many all-reduces of the same sizes; only the times show which ranks form a group."""
    matching = match(_of_ranks(real_traces / "pipeline_gloo_4rank"))

    inferred = matching.groups.filter(description="mesh_dp").select("ranks", "is_inferred").rows()
    assert sorted(inferred) == [([0, 1], True), ([2, 3], True)]
    per_rank = (
        matching.calls.filter(family="all_reduce").group_by("rank").agg(pl.col("instance").drop_nulls().n_unique())
    )
    assert per_rank["instance"].to_list() == [54] * 4


def test_sends_of_a_pipeline_match_their_receives(real_traces) -> None:
    """Without recorded groups and peers, the 12 sends of each rank match the receives of its peer."""
    calls = match(_of_ranks(real_traces / "pipeline_gloo_4rank")).calls.filter(matched_by="send_receive")

    pairs = calls.filter(family="send").group_by("rank", "peer").len().sort("rank").rows()
    assert pairs == [(0, 2, 12), (1, 3, 12), (2, 0, 12), (3, 1, 12)]
    assert calls["instance"].n_unique() == 48


@pytest.mark.parametrize(("rank", "number"), [(0, 12), (1, 30), (2, 40), (3, 70), (0, 2), (1, 2), (2, 1), (3, 3)])
def test_a_missing_call_of_a_pipeline_makes_no_wrong_match(rank, number, real_traces) -> None:
    """If one of many similar calls is missing, up to three other operations stay unmatched, but no match is wrong."""
    of_ranks = _of_ranks(real_traces / "pipeline_gloo_4rank")
    whole = _operations(match(of_ranks))

    fewer, missing = _without_call(of_ranks, rank, number)

    left = {operation for operation in whole if missing not in operation}
    found = _operations(match(fewer))
    assert found <= left
    assert len(found) >= len(left) - 3
