"""Tests of the figure of compiled regions."""

from __future__ import annotations

from holotrace.analyses.compiled_regions.compute import compiled_regions
from holotrace.analyses.compiled_regions.figure import plot_compiled_regions
from holotrace.testing.builder import TraceBuilder
from jobs import HOSTILE


def test_bars_are_generated_kernels_with_their_source():
    """The bar shows the kernel's 7 µs, and the hover text contains the escaped name of the kernel's source file."""
    builder = TraceBuilder()
    builder.operator("triton_poi_fused_a_0", start_us=0, duration_us=5, args={"kernel_file": f"/a{HOSTILE}.py"})
    figure = plot_compiled_regions(
        compiled_regions(builder.kernel("k", start_us=9, duration_us=7, launch_us=1).build())
    )

    assert [list(bar.x) for bar in figure.data] == [[7]]
    assert "<script>" not in "".join(figure.data[0].customdata)


def test_without_device_work_bars_are_regions_on_the_host():
    """A trace with region 0/0 but no kernels has one bar, for the region."""
    trace = TraceBuilder().operator("Torch-Compiled Region: 0/0", start_us=0, duration_us=5).build()
    figure = plot_compiled_regions(compiled_regions(trace))

    assert list(figure.layout.yaxis.ticktext) == ["region 0/0"]


def test_a_job_without_torch_compile_says_so():
    """Without compiled regions, the figure shows a message instead of axes."""
    figure = plot_compiled_regions(compiled_regions(TraceBuilder().build()))

    assert "no compiled regions" in figure.layout.annotations[0].text
