"""Tests of the roofline figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.roofline.compute import roofline
from holotrace.analyses.roofline.figure import plot_roofline
from holotrace.testing.builder import TraceBuilder

PRODUCT = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}


def product() -> TraceBuilder:
    """Return a matrix product that takes 2 ms on an H100."""
    builder = TraceBuilder().header(deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])
    builder.operator("aten::mm", start_us=0, duration_us=10, args=PRODUCT)
    return builder.kernel("nvjet_<script>", start_us=100, duration_us=2_000, launch_us=1)


def test_a_dot_has_the_numbers_of_its_operator() -> None:
    """The product is a dot at 2731 FLOP/byte and 550 TFLOP/s, below a roof of 989.4 TFLOP/s."""
    figure = plot_roofline(roofline(product().build()))
    dots = {trace.name: (list(trace.x), list(trace.y)) for trace in figure.data if trace.mode == "markers"}
    assert dots["products"] == ([pytest.approx(2730.67, abs=0.01)], [pytest.approx(549.76, abs=0.01)])
    (roof,) = [trace for trace in figure.data if trace.mode == "lines"]
    assert (roof.name, roof.y[-1]) == ("bfloat16 peak", 989.4)


def test_without_known_costs_the_figure_says_so() -> None:
    """The only operator has no shapes, so the figure shows a message."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=10)
    figure = plot_roofline(roofline(builder.kernel("gemm", start_us=20, duration_us=5, launch_us=1).build()))
    assert "No operator has a known number" in figure.layout.annotations[0].text + str(figure.layout.title.text)
