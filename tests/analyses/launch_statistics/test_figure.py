"""Tests of the launch_statistics figure."""

from __future__ import annotations

from holotrace.analyses.launch_statistics.compute import launch_statistics
from holotrace.analyses.launch_statistics.figure import plot_launch_statistics
from holotrace.testing.builder import TraceBuilder
from jobs import launching_job


def test_launches_are_counted_in_classes_of_length() -> None:
    """Six kernels of 2 µs are shorter than their launch calls and start 285 to 297 µs late; no call is slow."""
    figure = plot_launch_statistics(launch_statistics(launching_job().build()))

    assert [(list(bar.x), list(bar.width), list(bar.y)) for bar in figure.data] == [
        ([2_000], [3_000], [6]),
        ([], [], []),
        ([200_000], [300_000], [6]),
    ]
    assert figure.data[0].customdata[0] == "2 µs to 5 µs: 6 on 2 ranks"
    assert figure.layout.xaxis.ticktext == ("2 µs", "5 µs")


def test_without_bad_launches_the_figure_says_so() -> None:
    """If no kernel is short or late and no call is slow, the figure shows a message."""
    trace = TraceBuilder().kernel("k", start_us=2, duration_us=5, launch_us=0).build()

    (note,) = plot_launch_statistics(launch_statistics(trace)).layout.annotations
    assert "No kernel is shorter" in note.text
