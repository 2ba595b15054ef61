"""Tests of the source_lines figure."""

from __future__ import annotations

from holotrace.analyses.source_lines.compute import source_lines
from holotrace.analyses.source_lines.figure import plot_source_lines
from holotrace.testing.builder import TraceBuilder
from jobs import HOSTILE


def small() -> TraceBuilder:
    """Return a trace with one line of code: it takes 100 µs, 30 of them in an operator and 20 in a wait.

    The operator launches a kernel of 8 µs.
    """
    builder = TraceBuilder().python("a.py(1): f", start_us=0, duration_us=100)
    builder.operator("aten::mul", start_us=10, duration_us=30)
    builder.runtime("cudaDeviceSynchronize", start_us=60, duration_us=20)
    return builder.kernel("mul", start_us=50, duration_us=8, launch_us=12, launch_duration_us=1)


def test_device_time_is_drawn_if_there_is_any() -> None:
    """The bars show the device time outside and inside the backward pass."""
    figure = plot_source_lines(source_lines(small().build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {"forward and other": [8], "backward": [0]}
    assert list(figure.layout.yaxis.ticktext) == ["a.py(1): f"]


def test_host_time_is_drawn_on_request() -> None:
    """`side="host"` divides the 100 µs into Python, operators and waits."""
    figure = plot_source_lines(source_lines(small().build()), side="host")
    parts = {"Python and built-in functions": [50], "operators and runtime calls": [30], "waits": [20]}
    assert {bar.name: list(bar.x) for bar in figure.data} == parts


def test_names_are_text() -> None:
    """Names from the trace are escaped; time that belongs to no line gets a bar, too."""
    builder = TraceBuilder().python(f"a{HOSTILE}.py(1): f", start_us=0, duration_us=100)
    figure = plot_source_lines(source_lines(builder.operator("op", start_us=0, duration_us=5, thread=9).build()))
    assert "<script>" not in "".join(figure.data[0].customdata)
    assert list(figure.layout.yaxis.ticktext)[1] == "no user code"


def test_without_stacks_the_figure_says_what_to_record() -> None:
    """Without stacks, the message names the option that records them."""
    figure = plot_source_lines(source_lines(TraceBuilder().operator("op", start_us=0, duration_us=5).build()))
    assert "with_stack=True" in figure.layout.annotations[0].text
