"""Tests of the inference figure."""

from __future__ import annotations

from holotrace.analyses.inference.compute import inference
from holotrace.analyses.inference.figure import plot_inference
from holotrace.testing.builder import TraceBuilder


def test_bars_hold_the_parts_of_the_mean_step() -> None:
    """In the mean step, the GPU is busy for 85 µs and waits 60 µs for the host and 5 µs for a launch."""
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
    assert [name.text for name in figure.layout.annotations] == ["decode · 8 requests · 2 steps"]


def test_many_batches_are_drawn_as_one_kind() -> None:
    """Steps of 30 different batch sizes share one bar, which shows the mean step."""
    builder = TraceBuilder()
    for batch in range(30, 0, -1):
        builder.annotation(f"decode bs={batch}", start_us=100 * (30 - batch), duration_us=batch)
    figure = plot_inference(inference(builder.build()))
    (bar,) = [bar for bar in figure.data if bar.showlegend]
    assert (bar.name, list(bar.x)) == ("idle, cause unknown", [15.5])
    assert [name.text for name in figure.layout.annotations] == ["decode · 30 steps"]


def test_a_figure_without_steps_says_so() -> None:
    """Without inference steps, the figure shows a message."""
    figure = plot_inference(inference(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build()))
    assert figure.layout.annotations[0].text == "No inference steps were found."
