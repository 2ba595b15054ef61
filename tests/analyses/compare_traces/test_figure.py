"""Tests of the compare_traces figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.compare_traces.compute import compare_traces
from holotrace.analyses.compare_traces.figure import plot_compare_traces
from holotrace.testing.builder import TraceBuilder
from jobs import MARKUP


def test_the_names_that_changed_most_come_first() -> None:
    """The time of gemm falls from 40 to 10 µs, and relu has 2 calls instead of 1; an unchanged kernel is not drawn."""
    control = TraceBuilder().kernel("gemm", start_us=0, duration_us=40).kernel("relu", start_us=50, duration_us=5)
    control.kernel("same", start_us=60, duration_us=5)
    test = TraceBuilder().kernel("gemm", start_us=0, duration_us=10).kernel("relu", start_us=50, duration_us=5)
    test.kernel("relu", start_us=70, duration_us=5).kernel("same", start_us=60, duration_us=5)
    result = compare_traces(control.build(), test.build())

    by_duration, by_count = plot_compare_traces(result), plot_compare_traces(result, by="count")

    assert list(by_duration.layout.yaxis.ticktext) == ["gemm", "relu"]
    assert {bar.name: list(bar.x) for bar in by_duration.data} == {"control": [40, 5], "test": [10, 10]}
    assert by_duration.layout.xaxis.title.text == "summed duration (µs)"
    assert {bar.name: list(bar.x) for bar in by_count.data} == {"control": [1], "test": [2]}


@pytest.mark.parametrize("by", ["duration", "count"])
def test_equal_traces_give_a_figure_that_says_so(by) -> None:
    """The comparison of a trace with itself shows "Nothing differs." instead of empty axes."""
    trace = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build()
    figure = plot_compare_traces(compare_traces(trace, trace), by=by)
    assert figure.layout.annotations[0].text == "Nothing differs."


def test_names_are_escaped() -> None:
    """A kernel named `<script>` appears escaped in the figure."""
    control, test = TraceBuilder().build(), TraceBuilder().kernel(MARKUP, start_us=0, duration_us=1).build()
    assert "<script" not in plot_compare_traces(compare_traces(control, test)).to_json()
