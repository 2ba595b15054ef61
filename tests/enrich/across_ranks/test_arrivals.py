"""Tests of the lateness, waiting and transfer of matched calls."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.across_ranks.arrivals import ALIGNED_CLOCKS, ONE_CLOCK, SHORTEST_DURATION, arrivals

_SCHEMA = {
    "instance": pl.Int64,
    "host": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "offset_ns": pl.Int64,
    "half_width_ns": pl.Int64,
}


def _timed(
    *rows: tuple[int | None, str, int, int, int | None, int | None], group_size: int = 2
) -> list[dict[str, object]]:
    """Return the result of `arrivals` for calls given as rows of `_SCHEMA`."""
    calls = pl.DataFrame(list(rows), _SCHEMA, orient="row").with_columns(
        (pl.col("start_ns") + pl.col("offset_ns")).alias("aligned_start_ns"),
        (pl.col("end_ns") + pl.col("offset_ns")).alias("aligned_end_ns"),
        pl.lit(group_size, pl.Int64).alias("group_size"),
        pl.when(pl.col("half_width_ns").is_not_null()).then("host").alias("clock"),
    )
    chosen = ("lateness_ns", "lateness_half_width_ns", "wait_ns", "transfer_ns", "transfer_basis", "is_last")
    return arrivals(calls).select(chosen).to_dicts()


def test_ranks_on_one_host_share_a_clock():
    """The second rank arrives 300 ns late, the first waits for 300 ns, and the transfer takes the next 100 ns."""
    assert _timed((0, "a", 0, 400, 0, 0), (0, "a", 300, 395, 0, 0)) == [
        {
            "lateness_ns": 0,
            "lateness_half_width_ns": 0,
            "wait_ns": 300,
            "transfer_ns": 100,
            "transfer_basis": ONE_CLOCK,
            "is_last": False,
        },
        {
            "lateness_ns": 300,
            "lateness_half_width_ns": 0,
            "wait_ns": 0,
            "transfer_ns": 100,
            "transfer_basis": ONE_CLOCK,
            "is_last": True,
        },
    ]


def test_aligned_clocks_time_a_transfer_that_is_much_longer_than_their_error():
    """Host b's clock is 10 µs (± 20 ns) behind; rank 1 is 300 ns late, and the transfer takes 1,000 ns."""
    first, second = _timed((0, "a", 10_000, 11_300, 0, 0), (0, "b", 300, 1_300, 10_000, 20))

    assert (first["wait_ns"], first["transfer_ns"], first["transfer_basis"]) == (300, 1_000, ALIGNED_CLOCKS)
    assert (second["lateness_ns"], second["lateness_half_width_ns"], second["is_last"]) == (300, 20, True)


def test_lateness_below_the_error_of_the_clocks_is_unknown():
    """A lateness of 300 ns with an error of 500 ns becomes null; waiting and transfer are derived from durations."""
    first, second = _timed((0, "a", 10_000, 11_300, 0, 0), (0, "b", 300, 1_300, 10_000, 500))

    assert second["lateness_ns"] is None
    assert (first["wait_ns"], first["transfer_ns"], first["transfer_basis"]) == (300, 1_000, SHORTEST_DURATION)


def test_unknown_clocks_leave_durations():
    """Without a common clock, the rank with the shortest call is assumed to arrive last."""
    first, second = _timed((0, "a", 0, 400, 0, 0), (0, "b", 7_000, 7_100, None, None))

    assert (first["wait_ns"], second["wait_ns"], second["is_last"]) == (300, 0, True)
    assert (second["lateness_ns"], first["transfer_ns"], first["transfer_basis"]) == (None, 100, SHORTEST_DURATION)


def test_a_missing_rank_makes_the_transfer_an_upper_bound():
    """Both recorded ranks may have waited for the group's two unrecorded ranks, so the transfer is an upper bound."""
    assert {
        row["transfer_basis"] for row in _timed((0, "a", 0, 400, 0, 0), (0, "a", 300, 400, 0, 0), group_size=4)
    } == {SHORTEST_DURATION}


def test_a_call_without_counterpart_has_no_waiting():
    """The transfer of an unmatched call takes at most the call's duration, and its waiting is unknown."""
    expected = {
        "lateness_ns": None,
        "lateness_half_width_ns": None,
        "wait_ns": None,
        "transfer_ns": 400,
        "transfer_basis": SHORTEST_DURATION,
        "is_last": False,
    }
    assert _timed((None, "a", 0, 400, 0, 0), (None, "a", 0, 400, 0, 0)) == [expected, expected]


def test_a_rank_that_ends_before_another_arrives_did_not_wait_for_it():
    """If a buffered send ends before the receive begins, it waits for the difference of their durations: 100 - 50 ns."""
    first, second = _timed((0, "a", 0, 100, 0, 0), (0, "a", 500, 550, 0, 0))

    assert (first["wait_ns"], second["wait_ns"], first["transfer_ns"]) == (50, 0, 50)


def test_ranks_that_arrive_together_wait_for_nobody():
    """If all ranks arrive at the same time, none is the last."""
    assert [row["is_last"] for row in _timed((0, "a", 0, 100, 0, 0), (0, "a", 0, 100, 0, 0))] == [False, False]
