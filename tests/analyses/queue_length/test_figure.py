"""Tests of the queue_length figure."""

from __future__ import annotations

from holotrace.analyses.queue_length.compute import queue_length
from holotrace.analyses.queue_length.figure import plot_queue_length
from holotrace.testing.builder import TraceBuilder


def test_queue_length_shows_how_long_work_waits() -> None:
    """For 5 of 20 µs, two kernels wait; for 10 µs, one kernel waits; for the other 5 µs, the queue is empty."""
    builder = TraceBuilder()
    for launch, start in ((0, 5), (0, 10), (15, 20)):
        builder.kernel("k", start_us=start, duration_us=1, launch_us=launch)
    figure = plot_queue_length(queue_length(builder.build(), full_length=2))
    assert {bar.name: bar.x[0] for bar in figure.data} == {
        "nothing waits": 25,
        "work waits": 50,
        "the queue is full": 25,
    }
    assert figure.data[2].customdata[0] == "25.0 % · 5 µs (5,000 ns); 1.00 queued on average, 2 at most"
