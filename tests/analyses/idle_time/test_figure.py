"""Tests of the idle_time figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.idle_time.compute import idle_time
from holotrace.analyses.idle_time.figure import plot_idle_time
from holotrace.testing.builder import TraceBuilder
from jobs import gpu_job


def test_idle_time_shows_what_each_device_waited_for() -> None:
    """The device is idle from 60 to 100 µs, with a launch at 80 µs: 20 µs before the launch and 20 µs after it."""
    figure = plot_idle_time(idle_time(gpu_job().build()))
    assert {bar.name: bar.x[0] for bar in figure.data} == {
        "the host": 20,
        "the kernel's start": 20,
        "something else": 0,
    }
    assert figure.data[0].customdata[0] == "50.0 % · 20 µs (20,000 ns) in 1 gap"


def test_idle_time_by_stream_can_show_shares() -> None:
    """Stream 7 is idle from 40 to 100 µs, with a launch at 80 µs, so two thirds of this time are `host_wait`."""
    figure = plot_idle_time(idle_time(gpu_job().build()), by="stream", as_share=True)
    row = list(figure.data[0].y).index("rank 0 · stream 7")
    assert figure.data[0].x[row] == pytest.approx(100 * 40 / 60)


def test_a_figure_without_idle_time_says_so() -> None:
    """With a single kernel there is no gap, so the figure shows a message."""
    result = idle_time(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build())
    assert plot_idle_time(result).layout.annotations[0].text.startswith("No device is idle")
