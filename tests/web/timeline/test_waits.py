"""Tests of the longest waits in collectives."""

from __future__ import annotations

from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from holotrace.web.timeline.waits import longest_waits


def collectives() -> Trace:
    """Return two all-reduces of two ranks; rank 1 enters them 60 and 20 µs after rank 0."""
    builder = TraceBuilder()
    for rank, start in ((0, 0), (1, 60)):
        builder.collective("allreduce", start_us=start, duration_us=100 - start, rank=rank)
        builder.collective("allreduce", start_us=200 + start // 3, duration_us=50 - start // 3, rank=rank)
    return builder.build()


def test_a_rank_waits_for_the_one_that_enters_last() -> None:
    """Rank 0 waits for rank 1, first for 60 µs and then for 20 µs."""
    assert longest_waits(collectives(), shortest_ns=0, most=20).table.rows() == [
        (0, "all_reduce", 0, 60_000, 0, 1, 0),
        (0, "all_reduce", 200_000, 20_000, 0, 1, 1),
        (1, "all_reduce", 60_000, 0, 60_000, 1, 0),
        (1, "all_reduce", 220_000, 0, 20_000, 1, 1),
    ]


def test_only_the_longest_waits_are_returned() -> None:
    """With `most=1` or `shortest_ns=30_000`, only the collective with the wait of 60 µs is returned, once per rank."""
    for shortest_ns, most in ((0, 1), (30_000, 20)):
        table = longest_waits(collectives(), shortest_ns=shortest_ns, most=most).table
        assert table.select("rank", "start_ns").rows() == [(0, 0), (1, 60_000)]


def test_a_single_rank_has_no_waits() -> None:
    """For a single rank, with or without collectives, the table is empty."""
    assert longest_waits(collectives().select([0]), shortest_ns=1, most=20).table.is_empty()
    alone = TraceBuilder().kernel("k", start_us=0, duration_us=10).build()
    assert longest_waits(alone, shortest_ns=1, most=20).table.is_empty()
