"""Tests of assigning work to operator calls, and of the time and phase of each call."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.operator_costs.costed_calls import computed_precision, costed_calls
from holotrace.enrich.operator_costs.phases import phases
from holotrace.testing.builder import TraceBuilder

MATRICES = {"Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]}


def named(builder: TraceBuilder) -> list[tuple[str | None, int, int | None]]:
    """For each call, return its operator, busy_ns and flops."""
    rank_trace = builder.build().ranks[0]
    costed = costed_calls(rank_trace)
    keys = costed.keys.select(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("key"), "flops", operator=rank_trace.texts(costed.keys["name"])
    )
    return costed.calls.join(keys, on="key", maintain_order="left").select("operator", "busy_ns", "flops").rows()


def test_work_counts_for_the_innermost_operator_with_a_rule() -> None:
    """A kernel launched in aten::linear > aten::mm > mylib::launch counts toward aten::mm."""
    builder = TraceBuilder().operator("aten::linear", start_us=0, duration_us=20)
    builder.operator("aten::mm", start_us=1, duration_us=10, args=MATRICES).operator(
        "mylib::launch", start_us=2, duration_us=5
    )
    assert named(builder.kernel("gemm", start_us=30, duration_us=4, launch_us=3)) == [("aten::mm", 4_000, 128)]


def test_a_whole_operator_includes_what_is_inside() -> None:
    """Kernels of inner operators count toward aten::layer_norm; overlapping kernels count once."""
    args = {
        "Input Dims": [[8, 4], [], [], []],
        "Input type": ["float", "ScalarList", "", ""],
        "Concrete Inputs": ["", "[4]", "", ""],
    }
    builder = TraceBuilder().operator("aten::layer_norm", start_us=0, duration_us=20, args=args)
    builder.operator("aten::add", start_us=1, duration_us=10)
    builder.kernel("add", start_us=30, duration_us=4, launch_us=3).kernel(
        "mean", start_us=32, duration_us=4, launch_us=12, stream=8
    )
    assert named(builder) == [("aten::layer_norm", 6_000, 5 * 32 + 6 * 4)]


def test_an_operator_on_a_dtensor_costs_what_this_rank_computes() -> None:
    """aten::mm on a DTensor has the whole tensor's shapes; the inner aten::mm on this rank's shard does the work."""
    whole = {"Input Dims": [[8, 4], [4, 6]], "Input type": ["float", "float"]}
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=20, args=whole)
    builder.operator("aten::div", start_us=1, duration_us=2, args=MATRICES)
    builder.kernel("div", start_us=20, duration_us=1, launch_us=2)
    builder.operator("aten::mm", start_us=5, duration_us=10, args=MATRICES)
    assert named(builder.kernel("gemm", start_us=30, duration_us=4, launch_us=6)) == [
        ("aten::div", 1_000, None),
        ("aten::mm", 4_000, 128),
    ]


def test_communication_and_earlier_work_do_not_count() -> None:
    """Collectives have no cost; work launched before the recording has no operator."""
    builder = TraceBuilder().operator("aten::mm", start_us=50, duration_us=10, args=MATRICES)
    builder.kernel("gemm", start_us=10, duration_us=7, correlation=99)
    builder.kernel("gemm", start_us=70, duration_us=4, launch_us=51).collective(
        "allreduce", start_us=80, duration_us=9, launch_us=65
    )
    assert named(builder) == [("aten::mm", 4_000, 128)]
    assert costed_calls(builder.build().ranks[0]).earlier_ns == 7_000


def test_without_a_device_operators_count_with_their_own_time() -> None:
    """On the CPU, the 8 µs of aten::mm include the 3 µs of an inner operator for which there is no cost rule."""
    builder = TraceBuilder().operator("aten::linear", start_us=0, duration_us=10)
    builder.operator("aten::mm", start_us=1, duration_us=8, args=MATRICES).operator(
        "aten::resolve_conj", start_us=2, duration_us=3
    )
    assert named(builder) == [("aten::mm", 8_000, 128)]


def test_the_work_of_a_graph_has_other_operators() -> None:
    """Kernels of a CUDA graph get no cost from the operator that launches the graph; the reason mentions the graph."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=10, args=MATRICES)
    builder.kernel("gemm", start_us=20, duration_us=4, launch_us=1, launch_name="cudaGraphLaunch")
    rank_trace = builder.build().ranks[0]
    assert "CUDA graph" in costed_calls(rank_trace).keys["reason"].item()


def test_sizes_that_no_device_holds_are_unknown() -> None:
    """A damaged size of 2^70 does not fit into the column, so the cost is unknown with a reason."""
    args = {"Input Dims": [[1 << 70, 4], [4, 2]], "Input type": ["float", "float"]}
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=10, args=args)
    builder.operator("aten::mm", start_us=20, duration_us=10, args={"Input Dims": "[" * 9})
    rank_trace = builder.build().ranks[0]
    assert costed_calls(rank_trace).keys.select("flops", "reason").rows() == [
        (None, "the sizes exceed those of any device"),
        (None, "the shapes of the inputs were not recorded (record_shapes=True)"),
    ]


def test_an_operator_leaves_its_work_to_a_rule_inside() -> None:
    """On the CPU, aten::mean calls aten::empty and aten::sum; these two are counted separately, aten::mean is not."""
    args = {"Input Dims": [[8, 4], [], [], []], "Input type": ["float", "ScalarList", "Scalar", ""]}
    builder = TraceBuilder().operator("aten::mean", start_us=0, duration_us=10, args=args)
    builder.operator("aten::empty", start_us=1, duration_us=1).operator(
        "aten::sum", start_us=3, duration_us=5, args=args
    )
    assert named(builder) == [("aten::empty", 1_000, None), ("aten::sum", 5_000, 32)]


def test_operators_inside_a_backward_operator_that_record_for_autograd_are_recomputed() -> None:
    """With checkpointing, MulBackward0 first recomputes aten::relu; then aten::mul computes the gradient."""
    builder = TraceBuilder().operator(
        "aten::relu", start_us=0, duration_us=5, args={"Sequence number": 1, "Fwd thread id": 0}
    )
    builder.operator("autograd::engine::evaluate_function: MulBackward0", start_us=10, duration_us=30)
    builder.operator("MulBackward0", start_us=11, duration_us=28, args={"Sequence number": 2, "Fwd thread id": 1})
    builder.operator("aten::relu", start_us=12, duration_us=5, args={"Sequence number": 7, "Fwd thread id": 0})
    builder.operator("aten::mul", start_us=20, duration_us=5)
    builder.annotation("Optimizer.step#AdamW.step", start_us=50, duration_us=10).operator(
        "aten::add_", start_us=51, duration_us=2
    )
    rank_trace = builder.build().ranks[0]
    assert phases(rank_trace, pl.Series(range(7), dtype=pl.Int64)).to_list() == [
        *("forward", "backward", "backward", "recompute", "backward", "optimizer", "optimizer")
    ]


def test_the_kernel_shows_the_precision() -> None:
    """float32 means TF32 on NVIDIA's tensor cores and float32 on AMD's matrix cores; all FP8 formats are `float8`."""
    assert computed_precision("float32", "sm80_xmma_gemm_f32f32_tf32f32_f32_tn", is_on_tensor_cores=True) == "tf32"
    assert computed_precision("float32", "ampere_sgemm_128x64_tn", is_on_tensor_cores=False) == "float32"
    assert computed_precision("float32", "Cijk_Ailk_Bljk_SB_MT64x64_MI16x16x4", is_on_tensor_cores=True) == "float32"
    assert computed_precision("float8_e4m3fn", "nvjet_qqtst", is_on_tensor_cores=True) == "float8"
    assert computed_precision("float6_e2m3", "nvjet_qqtst", is_on_tensor_cores=True) == "float6"
    assert computed_precision("float64", "volta_dgemm_64x64_nn", is_on_tensor_cores=False) == "float64"
    assert computed_precision(None, None, is_on_tensor_cores=False) is None
