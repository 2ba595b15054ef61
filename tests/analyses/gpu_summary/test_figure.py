"""Tests of the gpu_summary figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.gpu_summary.compute import GpuSummary, gpu_summary
from holotrace.analyses.gpu_summary.figure import plot_gpu_summary
from holotrace.testing.builder import TraceBuilder
from jobs import stepping_job


def test_one_device_is_drawn_over_time() -> None:
    """Each line starts at the first step and shows one value for each of three parts of 10 ms."""
    figure = plot_gpu_summary(gpu_summary(stepping_job().build(), parts=3))

    lines = {line.name: list(line.y) for line in figure.data}
    assert list(figure.data[0].x) == [0, 10, 20, 30]
    assert lines["utilization"] == pytest.approx([40, 40, 0, 0])
    assert lines["est. SM efficiency"] == pytest.approx([20, 20, 0, 0])
    assert lines["est. achieved occupancy"][:2] == pytest.approx([25, 25])


def test_devices_are_side_by_side_and_one_can_be_selected() -> None:
    """With two devices, each metric has a marker per device; the option `device` shows one device over time."""
    result = gpu_summary(stepping_job(2).build(), parts=2)

    assert {line.name: len(line.y) for line in plot_gpu_summary(result).data} == {
        "utilization": 2,
        "est. SM efficiency": 2,
        "est. achieved occupancy": 2,
        "kernel time on tensor cores": 2,
    }
    assert len(plot_gpu_summary(result, device=(1, 0)).data[0].x) == 3
    (note,) = plot_gpu_summary(result, device=(9, 0)).layout.annotations
    assert "No matching device" in note.text


def test_a_figure_without_devices_says_so() -> None:
    """Without devices, the figure shows a message."""
    result = gpu_summary(stepping_job().build())
    empty = GpuSummary(result.per_device.clear(), result.series.clear())
    assert plot_gpu_summary(empty).layout.annotations[0].text.startswith("No matching device")


def test_a_partly_unknown_share_is_a_lower_bound_over_time() -> None:
    """Of 100 µs, 40 are on tensor cores and 50 are unknown, so the hover text says "at least 40.0 %"."""
    builder = TraceBuilder().step(1, 0, 100).kernel("nvjet_tst_64x8", start_us=0, duration_us=40)
    builder.kernel("relu", start_us=40, duration_us=10).kernel("mystery", start_us=50, duration_us=50)

    line = plot_gpu_summary(gpu_summary(builder.build(), parts=1)).data[-1]

    assert line.name == "kernel time on tensor cores"
    assert line.customdata[0] == "at least 40.0 % (50.0 % of the kernel time unknown)"
