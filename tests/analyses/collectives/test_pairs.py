"""Tests of the transfers between pairs of ranks."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest

from holotrace.analyses.collectives.compute import Collectives, collectives
from holotrace.analyses.collectives.pairs import per_pair, slow_pairs
from holotrace.testing.builder import TraceBuilder

RANKS = 6
ELEMENTS = 600


def exchanged(*, splits=None, slow=(), count=4, hosts=1, elements=ELEMENTS) -> Collectives:
    """Return `collectives` of all-to-alls of 6 ranks, which take about 100 µs, or 300 µs on the ranks in `slow`.

    `splits` contains the split sizes of each rank; by default, all splits are equal.
    """
    builder = TraceBuilder()
    for rank in range(RANKS):
        builder.rank(rank).header(host_name=f"node-{rank % hosts}")
        for number in range(count):
            builder.collective(
                "all_to_allv",
                elements=elements,
                group_ranks=range(RANKS),
                start_us=1_000 * number,
                duration_us=300 if rank in slow else 100 + rank,
                args={"In split size": str(splits[rank] if splits else [])},
            )
    return collectives(builder.build())


def test_an_even_all_to_all_sends_equal_parts() -> None:
    """In each of four all-to-alls, every rank keeps 400 of its 2,400 bytes and sends 400 to each other rank."""
    pairs = exchanged().per_pair

    assert pairs.select("collective", "instance_count", "bytes").unique().rows() == [("all_to_all", 4, 1_600)]
    assert len(pairs) == RANKS * (RANKS - 1)
    assert pairs.filter(source_rank=2, destination_rank=5)["median_transfer_ns"].to_list() == [102_000]


def test_splits_divide_an_uneven_all_to_all() -> None:
    """Rank 0 sends half of its rows to rank 1 and nothing to rank 2."""
    splits = [[1, 5, 0, 2, 1, 1], *[[1] * RANKS] * 5]

    pairs = exchanged(splits=splits).per_pair

    of_first = pairs.filter(source_rank=0).select("destination_rank", "bytes").rows()
    assert of_first == [(1, 4 * 1_200), (3, 4 * 480), (4, 4 * 240), (5, 4 * 240)]
    whole = pairs.filter(source_rank=0, destination_rank=1)
    assert whole["median_bytes_per_s"].to_list() == pytest.approx([1_200 / 100e-6])


def test_unknown_splits_give_no_pairs() -> None:
    """If the profiler cut off the list of splits, the bytes sent to each rank are unknown."""
    assert exchanged(splits=[["1", "2", "..."]] * RANKS).per_pair.is_empty()


def test_a_slow_pair_of_an_all_to_all_is_named() -> None:
    """Only ranks 1 and 4 leave each all-to-all late, so transfers between them are slow; a finding names the pair."""
    result = exchanged(slow=(1, 4))

    slow = result.per_pair.filter("is_slow").select("source_rank", "destination_rank").rows()
    assert slow == [(1, 4), (4, 1)]
    assert any("between ranks 1 and 4" in finding for finding in result.findings)


def test_a_rank_that_alone_leaves_late_has_no_slow_pair() -> None:
    """Only rank 1 leaves late. A slow transfer delays its sender and its receiver, so no pair is slow."""
    result = exchanged(slow=(1,))

    assert not result.per_pair["is_slow"].any()


def test_a_few_transfers_are_not_judged() -> None:
    """After only two all-to-alls, `is_slow` is null for all pairs."""
    assert exchanged(slow=(1, 4), count=2).per_pair["is_slow"].null_count() == RANKS * (RANKS - 1)


def test_unaligned_clocks_give_all_pairs_the_time_of_the_whole() -> None:
    """If the hosts' clocks cannot be aligned, each pair gets the time of the whole collective, and no pair is slow."""
    pairs = exchanged(slow=(1, 4), hosts=2, count=4).per_pair

    assert pairs["median_transfer_ns"].n_unique() == 1
    assert not pairs["is_slow"].any()


@pytest.mark.parametrize(("dtype", "slowdowns"), [("Float", [2 / 3, 4 / 3]), ("Unknown", [None, None])])
def test_sends_of_unknown_size_are_not_compared(dtype: str, slowdowns: list[float | None]) -> None:
    """The slowdown of sends of 100 and 200 µs is computed if their sizes are known; otherwise, it is null."""
    builder = TraceBuilder()
    for rank, number in product(range(4), range(3)):
        source = rank - rank % 2
        builder.rank(rank).collective(
            "recv" if rank % 2 else "send",
            dtype=dtype,
            group_ranks=range(4),
            start_us=1_000 * number,
            duration_us=200 if source else 100,
            args={"Src Rank": source, "Dst Rank": source + 1},
        )

    assert collectives(builder.build()).per_pair["slowdown"].to_list() == pytest.approx(slowdowns)


def _simulated(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, tuple[int, int] | None, int]:
    """Simulate noisy all-to-alls on one host; return the calls, the groups, the slow pair and the number of ranks.

    In half of the jobs, one pair is slow: it takes 1.6 to 4 times as long as the others. Otherwise the pair is None.
    """
    dice = np.random.default_rng(seed)
    ranks, count = int(dice.choice((4, 8, 16, 32))), int(dice.choice((5, 20)))
    transfer = float(dice.uniform(30_000, 500_000))
    planted = tuple(sorted(dice.choice(ranks, 2, replace=False).tolist())) if dice.random() < 0.5 else None
    ends = transfer + dice.exponential(2_000, (count, ranks))
    if planted:
        ends[:, planted] = transfer * dice.uniform(1.6, 4)
    start = 10_000_000 * np.arange(count)[:, None] - dice.integers(0, 1_000_000, (count, ranks))
    start[:, 0] = 10_000_000 * np.arange(count)
    calls = pl.DataFrame(
        {
            "operation": np.repeat(np.arange(count), ranks),
            "rank": np.tile(np.arange(ranks, dtype=np.int32), count),
            "aligned_start_ns": start.astype(np.int64).ravel(),
            "aligned_end_ns": (10_000_000 * np.arange(count)[:, None] + ends).astype(np.int64).ravel(),
        }
    ).with_columns(
        instance="operation",
        collective=pl.lit("all_to_all"),
        host=pl.lit("a"),
        group=pl.lit(1, pl.UInt64),
        group_size=pl.lit(ranks, pl.Int64),
        in_splits=pl.lit(None, pl.List(pl.Int64)),
        is_even=pl.lit(value=True),
        in_bytes=pl.lit(1 << 20, pl.Int64),
        message_bytes=pl.lit(1 << 20, pl.Int64),
        dtype=pl.lit("float32"),
        peer=pl.lit(None, pl.Int32),
        transfer_ns=pl.lit(int(transfer), pl.Int64),
        transfer_basis=pl.lit("one clock"),
    )
    groups = pl.DataFrame(
        {"group": [1], "ranks": [list(range(ranks))]}, {"group": pl.UInt64, "ranks": pl.List(pl.Int32)}
    )
    return calls, groups, planted, ranks


@pytest.mark.slow
def test_planted_slow_pairs_are_named_and_no_others() -> None:
    """In 60 simulated jobs of 4 to 32 ranks, the slow pair is found in both directions, and no other pair is."""
    for seed in range(60):
        calls, groups, planted, _ = _simulated(seed)

        pairs = per_pair(calls, groups)

        named = pairs.filter("is_slow").select("source_rank", "destination_rank").rows()
        assert named == ([planted, planted[::-1]] if planted else []), seed
        assert bool(slow_pairs(pairs)) == (planted is not None)


def test_more_all_to_alls_than_can_be_counted_are_left_out(monkeypatch) -> None:
    """With a limit of 80 transfers, only two of four all-to-alls (36 transfers each) are counted; a finding says so."""
    monkeypatch.setattr("holotrace.analyses.collectives.pairs.MOST_TRANSFERS", 80)

    result = exchanged()

    assert result.per_pair["instance_count"].unique().to_list() == [2]
    assert any("covers only the first 80 of 144 all-to-all transfers" in finding for finding in result.findings)
