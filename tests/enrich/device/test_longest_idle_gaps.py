"""Tests of the longest idle gaps of a device."""

from __future__ import annotations

from holotrace.enrich.device.longest_idle_gaps import longest_idle_gaps
from holotrace.testing.builder import TraceBuilder


def test_a_gap_knows_when_the_next_work_was_launched() -> None:
    """Device 0 is idle from 10 to 60 µs before a kernel launched at 5 µs; for device 1, no launches were recorded."""
    trace = (
        TraceBuilder()
        .kernel("one", start_us=0, duration_us=10)
        .kernel("two", start_us=60, duration_us=10, launch_us=5)
        .kernel("three", start_us=0, duration_us=10, device=1)
        .kernel("four", start_us=50, duration_us=10, device=1)
        .build()
    )
    gaps = longest_idle_gaps(trace.ranks[0], shortest_ns=0, most=20)

    assert gaps.rows() == [(0, 10_000, 60_000, 5_000), (1, 10_000, 50_000, None)]


def test_only_the_longest_gaps_are_returned() -> None:
    """The gaps last 50, 90, 70 and 10 µs; `most=2` and `shortest_ns=60_000` each select the gaps of 90 and 70 µs."""
    builder = TraceBuilder()
    for start in (0, 60, 160, 240, 260):
        builder.kernel("k", start_us=start, duration_us=10)
    rank_trace = builder.build().ranks[0]

    for shortest_ns, most in ((0, 2), (60_000, 20)):
        gaps = longest_idle_gaps(rank_trace, shortest_ns=shortest_ns, most=most)
        assert (gaps["end_ns"] - gaps["start_ns"]).to_list() == [90_000, 70_000]


def test_a_rank_without_device_work_has_no_gaps() -> None:
    """A rank without device work has an empty table."""
    assert longest_idle_gaps(TraceBuilder().build().ranks[0], shortest_ns=0, most=20).is_empty()
