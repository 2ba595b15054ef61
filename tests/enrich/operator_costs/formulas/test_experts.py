"""Tests of the costs of mixtures of experts: weight layouts, packed weights, inner operators, unknown values."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from holotrace.analyses.roofline.compute import roofline
from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost
from holotrace.enrich.operator_costs.rules import cost_of
from holotrace.testing.builder import TraceBuilder
from recordings import opened

BF16, FP8, BYTE, INT = "c10::BFloat16", "c10::Float8_e4m3fn", "unsigned char", "int"
GATED = [[4, 32, 8], [4, 8, 16]]
"""Weights of 4 experts, H = 8 and I = 16, with a gate: N = 32."""
WEIGHTS = 4 * (32 * 8 + 8 * 16)
EACH = 2 * (8 * 32 + 16 * 8)
"""Operations that one expert needs for one token."""


def call(operator: str, dims: list[Any], types: list[str], values: list[str] | None = None, **more: Any) -> Cost:
    """Return the cost of a call."""
    return cost_of(Arguments(operator, tuple(dims), tuple(types), (), tuple(values or []), **more))


def fused(tokens: int, weights: list[list[int]], kind: str = BF16, hidden: int = 8, **more: Any) -> Cost:
    """Return the cost of `fused_experts` for tokens that choose 2 of 4 experts each."""
    dims = [[tokens, hidden], *weights, [tokens, 2], [tokens, 2]]
    return call("vllm::outplace_fused_experts", dims, [BF16, kind, kind, "float", INT], **more)


@pytest.mark.parametrize(
    "operator", ["vllm::inplace_fused_experts", "sglang::outplace_fused_experts", "aiter::fused_moe_"]
)
def test_two_products_for_each_token_and_chosen_expert(operator) -> None:
    """Each of 100 tokens needs two products for each of its 2 experts.

    The tokens, the result and the weights of all experts are moved once.
    """
    dims = [[100, 8], *GATED, [100, 2], [100, 2], []]
    cost = call(operator, dims, [BF16] * 3 + ["float", INT, ""])
    assert cost == Cost(200 * EACH, 2 * (2 * 800 + WEIGHTS), "matrix", "bfloat16", 200 * EACH)


def test_without_a_gate_the_first_product_is_as_wide_as_the_middle() -> None:
    """Without a gate, the first product has the width N = I instead of 2·I."""
    assert fused(100, [[4, 16, 8], [4, 8, 16]]).flops == 200 * 2 * (8 * 16 + 16 * 8)


def test_weights_may_have_columns_last() -> None:
    """triton_kernels stores weights as [experts, K, columns]; the FLOPs are the same."""
    assert fused(100, [[4, 8, 32], [4, 16, 8]]).flops == 200 * EACH


def test_packed_weights_have_two_values_in_a_byte() -> None:
    """The recorded K is half of the true one, so FLOPs use twice the recorded K; bytes are counted as stored."""
    cost = fused(100, [[4, 32, 4], [4, 8, 8]], BYTE)
    assert (cost.flops, cost.bytes) == (200 * EACH, 2 * 2 * 800 + WEIGHTS // 2)
    assert cost.precision is None  # the shapes do not show whether the kernel computes in bfloat16 or in fewer bits


def test_weights_of_8_bits_compute_in_8_bits() -> None:
    """The products run in 8 bits, because the operator quantises the tokens."""
    assert fused(100, GATED, FP8).precision == "float8_e4m3fn"


def test_bytes_are_unknown_if_some_experts_may_be_idle() -> None:
    """If 2 tokens choose 2 experts each, they read the weights of 2 to 4 of the 4 experts."""
    cost = fused(2, GATED)
    assert (cost.flops, cost.bytes) == (4 * EACH, None)
    assert cost.reason == "the trace does not record which experts 2 tokens chose (2 to 4 of 4)"


def test_one_token_reads_an_exact_number_of_experts() -> None:
    """1 token that chooses 2 of 4 experts uses exactly 2, so the reason says `2`, not `2 to 2`."""
    assert fused(1, GATED).reason == "the trace does not record which experts 1 token chose (2 of 4)"


def test_experts_on_other_ranks_make_the_operations_unknown() -> None:
    """If an integer tensor has one value per expert, some experts are on other ranks, so the cost is unknown."""
    dims = [[100, 8], *GATED, [100, 2], [100, 2], [8]]
    assert "several ranks" in call("aiter::fused_moe_", dims, [BF16] * 3 + ["float", INT, INT]).reason


@pytest.mark.parametrize(
    "weights", [[[4, 32, 8], [5, 8, 16]], [[4, 32, 8], [4, 9, 16]], [[4, 33, 8], [4, 8, 16]], [[4, 32, 0], [4, 8, 0]]]
)
def test_weights_that_do_not_fit_are_unknown(weights) -> None:
    """If the two weights have different numbers of experts or sizes that do not fit, the cost is unknown."""
    cost = fused(100, weights)
    assert cost.flops is None
    assert "do not fit" in cost.reason


def test_kernels_of_aiter() -> None:
    """An operator for a whole layer takes its output as first input; an operator for one stage takes it later.

    A scalar input is k, the number of experts per token.
    """
    sorted_ids = [[300], [300], [9], [2]]
    whole = call(
        "aiter::fmoe_fp8_blockscale_g1u1",
        [[100, 8], [100, 8], *GATED, *sorted_ids, []],
        [BF16, FP8, FP8, FP8, INT, "float", INT, INT, "Scalar"],
        [""] * 8 + ["2"],
    )
    assert (whole.flops, whole.bytes) == (200 * EACH, 800 + 1600 + WEIGHTS)
    first = call(
        "aiter::ck_moe_stage1",
        [[100, 8], *GATED, [300], [9], [2], [100, 2, 16], []],
        [BF16] * 3 + [INT] * 3 + [BF16, "Scalar"],
        [""] * 7 + ["2"],
    )
    second = call(
        "aiter::ck_moe_stage2",
        [[100, 2, 16], *GATED, [300], [9], [2], [100, 8], []],
        [BF16] * 3 + [INT] * 3 + [BF16, "Scalar"],
        [""] * 7 + ["2"],
    )
    assert (first.flops, second.flops) == (200 * 2 * 8 * 32, 200 * 2 * 16 * 8)
    assert first.bytes == 2 * (800 + 4 * 32 * 8 + 200 * 16)
    assert second.bytes == 2 * (200 * 16 + 4 * 8 * 16 + 800)


def test_two_stages_of_ck_tile() -> None:
    """Each stage receives only its own weights; the last inputs are the experts per token and two padding sizes."""
    sorted_ids = [[300], [9], [2]]
    types, values = [BF16] * 3 + [INT] * 3 + ["Scalar"] * 3, [""] * 6 + ["2", "0", "0"]
    first = call("aiter::moe_cktile2stages_gemm1_ck", [[100, 8], GATED[0], [100, 2, 16], *sorted_ids], types, values)
    second = call("aiter::moe_cktile2stages_gemm2_ck", [[100, 2, 16], GATED[1], [100, 8], *sorted_ids], types, values)
    assert (first.flops, first.bytes) == (200 * 2 * 8 * 32, 2 * (800 + 4 * 32 * 8 + 200 * 16))
    assert (second.flops, second.bytes) == (200 * 2 * 16 * 8, 2 * (200 * 16 + 4 * 8 * 16 + 800))


def test_the_kernel_of_sglang_is_one_product() -> None:
    """If each of 64 tokens chooses 8 of 128 experts, some experts may be unused, so the bytes are unknown.

    256 tokens use practically all experts, so the bytes include all weights.
    """
    dims = [[64, 2048], [128, 1536, 2048], [], [512, 1536], [], [128, 12, 16], [], [64, 8], [64, 8]]
    types = [FP8, FP8, "", BF16, "", "float", "", "float", INT]
    operator = "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel_77"
    cost = call(operator, dims, types)
    assert (cost.flops, cost.bytes) == (2 * 512 * 1536 * 2048, None)
    assert "64 tokens chose" in cost.reason
    dims[0], dims[3], dims[7], dims[8] = [256, 2048], [2048, 1536], [256, 8], [256, 8]
    assert call(operator, dims, types).bytes == 256 * 2048 + 128 * 1536 * 2048 + 2 * 2048 * 1536


def routed(*inside: Arguments, tokens: int = 100) -> Cost:
    """Return the cost of a vLLM expert layer that calls the operators in `inside`."""
    return call("vllm::moe_forward", [[tokens, 8], [tokens, 4], []], [BF16, BF16, ""], related=inside)


VIEWS = tuple(Arguments("aten::view", (shape, []), (BF16, "ScalarList")) for shape in GATED)
TOP_K = Arguments("TopK", ([100, 4], []), (BF16, "Scalar"), (), ("", "2"))


def test_a_layer_reads_weights_and_k_from_the_operators_inside() -> None:
    """Only tokens and scores are recorded as inputs of the layer itself.

    The `aten::view` calls inside the layer show the shapes of the weights, and `TopK` shows k.
    """
    assert routed(TOP_K, *VIEWS).flops == 200 * EACH
    sorting = Arguments("SortTokens", ([100, 2], [100, 2], []), (BF16, "short int", "Scalar"))
    assert routed(sorting, *VIEWS).flops == 200 * EACH


def test_a_layer_without_weights_or_k_is_unknown() -> None:
    """The reason names the missing value, or the inner operator to which the experts' products are attributed."""
    assert "weights were not recorded" in routed(TOP_K).reason
    assert "experts per token was not recorded" in routed(*VIEWS).reason
    inner = Arguments("vllm::inplace_fused_experts", ([100, 8],), (BF16,))
    assert (
        routed(inner).reason
        == "the products of the experts are attributed to the inner operator vllm::inplace_fused_experts"
    )


def test_kernels_of_a_layer_count_for_it_unless_an_operator_inside_has_a_rule() -> None:
    """The layer includes the kernels of its experts and of TopK; the product of a shared expert has its own row."""
    args = {"Input Dims": [[100, 8], [100, 4], []], "Input type": [BF16, BF16, ""]}
    builder = TraceBuilder().operator("vllm::moe_forward_shared", start_us=0, duration_us=90, args=args)
    product = {"Input Dims": [[100, 8], [8, 16]], "Input type": [BF16, BF16]}
    builder.operator("aten::mm", start_us=1, duration_us=5, args=product)
    builder.kernel("gemm", start_us=100, duration_us=3, launch_us=2)
    top_k = {"Input Dims": [[100, 4], []], "Input type": [BF16, "Scalar"], "Concrete Inputs": ["", "2"]}
    builder.operator("TopK", start_us=10, duration_us=5, args=top_k)
    builder.kernel("_topk_forward", start_us=110, duration_us=2, launch_us=11)
    for start_us, shape in zip((20, 30), GATED, strict=True):
        view = {"Input Dims": [shape, []], "Input type": [BF16, "ScalarList"]}
        builder.operator("aten::view", start_us=start_us, duration_us=2, args=view)
        builder.kernel(
            "_matmul_ogs_NNT_bf16xbf16xbf16_1", start_us=100 + start_us, duration_us=7, launch_us=start_us + 5
        )
    rows = roofline(builder.build()).per_operator.select("operator", "busy_ns", "flops", "precision").rows()
    assert sorted(rows) == [
        ("aten::mm", 3_000, 2 * 100 * 8 * 16, "bfloat16"),
        ("vllm::moe_forward_shared", 16_000, 200 * EACH, "bfloat16"),
    ]


@pytest.mark.slow
def test_experts_of_a_replayed_graph_are_known_from_its_capture(real_traces) -> None:
    """Each of 8,192 tokens chooses 4 of 32 experts in vLLM's gpt-oss-20b; the capture has the shapes of the weights."""
    trace = opened(real_traces / "inference" / "vllm_prefilldecode_piecewise" / "graph_execution.json.gz")
    result = roofline(trace)
    (row,) = result.per_operator.filter(pl.col("operator") == "vllm::moe_forward").to_dicts()
    assert row["flops"] == 2 * 8192 * 4 * (3072 * 5888 + 2944 * 3072)
    assert row["bytes_moved"] == 2 * 2 * 8192 * 3072 + 32 * (1536 * 5888 + 1472 * 3072)
    assert (row["call_count"], row["precision"]) == (24, "bfloat16")
    assert result.per_rank["covered_fraction"].item() > 0.99


def of_trtllm(weights: list[list[int]], kind: str, hidden: list[int], hidden_kind: str, **more: Any) -> Cost:
    """Return the cost of TensorRT-LLM's `fused_moe` for 100 tokens that each choose 2 of 4 experts on `ranks` ranks."""
    biases = [[]] if more.get("has_biases", True) else []
    dims = [hidden, [100, 2], [100, 2], weights[0], *biases, weights[1], *biases, [], [], []]
    kinds = [
        hidden_kind,
        INT,
        "float",
        kind,
        *[""] * len(biases),
        kind,
        *[""] * len(biases),
        "Scalar",
        "TensorList",
        "",
    ]
    named = [
        *[""] * (len(dims) - 3),
        "15",
        "",
        "",
        "True",
        "",
        "",
        "",
        "1",
        "0",
        str(more.get("ranks", 1)),
        "0",
        "1",
        "0",
    ]
    values = (
        named if biases else [*[""] * (len(dims) - 3), "15", "", "", "1", "0", str(more.get("ranks", 1)), "0", "1", "0"]
    )
    dims += [[]] * (len(values) - len(dims))
    kinds += ["Scalar"] * (len(values) - len(kinds))
    return call(more.get("operator", "trtllm::fused_moe"), dims, kinds, values)


@pytest.mark.parametrize("has_biases", [True, False])
def test_experts_of_tensorrt_llm(has_biases) -> None:
    """The cost is the same for versions of TensorRT-LLM with and without bias arguments between the two weights."""
    cost = of_trtllm(GATED, BF16, [100, 8], BF16, has_biases=has_biases)
    assert cost == Cost(200 * EACH, 2 * (2 * 800 + WEIGHTS), "matrix", "bfloat16", 200 * EACH)


def test_experts_in_4_bits_have_sixteen_values_in_a_long() -> None:
    """TensorRT-LLM packs 16 weight values into an int64, and two token values into a byte."""
    cost = of_trtllm([[4, 64, 2], [4, 32, 2]], "long int", [100, 16], "unsigned char")
    assert (cost.flops, cost.precision) == (200 * 2 * (32 * 64 + 32 * 32), "float4")
    assert cost.bytes == 100 * 16 + 100 * 32 * 2 + 4 * (64 * 32 + 32 * 32) // 2


def test_experts_of_tensorrt_llm_on_several_ranks_are_unknown() -> None:
    """With experts on several ranks, the cost is unknown: the data determine which tokens reach this rank."""
    cost = of_trtllm(GATED, BF16, [100, 8], BF16, ranks=2)
    assert (cost.flops, cost.reason[:28]) == (None, "experts are on several ranks")


@pytest.mark.parametrize(
    ("operator", "first", "second"),
    [
        ("trtllm::fp8_block_scale_moe_runner", 4, 6),
        ("sglang::trtllm_fp8_block_scale_moe_wrapper", 4, 6),
        ("vllm::flashinfer_fused_moe_blockscale_fp8", 3, 5),
        ("vllm::fi_trtllm_fp8_per_tensor_moe", 4, 5),
    ],
)
def test_experts_that_the_kernel_chooses_from_scores(operator, first, second) -> None:
    """The two integers after the weights are the total number of experts and the number of experts per token."""
    dims: list[Any] = [[100, 4], [], [100, 8], *[[1]] * 7]
    dims[first], dims[second] = GATED
    kinds = ["float", "", FP8, *["float"] * 7]
    kinds[first] = kinds[second] = FP8

    def with_experts(count: int) -> Cost:
        return call(operator, [*dims, [], []], [*kinds, "Scalar", "Scalar"], [*[""] * 10, str(count), "2"])

    assert with_experts(4) == Cost(200 * EACH, 800 + 2 * 800 + WEIGHTS, "matrix", "float8_e4m3fn", 200 * EACH)
    assert with_experts(8).reason.startswith("experts are on several ranks")
