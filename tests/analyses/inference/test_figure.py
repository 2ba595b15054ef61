"""Tests of the inference figure."""

from __future__ import annotations

from holotrace.analyses.inference.compute import inference
from holotrace.analyses.inference.figure import MOST_ROWS, plot_inference
from holotrace.testing.builder import TraceBuilder


def test_bars_hold_the_parts_of_the_mean_step() -> None:
    """Steps of 100 and 200 µs with 8 requests: 85 µs run on average, after 5 of launch and 60 of waiting for the host."""
    builder = TraceBuilder().annotation("decode bs=8", start_us=0, duration_us=100)
    builder.kernel("gemm", start_us=40, duration_us=60, launch_us=35)
    builder.annotation("decode bs=8", start_us=200, duration_us=200)
    builder.kernel("gemm", start_us=290, duration_us=110, launch_us=285)
    figure = plot_inference(inference(builder.build()))

    assert {bar.name: list(bar.x) for bar in figure.data if bar.showlegend} == {
        "kernels, bound unknown": [85.0],
        "waits for launch": [5.0],
        "waits for host": [60.0],
    }
    assert list(figure.data[0].y) == ["decode · 8 requests · 2 steps"]


def test_only_the_kinds_with_most_time_have_bars() -> None:
    """Of 30 batches, those with the longest steps are drawn, in order of their size."""
    builder = TraceBuilder()
    for batch in range(1, 31):
        builder.annotation(f"decode bs={batch}", start_us=100 * batch, duration_us=batch)
    names = list(plot_inference(inference(builder.build())).data[0].y)
    assert len(names) == MOST_ROWS
    assert (names[0], names[-1]) == ("decode · 15 requests · 1 step", "decode · 30 requests · 1 step")


def test_a_figure_without_steps_says_so() -> None:
    """A trace without steps of inference gives a message."""
    figure = plot_inference(inference(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build()))
    assert figure.layout.annotations[0].text == "No steps of inference were found."
