"""Tests of the operator_kernels figure."""

from __future__ import annotations

from holotrace.analyses.operator_kernels.compute import operator_kernels
from holotrace.analyses.operator_kernels.figure import plot_operator_kernels
from holotrace.testing.builder import TraceBuilder
from jobs import launching_job


def test_operators_show_forward_and_backward_time() -> None:
    """For aten::mm, the bars show 12 µs of forward kernels and 0 µs of backward kernels."""
    figure = plot_operator_kernels(operator_kernels(launching_job().build()))

    assert {bar.name: list(bar.x) for bar in figure.data} == {"forward": [12], "backward": [0]}
    assert [name.text for name in figure.layout.annotations] == ["aten::mm"]


def test_without_operators_the_figure_says_so() -> None:
    """If no kernel has a known launch, the figure shows a message."""
    trace = TraceBuilder().kernel("k", start_us=0, duration_us=5).build()

    (note,) = plot_operator_kernels(operator_kernels(trace)).layout.annotations
    assert "has a known operator" in note.text
