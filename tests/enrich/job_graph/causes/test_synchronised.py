"""`together_before` returns the time at which the ranks of a communication were last synchronised."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.job_graph.causes.synchronised import together_before

CALLS = {"instance": pl.Int64, "rank": pl.Int32, "start_ns": pl.Int64, "wait_ns": pl.Int64, "clock": pl.Int64}


def since(rows, begin_ns):
    """Return, for each call, the time at which its ranks were last synchronised before it; all ranks use one clock."""
    calls = pl.DataFrame(rows, CALLS, orient="row").with_columns(pl.col("start_ns").alias("aligned_start_ns"))
    return together_before(calls, begin_ns).to_list()


def test_ranks_were_together_when_the_last_had_arrived():
    """Rank 1 joins the first communication at 50, so before the second communication, the ranks last met at 50."""
    rows = [(0, 0, 10, 40, 0), (0, 1, 50, 0, 0), (1, 0, 70, 10, 0), (1, 1, 80, 0, 0)]
    assert since(rows, {0: 0, 1: 5}) == [5, 5, 50, 50]


def test_a_larger_communication_counts_but_not_a_smaller_one():
    """All three ranks meet at 20 and 60; the meeting of only ranks 0 and 1 at 40 does not count."""
    all_three = [(0, rank, 20, 0, 0) for rank in range(3)]
    two = [(1, 0, 40, 0, 0), (1, 1, 40, 0, 0)]
    again = [(2, rank, 60, 0, 0) for rank in range(3)]
    assert since([*all_three, *two, *again], dict.fromkeys(range(3), 0)) == [0, 0, 0, 20, 20, 20, 20, 20]


def test_communication_that_overlaps_does_not_count():
    """The first communication is ignored: before rank 1 joins it, rank 0 already starts the second communication."""
    rows = [(0, 0, 10, 40, 0), (0, 1, 50, 0, 0), (1, 0, 30, 30, 0), (1, 1, 60, 0, 0)]
    assert since(rows, {0: 0, 1: 0}) == [0, 0, 0, 0]


def test_on_several_clocks_each_rank_knows_the_time_from_its_own_call():
    """The clock of rank 1 is 1,000 ahead, so the ranks met at 50 on clock 0 and at 1,050 on clock 1."""
    rows = [(0, 0, 10, 40, 0), (0, 1, 1_050, 0, 1), (1, 0, 70, 10, 0), (1, 1, 1_080, 0, 1)]
    calls = pl.DataFrame(rows, CALLS, orient="row").with_columns(
        (pl.col("start_ns") - 1_000 * pl.col("clock")).alias("aligned_start_ns")
    )
    assert together_before(calls, {0: 0, 1: 1_000}).to_list() == [0, 1_000, 50, 1_050]
