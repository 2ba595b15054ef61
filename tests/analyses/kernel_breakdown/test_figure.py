"""Tests of the kernel_breakdown figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.kernel_breakdown.compute import kernel_breakdown
from holotrace.analyses.kernel_breakdown.figure import plot_kernel_breakdown
from holotrace.testing.builder import TraceBuilder
from jobs import gpu_job


def test_kernel_breakdown_shows_states_and_kernels() -> None:
    """The states add up to 100 % of the busy time; kernels are summed over ranks."""
    figure = plot_kernel_breakdown(kernel_breakdown(gpu_job().build()))
    states = {bar.name: list(bar.x) for bar in figure.data if bar.xaxis == "x"}
    assert states == {
        "computation": pytest.approx([100 * 30 / 70, 100]),
        "communication": pytest.approx([100 * 20 / 70, 0]),
        "computation + communication": pytest.approx([100 * 20 / 70, 0]),
    }
    kernels = [
        (key, value) for bar in figure.data if bar.xaxis == "x2" for key, value in zip(bar.y, bar.x, strict=True)
    ]
    assert sorted(kernels) == [("0", 140_000), ("1", 40_000), ("2", 10_000)]


def test_kernels_that_look_alike_keep_their_own_bars_and_labels() -> None:
    """The labels of kernels whose names differ only in one template argument show that argument."""
    names = [f"void at::f<{'x' * 200}, {number}>(int)" for number in range(3)]
    builder = TraceBuilder()
    for number, name in enumerate(names):
        builder.kernel(name, start_us=10 * number, duration_us=5)
    figure = plot_kernel_breakdown(kernel_breakdown(builder.build()))
    axis = figure.layout.yaxis2
    assert axis.ticktext == ("f&lt;…0…&gt;", "f&lt;…1…&gt;", "f&lt;…2…&gt;")
    assert len(set(axis.tickvals)) == len(figure.data[-1].y) == 3


def test_kernel_breakdown_says_how_many_kernels_it_leaves_out() -> None:
    """The figure draws 15 of 20 kernels, and the title gives the share of the other 5."""
    builder = TraceBuilder()
    for number in range(20):
        builder.kernel(f"k{number}", start_us=10 * number, duration_us=5)
    figure = plot_kernel_breakdown(kernel_breakdown(builder.build()))
    title, *names = (annotation.text for annotation in figure.layout.annotations)
    assert title == "The 15 kernels that take the most time; the other 5 take 25.0 %"
    assert names == list(figure.layout.yaxis2.ticktext)
