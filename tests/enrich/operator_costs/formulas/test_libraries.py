"""Tests of the costs of matrix products in kernel libraries, Transformer Engine and templates of torch.compile."""

from __future__ import annotations

from typing import Any

import pytest

from holotrace.analyses.roofline.compute import roofline
from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost
from holotrace.enrich.operator_costs.rules import cost_of
from holotrace.testing.builder import TraceBuilder

BF16, F32, FP8, BYTE, INT8, INT = "c10::BFloat16", "float", "c10::Float8_e4m3fn", "unsigned char", "signed char", "int"
M, N, K = 6, 10, 16
FLOPS = 2 * M * N * K
A, NK, KN, OUT = ([M, K], FP8), ([N, K], FP8), ([K, N], FP8), ([M, N], BF16)
SCALE_A, SCALE_B = ([M], F32), ([N], F32)
SCALES = 4 * (M + N)
FACTORS = M * K + N * K
RESULT = 2 * M * N


def call(operator: str, *inputs: Any, kernel: str = "") -> Cost:
    """Return the cost of a call; an input is a shape with its type, a value, or None."""
    dims = tuple(value[0] if isinstance(value, tuple) else [] for value in inputs)
    types = tuple(value[1] if isinstance(value, tuple) else "" if value is None else "Scalar" for value in inputs)
    values = tuple("" if value is None or isinstance(value, tuple) else str(value) for value in inputs)
    return cost_of(Arguments(operator, dims, types, (), values, kernels=(kernel,) if kernel else ()))


SCALED = (
    # operator, inputs, bytes
    ("_C::cutlass_scaled_mm", (OUT, A, KN, SCALE_A, SCALE_B, None), FACTORS + SCALES + RESULT),
    ("_C::cutlass_scaled_mm", (OUT, A, KN, SCALE_A, SCALE_B, ([N], BF16)), FACTORS + SCALES + RESULT + 2 * N),
    ("sgl_kernel::fp8_scaled_mm", (A, KN, SCALE_A, SCALE_B, 15, None), FACTORS + SCALES + RESULT),
    ("sgl_kernel::int8_scaled_mm", (([M, K], INT8), ([K, N], INT8), SCALE_A, SCALE_B, 15), FACTORS + SCALES + RESULT),
    ("sglang::deep_gemm_fp8_fp8_bf16_nt", (A, SCALE_A, NK, SCALE_B, OUT), FACTORS + SCALES + RESULT),
    ("vllm::fp8_gemm_nt_op", (A, SCALE_A, NK, SCALE_B, OUT, True), FACTORS + SCALES + RESULT),
    ("aiter::gemm_a8w8_blockscale_ck", (A, NK, SCALE_A, SCALE_B, OUT, 0), FACTORS + SCALES + RESULT),
    ("aiter::gemm_a8w8_bpreshuffle_cktile", (A, NK, SCALE_A, SCALE_B, OUT, 0), FACTORS + SCALES + RESULT),
    ("aiter::flatmm_a8w8_blockscale_asm", (A, NK, SCALE_A, SCALE_B, OUT), FACTORS + SCALES + RESULT),
    ("aiter::_gemm_a8w8_blockscale_bpreshuffle_asm", (A, NK, OUT, SCALE_A, SCALE_B), FACTORS + SCALES + RESULT),
    ("aiter::gemm_a8w8", (A, NK, SCALE_A, SCALE_B, None, 15), FACTORS + SCALES + RESULT),
    ("aiter::gemm_a8w8_blockscale", (A, NK, SCALE_A, SCALE_B, 15, False), FACTORS + SCALES + RESULT),
    ("torchao::mx_fp8_bf16", (A, KN, SCALE_A, SCALE_B), FACTORS + SCALES + RESULT),
    ("torchao::scaled_int8_mm", (([M, K], INT8), ([K, N], INT8), SCALE_A, SCALE_B), FACTORS + SCALES + RESULT),
)


@pytest.mark.parametrize(("operator", "inputs", "moved"), SCALED)
def test_products_of_8_bits(operator, inputs, moved) -> None:
    """In any order of inputs, a product needs 2·M·N·K FLOPs and moves factors, scales, bias and 16-bit result once."""
    cost = call(operator, *inputs)
    assert (cost.flops, cost.dense_flops, cost.bytes, cost.work, cost.reason) == (FLOPS, FLOPS, moved, "matrix", "")


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("_C::cutlass_scaled_fp4_mm", (OUT, ([M, K // 2], BYTE), ([N, K // 2], BYTE), ([M, 1], FP8), ([N, 1], FP8))),
        ("aiter::_gemm_a4w4_asm", (([M, K // 2], BYTE), ([N, K // 2], BYTE), ([M, 1], FP8), ([N, 1], FP8), OUT)),
        ("aiter::gemm_a4w4", (([M, K // 2], BYTE), ([N, K // 2], BYTE), ([M, 1], FP8), ([N, 1], FP8), None)),
    ],
)
def test_products_of_4_bits(operator, inputs) -> None:
    """A byte holds two values, so the shared dimension is twice the recorded one."""
    cost = call(operator, *inputs)
    assert (cost.flops, cost.bytes, cost.precision) == (FLOPS, FACTORS // 2 + M + N + RESULT, "float4")


def test_products_in_a_batch() -> None:
    """The product `[B, M, K] x [B, N, K]` costs as much as B single products."""
    cost = call("aiter::batched_gemm_a8w8", ([3, M, K], INT8), ([3, N, K], INT8), SCALE_A, SCALE_B)
    assert (cost.flops, cost.bytes) == (3 * FLOPS, 3 * (FACTORS + RESULT) + SCALES)


def test_sparse_weights_store_half() -> None:
    """Two of every four weights are zero, which halves the operations of the product and the bytes of the weights."""
    inputs = A, SCALE_A, ([N, K // 2], FP8), ([N, K // 8], BYTE), SCALE_B
    cost = call("torchao::rowwise_scaled_linear_sparse_cutlass_f8f8", *inputs)
    assert (cost.flops, cost.bytes) == (FLOPS // 2, M * K + N * K // 2 + N * K // 8 + SCALES + RESULT)


def test_packed_weights_of_torchao() -> None:
    """The layout of packed weights does not show N, but their scales and zero points do."""
    cost = call("aten::_weight_int4pack_mm", ([M, K], BF16), ([1, 1, 32, 4], INT), 16, ([1, N, 2], BF16))
    assert (cost.flops, cost.bytes) == (FLOPS, 2 * M * K + 4 * 128 + 2 * 2 * N + RESULT)


def test_a_result_of_another_size_is_unknown() -> None:
    """If the sizes do not match, the inputs are not in the order that the rule expects, so the cost is unknown."""
    assert "does not match" in call("_C::cutlass_scaled_mm", ([M, N + 1], BF16), A, KN).reason
    assert "not a product" in call("_C::cutlass_scaled_mm", OUT, A, NK).reason
    assert "not a linear" in call("aiter::gemm_a8w8", A, KN).reason


TOKENS, WEIGHT, BIAS = ([2, M // 2, K], BF16), ([N, K], BF16), ([N], BF16)
MOVED = 2 * (M * K + N * K + M * N)


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("_Linear", (WEIGHT, TOKENS, BIAS, None)),
        ("_Linear", (WEIGHT, ([N, K], BYTE), TOKENS, BIAS, None)),  # in version 1, an 8-bit copy follows the weight
        ("_LayerNormLinear", (TOKENS, ([K], BF16), ([K], BF16), WEIGHT, None, BIAS)),
        ("_LayerNormLinear", (TOKENS, ([K], BF16), None, WEIGHT, ([N, K], BF16), BIAS)),
    ],
)
def test_a_layer_of_transformer_engine(operator, inputs) -> None:
    """Tokens and weight share their last dimension, whatever the order of the inputs."""
    cost = call(operator, *inputs)
    assert (cost.flops, cost.bytes, cost.precision) == (FLOPS, MOVED, "bfloat16")


def test_the_kernel_shows_that_a_layer_computes_in_8_bits() -> None:
    """Only the kernel's name shows the 8-bit computation, because Transformer Engine quantises inside the layer."""
    kernel = "nvjet_qqtst_128x128_128x6_1x2_h_bz_coopA_TNT"
    assert call("_Linear", WEIGHT, TOKENS, BIAS, kernel=kernel).precision == "float8"
    assert call("_Linear", WEIGHT, TOKENS, BIAS, kernel="nvjet_tst_128x128").precision == "bfloat16"


def test_both_products_of_a_layer_count() -> None:
    """`_LayerNormMLP` multiplies by weights [F, K] and [K, F / 2]; 8-bit copies of the weights are not counted."""
    weights = ([2 * N, K], BF16), ([K, N], BF16)
    plain = call("_LayerNormMLP", TOKENS, ([K], BF16), None, weights[0], None, weights[1], None)
    copied = call("_LayerNormMLP", TOKENS, ([K], BF16), None, weights[0], weights[0], None, weights[1], weights[1])
    assert plain.flops == copied.flops == 2 * M * 3 * N * K
    assert plain.bytes == 2 * (2 * M * K + 3 * N * K)


def gradients(operator: str, inputs: dict[str, Any], kernels: list[str]) -> tuple[Any, ...]:
    """Return the cost of a layer's backward call that launches `kernels`; `inputs` are the args of the forward call."""
    builder = TraceBuilder().operator(
        operator, start_us=0, duration_us=9, args={**inputs, "Sequence number": 3, "Fwd thread id": 0}
    )
    args = {"Input Dims": [[M, N]], "Input type": [BF16], "Sequence number": 3, "Fwd thread id": 1}
    builder.operator(f"{operator}Backward", start_us=50, duration_us=40, args=args)
    for place, kernel in enumerate(kernels):
        builder.kernel(kernel, start_us=100 + 10 * place, duration_us=5, launch_us=51 + place)
    rows = roofline(builder.build()).per_operator.filter(operator=f"{operator}Backward")
    return rows.select("flops", "bytes_moved", "precision", "phase", "reason").row(0)


LINEAR = {"Input Dims": [[N, K], [M, K], [N]], "Input type": [BF16] * 3}
FP8_KERNEL = "nvjet_qqtst_128x128_128x6_1x2_h_bz_coopA_TNT"


def test_gradients_of_a_layer_have_the_shapes_of_its_forward_call() -> None:
    """Two tensor-core kernels compute the gradients of tokens and weights; a single one computes only one gradient."""
    matrices, result = 2 * (M * K + N * K), 2 * M * N
    both = gradients("_Linear", LINEAR, [FP8_KERNEL, "vectorized_cast", FP8_KERNEL])
    assert both == (2 * FLOPS, result + 2 * matrices, "float8", "backward", "")
    one = gradients("_Linear", LINEAR, ["nvjet_tst_128x128_64x4"])
    assert one == (FLOPS, result + matrices, "bfloat16", "backward", "")


def test_gradients_that_kernels_do_not_show_are_unknown() -> None:
    """With three tensor-core kernels, or none, the trace does not show which gradients were computed."""
    reason = "the number of tensor-core kernels ({}) does not show which gradients were computed"
    assert gradients("_Linear", LINEAR, [FP8_KERNEL] * 3)[-1] == reason.format(3)
    assert gradients("_Linear", LINEAR, ["mine"])[-1] == reason.format(0)
    assert "forward call" in call("_LinearBackward", ([M, N], BF16)).reason


def test_gradients_of_two_layers() -> None:
    """The four products of the backward pass take twice as many FLOPs as the two of the forward call.

    The trace does not show which tensors these four products read, so the bytes are unknown.
    """
    inputs = {"Input Dims": [[M, K], [K], [2 * N, K], [K, N]], "Input type": [BF16] * 4}
    flops, moved, *_ = gradients("_LayerNormMLP", inputs, [FP8_KERNEL] * 4)
    assert (flops, moved) == (2 * 2 * M * 3 * N * K, None)


def test_groups_of_rows_have_weights_of_one_shape() -> None:
    """Each row is multiplied by only one of three weights."""
    cost = call("_GroupedLinear", ([M, K], BF16), ([3], "long int"), None, None, None, WEIGHT, WEIGHT, WEIGHT)
    assert (cost.flops, cost.bytes) == (FLOPS, 2 * (M * K + 3 * N * K + M * N))
    assert "the same shape" in call("_GroupedLinear", ([M, K], BF16), WEIGHT, ([N + 1, K], BF16)).reason


def test_scripted_products_of_transformer_engine() -> None:
    """Input 0 is the weight, input 5 the tokens and input 10 the result; the workspace is not counted."""
    inputs = [NK, None, 0, 0, 1, A, None, 0, 0, 0, OUT, None, 0, 0, None, 0, None, 0, ([1 << 20], BYTE)]
    cost = call("tex_ts::te_gemm_ts", *inputs)
    assert (cost.flops, cost.bytes, cost.precision) == (FLOPS, FACTORS + RESULT, "float8")


def test_templates_of_torch_compile() -> None:
    """A product's cost follows from the shapes of its inputs; the cost of flex_attention is unknown.

    The inputs of flex_attention do not show which blocks it skips.
    """
    product = call("triton_tem_fused_addmm_relu_1", BIAS, ([M, K], BF16), ([K, N], BF16), OUT, 4)
    assert (product.flops, product.work) == (FLOPS, "matrix")
    flex = call("triton_tem_fused_flex_attention_0", *[([2, 4, 128, 64], BF16)] * 3, ([2, 4, 128], F32))
    assert (flex.flops, flex.reason) == (None, "flex_attention skips blocks according to a mask that was not recorded")


def test_quantising_into_a_tensor() -> None:
    """The first input is the tensor that receives the result."""
    cost = call("_C::static_scaled_fp8_quant", ([M, K], FP8), ([M, K], BF16), ([1], F32))
    assert (cost.flops, cost.bytes) == (2 * M * K, 3 * M * K + 4)
