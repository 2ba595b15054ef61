"""Tests of compiled regions."""

from __future__ import annotations

from pathlib import Path

import pytest

import holotrace
from holotrace.testing.builder import TraceBuilder

EXAMPLES = Path(__file__).parents[3] / "examples" / "gpu" / "traces"


def compiled_job() -> TraceBuilder:
    """Call region 0/0 once and region 0/1 twice; the second call of 0/1 replays a graph. Compile once, for 40 µs."""
    builder = TraceBuilder()
    for number, region in enumerate(("0/0", "0/1", "0/1")):
        start = 100 * number
        builder.operator("TorchDynamo Cache Lookup", start_us=start, duration_us=5)
        builder.operator(f"Torch-Compiled Region: {region}", start_us=start + 10, duration_us=30)
        builder.operator("CompiledFunction", start_us=start + 11, duration_us=20)
        if number < 2:
            source = {"kernel_file": "/cache/a.py", "kernel_backend": "triton"}
            builder.operator("triton_poi_fused_add_0", start_us=start + 12, duration_us=6, args=source)
            builder.kernel("triton_poi_fused_add_0", start_us=start + 50, duration_us=9, launch_us=start + 13)
        else:
            builder.runtime("cudaGraphLaunch", start_us=start + 12, duration_us=3, correlation=7)
            builder.kernel("triton_poi_fused_add_0", start_us=start + 50, duration_us=9, correlation=7)
    builder.operator("_compile.compile_inner (dynamo_timed)", start_us=400, duration_us=40)
    builder.operator("_compile.compile_inner", start_us=401, duration_us=38)
    builder.event(
        ph="X", cat="python_function", name="a.py(9): torch_dynamo_resume_in_f_at_9", pid=1000, tid=1, ts=500, dur=5
    )
    return builder.kernel("eager", start_us=600, duration_us=9, launch_us=550)


def test_regions_costs_and_kernels():
    """Guards take 15 µs, compiling 40; 27 of 36 µs of device time are compiled; calls without a graph give the one in it its source."""
    result = holotrace.compiled_regions(compiled_job().build())

    assert result.per_region.rows() == [(0, "0/1", True, 2, 60_000, 18_000, 1), (0, "0/0", False, 1, 30_000, 9_000, 0)]
    assert result.per_rank.rows() == [(0, 1, 40_000, 3, 15_000, 1, 27_000, 0.75)]
    assert result.per_kernel.rows() == [(0, "triton_poi_fused_add_0", "/cache/a.py", 3, 27_000)]
    assert result.findings == (
        "rank 0: torch.compile compiled 1 time during the recording, for 40 µs",
        "rank 0: 1 region had been compiled again, because a guard failed",
        "rank 0: 1 function continued after a graph break",
    )
    assert result.answer == "2 compiled regions ran; compiling took 40 µs."


def test_a_job_without_torch_compile_has_empty_tables():
    """Every table is empty, and there is no finding."""
    result = holotrace.compiled_regions(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build())

    assert result.per_region.is_empty()
    assert result.per_rank.is_empty()
    assert result.per_kernel.is_empty()
    assert result.findings == ()


def test_graph_breaks_that_leave_nothing_to_compile_are_reported():
    """Each layer of the recorded job breaks the graph, so its calls run no compiled region."""
    result = holotrace.compiled_regions(
        holotrace.open_trace(EXAMPLES / "compiled-graph_breaks" / "rank0.pt.trace.json.gz")
    )

    assert result.per_region.is_empty()
    assert "2 calls of functions under torch.compile ran no compiled region" in result.findings[0]


@pytest.mark.parametrize("name", ["compiled", "compiled-recompiles"])
def test_the_tables_equal_their_golden_copies(golden, name):
    """The tables of recorded jobs equal their golden copies."""
    result = holotrace.compiled_regions(holotrace.open_trace(EXAMPLES / name / "rank0.pt.trace.json.gz"))

    golden.check(result.per_region, f"compiled_regions/{name}.per_region")
    golden.check(result.per_rank, f"compiled_regions/{name}.per_rank")
    golden.check(result.per_kernel, f"compiled_regions/{name}.per_kernel")
