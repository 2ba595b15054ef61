"""Tests of the kernels figure."""

from __future__ import annotations

from holotrace.analyses.kernels.compute import Kernels, kernels
from holotrace.analyses.kernels.figure import plot_kernels
from holotrace.testing.builder import TraceBuilder
from jobs import stepping_job


def bars(figure) -> dict[str, list[float]]:
    """Return the bar lengths of each entry in the legend."""
    return {bar.name: list(bar.x) for bar in figure.data if bar.showlegend is not False}


def test_kernels_have_the_colour_of_their_cores() -> None:
    """One kernel takes 16 ms on ordinary cores, another 6 ms on tensor cores; names are escaped."""
    builder = stepping_job(2)
    builder.kernel("nvjet_tst_64x8", start_us=0, duration_us=6_000)
    figure = plot_kernels(kernels(builder.build()))

    assert bars(figure) == {
        "on tensor or matrix cores": [0, 6],
        "on ordinary cores": [16, 0],
        "unknown": [0, 0],
    }
    assert "<script>" not in figure.data[0].customdata[0]
    assert "mean blocks per SM 0.50" in figure.data[0].customdata[0]
    assert figure.layout.title.subtitle.text == "27.3 % of all kernel time is spent on tensor cores"


def test_the_subtitle_counts_kernels_with_unknown_cores() -> None:
    """60 % of the time is spent on tensor cores and 30 % is unknown, so the subtitle says "At least 60.0 %"."""
    builder = TraceBuilder().kernel("nvjet_tst_64x8", start_us=0, duration_us=60)
    builder.kernel("mystery", start_us=60, duration_us=30).kernel("relu", start_us=90, duration_us=10)

    figure = plot_kernels(kernels(builder.build()))

    subtitle = "At least 60.0 % of all kernel time is spent on tensor cores; for another 30.0 %, the kernel names do not show which cores were used"
    assert figure.layout.title.subtitle.text == subtitle


def test_kernels_beyond_the_top_are_counted() -> None:
    """The subtitle says how many kernels `top` leaves out; without kernels, the figure shows a message."""
    builder = TraceBuilder()
    for name in "abc":
        builder.kernel(name, start_us=0, duration_us=1)
    result = kernels(builder.build())

    assert "1 more are left out" in plot_kernels(result, top=2).layout.title.subtitle.text
    empty = Kernels(result.per_kernel.clear(), result.per_launch_shape.clear())
    assert plot_kernels(empty).layout.annotations[0].text == "No rank runs a kernel."
