"""The figures of launches, operators and sequences hold the numbers of their results."""

from __future__ import annotations

from holotrace.analyses.kernel_sequences.compute import kernel_sequences
from holotrace.analyses.kernel_sequences.figure import plot_kernel_sequences
from holotrace.analyses.launch_statistics.compute import launch_statistics
from holotrace.analyses.launch_statistics.figure import plot_launch_statistics
from holotrace.analyses.operator_kernels.compute import operator_kernels
from holotrace.analyses.operator_kernels.figure import plot_operator_kernels
from holotrace.testing.builder import TraceBuilder
from jobs import MARKUP


def job() -> TraceBuilder:
    """Two ranks: an operator that launches three kernels of 2 µs each, in calls of 5 µs."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).operator("aten::mm", start_us=0, duration_us=30)
        for place, name in enumerate(("a", "b", MARKUP)):
            builder.kernel(name, start_us=300 + place, duration_us=2, launch_us=6 * place, launch_duration_us=5)
    return builder


def test_launches_are_counted_in_classes_of_length() -> None:
    """Six kernels of 2 µs are shorter than their calls, and start 285 to 297 µs after them; no call is slow."""
    figure = plot_launch_statistics(launch_statistics(job().build()))

    assert [(list(bar.x), list(bar.y)) for bar in figure.data] == [
        (["2 µs to 5 µs"], [6]),
        ([], []),
        (["200 µs to 500 µs"], [6]),
    ]
    assert figure.data[0].customdata[0] == "on 2 ranks"


def test_without_bad_launches_the_figure_says_so() -> None:
    """A kernel as long as its call that starts soon."""
    trace = TraceBuilder().kernel("k", start_us=2, duration_us=5, launch_us=0).build()

    (note,) = plot_launch_statistics(launch_statistics(trace)).layout.annotations
    assert "No kernel is shorter" in note.text


def test_sequences_show_time_and_count() -> None:
    """One sequence, on two ranks: 12 µs of kernels, launched twice; the hover spells markup out."""
    (bar,) = plot_kernel_sequences(kernel_sequences(job().build())).data

    assert (list(bar.x), list(bar.y), list(bar.text)) == ([12], ["1. aten::mm, 3 kernels"], ["2 calls"])
    assert "<script>" not in bar.customdata[0]


def test_without_sequences_the_figure_says_so() -> None:
    """No call launches so many."""
    (note,) = plot_kernel_sequences(kernel_sequences(job().build(), min_kernel_count=4)).layout.annotations
    assert "launches so many" in note.text


def test_operators_show_forward_and_backward_time() -> None:
    """12 µs of kernels forward, none backward."""
    figure = plot_operator_kernels(operator_kernels(job().build()))

    assert {bar.name: list(bar.x) for bar in figure.data} == {"forward": [12], "backward": [0]}
    assert list(figure.data[0].y) == ["1. aten::mm"]


def test_without_operators_the_figure_says_so() -> None:
    """A kernel that nobody launched."""
    trace = TraceBuilder().kernel("k", start_us=0, duration_us=5).build()

    (note,) = plot_operator_kernels(operator_kernels(trace)).layout.annotations
    assert "belongs to a known operator" in note.text
