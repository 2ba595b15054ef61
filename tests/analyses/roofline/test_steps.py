"""Tests of the MFU and HFU of steps, and of the time of modules."""

from __future__ import annotations

from pathlib import Path

import pytest

import holotrace
from holotrace.analyses.roofline.compute import Roofline, roofline
from holotrace.testing.builder import TraceBuilder

H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}
PRODUCT = {"Input Dims": [[8192, 8192], [8192, 8192]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
FLOPS = 2 * 8192**3
SECONDS = FLOPS / 989.4e12
JOBS = Path(__file__).parents[3] / "examples" / "gpu" / "traces"


def unknown_reasons(result: Roofline) -> set[str]:
    """Return the reasons for unknown costs."""
    return set(result.per_operator.filter(result.per_operator["bytes_moved"].is_null())["reason"])


def job() -> TraceBuilder:
    """Return a step of 10 ms with three matrix products: a forward one, its recomputation, and one for a gradient."""
    builder = TraceBuilder().header(**H100).step(1, 0, 10_000)
    builder.operator("aten::mm", start_us=0, duration_us=10, args=PRODUCT)
    builder.kernel("nvjet_a", start_us=100, duration_us=2_000, launch_us=1)
    builder.operator("MmBackward0", start_us=20, duration_us=50, args={"Sequence number": 1, "Fwd thread id": 1})
    builder.operator(
        "aten::mm", start_us=21, duration_us=10, args={**PRODUCT, "Sequence number": 5, "Fwd thread id": 0}
    )
    builder.kernel("nvjet_b", start_us=3_000, duration_us=2_000, launch_us=22)
    builder.operator("aten::mm", start_us=40, duration_us=10, args=PRODUCT)
    return builder.kernel("nvjet_c", start_us=6_000, duration_us=2_000, launch_us=41)


def test_utilization_of_a_step() -> None:
    """MFU counts two products (22.2 % of the peak); HFU also counts the recomputed product (33.3 %)."""
    row = roofline(job().build()).per_step.row(0, named=True)
    assert (row["step"], row["step_ns"]) == (1, 10_000_000)
    assert (row["model_flops"], row["hardware_flops"], row["dense_flops"]) == (2 * FLOPS, 3 * FLOPS, 3 * FLOPS)
    assert row["mfu_fraction"] == pytest.approx(2 * SECONDS / 0.01)
    assert row["hfu_fraction"] == pytest.approx(3 * SECONDS / 0.01)


def test_without_steps_the_recording_is_one() -> None:
    """Without steps, one row describes the whole recording; its step is null."""
    builder = TraceBuilder().header(**H100).operator("aten::mm", start_us=0, duration_us=10, args=PRODUCT)
    builder.kernel("nvjet_a", start_us=2_000, duration_us=2_000, launch_us=1)
    row = roofline(builder.build()).per_step.row(0, named=True)
    assert (row["step"], row["step_ns"]) == (None, 4_000_000)
    assert row["mfu_fraction"] == pytest.approx(SECONDS / 0.004)


def test_an_unknown_peak_makes_the_utilization_unknown() -> None:
    """A V100 has no float8 peak, so the FLOPs of a float8 product are known but MFU is null."""
    args = {**PRODUCT, "Input type": ["c10::Float8_e4m3fn", "c10::Float8_e4m3fn"]}
    builder = TraceBuilder().header(deviceProperties=[{"id": 0, "name": "Tesla V100-SXM2-16GB"}])
    builder.operator("aten::mm", start_us=0, duration_us=10, args=args).kernel(
        "gemm", start_us=20, duration_us=9, launch_us=1
    )
    row = roofline(builder.build()).per_step.row(0, named=True)
    assert (row["model_flops"], row["mfu_fraction"]) == (FLOPS, None)


def test_a_utilization_above_1_is_reported() -> None:
    """A product that needs 1.1 ms at peak was recorded as taking 0.5 ms, so HFU is above 1, and a finding says so."""
    builder = (
        TraceBuilder().header(**H100).step(1, 0, 600).operator("aten::mm", start_us=0, duration_us=10, args=PRODUCT)
    )
    result = roofline(builder.kernel("nvjet_a", start_us=100, duration_us=500, launch_us=1).build())
    assert result.per_step["hfu_fraction"].item() > 1
    assert any("HFU above 100 %" in finding for finding in result.findings)


def test_backward_work_counts_for_the_module_of_the_forward_operator() -> None:
    """Both kernels count toward Linear_0: 4 µs in the forward pass and 3 µs in the backward pass."""
    place = {"ph": "X", "pid": 1000, "tid": 1, "cat": "python_function"}
    builder = TraceBuilder().event(name="nn.Module: Linear_0", ts=0, dur=20, args={"Python id": 1}, **place)
    builder.operator("aten::mm", start_us=1, duration_us=10, args={"Sequence number": 7, "Fwd thread id": 0})
    builder.kernel("gemm", start_us=30, duration_us=4, launch_us=3)
    builder.operator(
        "MmBackward0", start_us=50, duration_us=20, thread=2, args={"Sequence number": 7, "Fwd thread id": 1}
    )
    builder.operator("aten::mm", start_us=52, duration_us=10, thread=2)
    builder.kernel("gemm_t", start_us=80, duration_us=3, launch_us=53, thread=2)
    table = roofline(builder.build()).per_module
    assert table.select("module", "phase", "busy_ns").sort("phase").rows() == [
        ("Linear_0", "backward", 3_000),
        ("Linear_0", "forward", 4_000),
    ]


@pytest.mark.parametrize(
    ("name", "precision", "mfu"),
    [
        ("training", "bfloat16", (0.08, 0.15)),
        ("training-tf32", "tf32", (0.2, 0.35)),
        ("training-full_precision", "float32", (0.5, 0.8)),
    ],
)
def test_utilization_of_real_training(name, precision, mfu) -> None:
    """The same model on an H100 reaches about 10 % MFU in bfloat16, 27 % in TF32 and 63 % in float32."""
    result = roofline(holotrace.open_trace(JOBS / name))
    assert result.per_step["model_flops"].unique().to_list() == [1_172_588_986_368]
    assert result.per_step["mfu_fraction"].is_between(*mfu).all()
    products = result.per_operator.filter(work="matrix").sort("busy_ns", descending=True)
    assert products["precision"][0] == precision
    assert unknown_reasons(result) == {"the profiler does not record the shapes in lists of more than 30 tensors"}


@pytest.mark.parametrize(
    "name", ["operators", "images", "generation", "small", "training-not_fused", "two_ranks-experts"]
)
def test_lower_bounds_of_real_jobs_hold_or_are_contradicted(name) -> None:
    """Costs are known for at least 90 % of the time; operators faster than their bound are reported."""
    result = roofline(holotrace.open_trace(JOBS / name))
    assert result.per_rank["covered_fraction"].min() >= 0.9
    above = result.per_operator.filter(result.per_operator["roofline_fraction"] > 1)
    assert above["contradiction"].null_count() == 0
    assert not above["bound"].str.contains("compute").any()
