"""Tests of operator costs: hand-counted operations and bytes, unknown costs, and rules of users."""

from __future__ import annotations

import ast
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost
from holotrace.enrich.operator_costs.request_sums import request_sums
from holotrace.enrich.operator_costs.rules import (
    RULES,
    RULES_VARIABLE,
    add_rule,
    cost_of,
    remove_added_rules,
)
from holotrace.errors import InvalidOptionError

BF16, F32, LONG = "c10::BFloat16", "float", "long int"

MASK = "[True, True, True]"
HAND_COUNTED = (
    # operator, shapes, types, values, operations, bytes
    ("aten::mm", [[8944, 1024], [1024, 2816]], [BF16, BF16], [], 51_581_550_592, 74_457_088),
    ("aten::mm", [[0, 4], [4, 8]], [F32, F32], [], 0, 128),
    ("aten::bmm", [[5, 2, 3], [5, 3, 4]], [F32, F32], [], 2 * 5 * 2 * 3 * 4, 4 * 5 * (6 + 12 + 8)),
    (
        "aten::addmm",
        [[4], [2, 3], [3, 4], [], []],
        [F32] * 3 + ["Scalar"] * 2,
        ["", "", "", "1", "1"],
        56,
        4 * (4 + 6 + 12 + 8),
    ),
    (
        "aten::addmm",
        [[4], [2, 3], [3, 4], [], []],
        [F32] * 3 + ["Scalar"] * 2,
        ["", "", "", "0", "1"],
        48,
        4 * (6 + 12 + 8),
    ),
    (
        "aten::_grouped_mm",
        [[6, 3], [2, 3, 4], [2], [], []],
        [BF16, BF16, "int", "", ""],
        [],
        2 * 6 * 3 * 4,
        2 * (18 + 24 + 24),
    ),
    (
        "aten::_grouped_mm",
        [[6, 8], [8, 4], [2], [], []],
        [BF16, BF16, "int", "", ""],
        [],
        2 * 6 * 8 * 4,
        2 * (48 + 32 + 2 * 24),
    ),
    ("aten::mv", [[2, 3], [3]], [F32, F32], [], 12, 4 * (6 + 3 + 2)),
    ("aten::_int_mm", [[2, 3], [3, 4]], ["signed char"] * 2, [], 48, 6 + 12 + 8),
    (
        "aten::_scaled_mm",
        [[16, 32], [32, 8], [], [], [], [], [], []],
        ["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float", "float", "", "", "Scalar", "Scalar"],
        ["", "", "", "", "", "", "15", "False"],
        2 * 16 * 32 * 8,
        512 + 256 + 2 * 128 + 8,
    ),
    (
        "aten::convolution",
        [[2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], [], [], []],
        [F32] * 3 + ["ScalarList"] * 3 + ["Scalar", "ScalarList", "Scalar"],
        ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
        2 * 2 * 16 * 4 * 27,
        4 * (2 * 3 * 64 + 4 * 27 + 2 * 4 * 16),
    ),
    (
        "aten::convolution",  # transposed: each input element is multiplied by the whole filter
        [[2, 4, 4, 4], [4, 3, 2, 2], [], [], [], [], [], [], []],
        [F32] * 2 + [""] + ["ScalarList"] * 3 + ["Scalar", "ScalarList", "Scalar"],
        ["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"],
        2 * 2 * 16 * 4 * 3 * 4,
        4 * (2 * 4 * 16 + 48 + 2 * 3 * 64),
    ),
    (
        "aten::_scaled_dot_product_flash_attention",
        [[16, 16, 559, 64]] * 3 + [[]] * 4,
        [BF16] * 3 + ["Scalar"] * 4,
        ["", "", "", "0.", "True", "False", "0.125"],
        10_239_377_408,
        73_269_248,
    ),
    (
        "aten::_scaled_dot_product_flash_attention",  # 8 query heads share 2 key heads
        [[1, 8, 4, 16], [1, 2, 6, 16], [1, 2, 6, 16], [], [], [], []],
        [BF16] * 3 + ["Scalar"] * 4,
        ["", "", "", "0.", "False", "False", ""],
        4 * 8 * 4 * 6 * 16,
        2 * (2 * 8 * 4 * 16 + 2 * 2 * 6 * 16),
    ),
    ("aten::add", [[4, 1], [1, 5], []], [F32, F32, "Scalar"], ["", "", "1"], 20, 4 * (4 + 5 + 20)),
    ("aten::mul", [[4, 5], []], [BF16, "double"], [], 20, 40 + 8 + 40),
    ("aten::add", [[4], [4], []], [LONG, F32, "Scalar"], ["", "", "1"], 4, 32 + 16 + 16),
    ("aten::eq", [[4, 5], []], [LONG, "Scalar"], ["", "1"], 20, 160 + 20),
    ("aten::copy_", [[4, 5], [4, 5], []], [F32, BF16, "Scalar"], [], 20, 80 + 40),
    ("aten::fill_", [[4, 5], []], [F32, "Scalar"], ["", "0"], 0, 80),
    ("aten::mean", [[4, 5], [], [], []], [F32, "ScalarList", "Scalar", ""], ["", "[-1]", "True", ""], 20, 80 + 16),
    ("aten::sum", [[4, 5], []], [F32, ""], ["", ""], 20, 80 + 4),
    (
        "aten::upsample_nearest2d",
        [[2, 3, 4, 5], [], []],
        [F32, "", "ScalarList"],
        ["", "", "[2., 3.]"],
        720,
        480 + 2880,
    ),
    ("aten::upsample_bilinear2d", [[2, 3, 4, 5], [], [], []], [F32, "ScalarList"], ["", "[8, 15]", "False"], 720, 3360),
    ("aten::replication_pad3d", [[1, 2, 3, 4, 5], []], [F32], ["", "[1, 1, 1, 1, 2, 0]"], 420, 480 + 4 * 2 * 5 * 6 * 7),
    ("aten::arange", [[], [], [], [0]], ["Scalar"] * 3 + [LONG], ["238", "270", "1", ""], 0, 32 * 8),
    ("aten::arange", [[], [], [], [0]], ["Scalar"] * 3 + [F32], ["7", "0", "-2", ""], 0, 4 * 4),
    ("aiter::rms_norm_cu", [[4, 8], [4, 8], [8], []], [BF16] * 3 + ["Scalar"], [], 136, 2 * (32 + 32 + 8)),
    ("aiter::rmsnorm2d_fwd", [[4, 8], [8], []], [BF16] * 2 + ["Scalar"], [], 136, 2 * (32 + 32 + 8)),
    ("aiter::rope_cached_positions_2c_fwd_impl", [[4, 8], [4, 2]] * 2, [BF16] * 4, [], 3 * 40, 2 * 80),
    ("aten::embedding", [[100, 8], [3]], [F32, LONG], [], 0, 2 * 3 * 8 * 4 + 24),
    ("aten::_softmax", [[4, 5], [], []], [F32, "Scalar", "Scalar"], ["", "-1", "False"], 100, 160),
    (
        "aten::layer_norm",
        [[6, 8], [], [8], [8], [], []],
        [F32, "ScalarList", F32, F32, "Scalar", "Scalar"],
        ["", "[8]"],
        288,
        2 * 192 + 64 + 48,
    ),
    (
        "aten::layer_norm",  # for bfloat16, the statistics are float32
        [[6, 8], [], [8], [8], [], []],
        [BF16, "ScalarList", BF16, BF16, "Scalar", "Scalar"],
        ["", "[8]"],
        288,
        2 * 96 + 32 + 48,
    ),
    (
        "aten::native_layer_norm_backward",  # the bias is not read
        [[6, 8], [6, 8], [], [6, 1], [6, 1], [8], [8], []],
        [F32, F32, "ScalarList", F32, F32, F32, F32, "ScalarList"],
        ["", "", "[8]", "", "", "", "", MASK],
        9 * 48,
        3 * 192 + 48 + 3 * 32,
    ),
    (
        "aten::native_layer_norm_backward",  # only the gradient of the weight was requested
        [[6, 8], [6, 8], [], [6, 1], [6, 1], [8], [8], []],
        [F32, F32, "ScalarList", F32, F32, F32, F32, "ScalarList"],
        ["", "", "[8]", "", "", "", "", "[False, True, False]"],
        9 * 48,
        2 * 192 + 48 + 2 * 32,
    ),
    (
        "aten::_fused_rms_norm",
        [[6, 8], [], [8], []],
        [BF16, "ScalarList", BF16, ""],
        ["", "[8]"],
        4 * 48 + 2 * 6,
        2 * 96 + 16 + 24,
    ),
    (
        "aten::instance_norm",  # mean and deviation of each channel of each sample
        [[2, 3, 4, 4], [], [], [], [], [], [], [], []],
        [F32] + [""] * 4 + ["Scalar"] * 4,
        ["", "", "", "", "", "True"],
        5 * 96 + 18,
        2 * 384 + 48,
    ),
    (
        "triton_poi_fused_add_mul_0",
        [[4, 8], [4, 8], [4, 8], []],
        [F32] * 3 + ["Scalar"],
        ["", "", "", "32"],
        64,
        3 * 128,
    ),
    ("triton_red_fused_sum_1", [[4, 8], [4], [], []], [F32] * 2 + ["Scalar"] * 2, ["", "", "4", "8"], 32, 128 + 16),
)

UNKNOWN = (
    # operator, shapes, types, values, part of the reason
    ("mylib::op", [[2, 2]], [F32], [], "no rule"),
    ("aten::mm", [], [], [], "record_shapes"),
    ("aten::mm", [["s0", 4], [4, 8]], [F32, F32], [], "symbolic size: s0"),
    ("aten::mm", [[[2, 3], [4, 3]], [3, 8]], [F32, F32], [], "nested"),
    ("aten::mm", [[2, 3], [4, 8]], [F32, F32], [], "not a product"),
    ("aten::mm", [[], [4, 8]], [F32, F32], [], "not a product"),
    ("aten::mul", [[], []], ["", "double"], ["", ""], "nested"),
    ("aten::bmm", [[-1, 3, 4], [2, 4, 8]], [F32, F32], [], "nested"),
    ("aten::convolution", [[2, 3, 8, 8], [4, 3, 3, 3]], [F32, F32], [], "not recorded"),
    ("aten::cat", [[[2, 2], [2, 2]], []], ["TensorList", "Scalar"], [], "list of tensors"),
    ("aten::index", [[4, 8], []], [F32, ""], [], "positions were not recorded"),
    ("aten::_fused_adamw_", [[], [], [], [], []], ["TensorList"] * 5, [], "more than 30 tensors"),
    ("aten::_flash_attention_forward", [[100, 8, 64]] * 3, [BF16] * 3, [], "lengths of the sequences"),
    (
        "aten::_scaled_dot_product_flash_attention",
        [[1, 8, 4, 16], [1, 8, 6, 16], [1, 8, 6, 16], [], []],
        [BF16] * 3 + ["Scalar"] * 2,
        ["", "", "", "0.", "True"],
        "causal",
    ),
)


def call(operator: str, dims: list[Any], types: list[str], values: list[str], **more: Any) -> Cost:
    """Return the cost of a call."""
    return cost_of(Arguments(operator, tuple(dims), tuple(types), (), tuple(values), **more))


@pytest.fixture(autouse=True)
def no_added_rules() -> Iterator[None]:
    """Remove the rules that a test adds."""
    yield
    remove_added_rules()


@pytest.mark.parametrize(("operator", "dims", "types", "values", "flops", "moved"), HAND_COUNTED)
def test_hand_counted_costs(operator, dims, types, values, flops, moved) -> None:  # noqa: PLR0917 -- the columns of the table
    """Operations and bytes equal those counted by hand."""
    cost = call(operator, dims, types, values)
    assert (cost.flops, cost.bytes, cost.reason) == (flops, moved, "")


@pytest.mark.parametrize(("operator", "dims", "types", "values", "reason"), UNKNOWN)
def test_unknown_costs_have_a_reason(operator, dims, types, values, reason) -> None:
    """If the inputs do not determine a cost, it is unknown, and the reason says what is missing."""
    cost = call(operator, dims, types, values)
    assert cost.flops is None
    assert reason in cost.reason


@pytest.mark.parametrize("odd", [["s0", 4], [[2, 3], [4, 3]], [-1, 4]], ids=["symbolic", "nested", "negative"])
@pytest.mark.parametrize(("operator", "dims", "types", "values", "flops", "moved"), HAND_COUNTED)
def test_odd_shapes_never_change_a_cost_in_silence(operator, dims, types, values, flops, moved, odd) -> None:  # noqa: PLR0917 -- the columns of the table
    """If a shape is symbolic, nested or negative, the cost either stays the same or is unknown with a reason."""
    for place in (index for index, shape in enumerate(dims) if shape):
        cost = call(operator, [*dims[:place], odd, *dims[place + 1 :]], types, values)
        assert cost.reason or (cost.flops, cost.bytes) == (flops, moved)


def test_an_unknown_element_type_leaves_the_operations_known() -> None:
    """Operations follow from sizes alone; bytes also depend on the element type, which is unknown here."""
    cost = call("aten::mm", [[2, 3], [3, 4]], ["c10::Strange", "c10::Strange"], [])
    assert (cost.flops, cost.bytes) == (48, None)
    assert "c10::Strange" in cost.reason


def test_the_backward_pass_of_a_convolution_is_a_convolution_for_each_gradient() -> None:
    """The gradients of input and filter each cost as much as the forward pass, as in FlopCounterMode."""
    dims = [[2, 4, 4, 4], [2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [], [], []]
    types = [F32] * 3 + ["ScalarList"] * 4 + ["Scalar", "ScalarList", "Scalar", "ScalarList"]
    values = ["", "", "", "[4]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    once = 2 * 2 * 16 * 4 * 27
    both, filter_only = (
        call("aten::convolution_backward", dims, types, [*values, mask])
        for mask in ("[True, True, True]", "[False, True, False]")
    )
    assert (both.dense_flops, filter_only.dense_flops) == (2 * once, once)


def test_dense_operations_have_neither_bias_nor_mask() -> None:
    """Dense operations are those that PyTorch's FlopCounterMode counts.

    A product has 2·M·N·K dense operations, whether or not a bias is added. Those of attention cover all query-key
    pairs, as if there were no mask.
    """
    assert call(*HAND_COUNTED[3][:4]).dense_flops == 48
    causal = next(row for row in HAND_COUNTED if "True" in row[3][4:5])
    assert call(*causal[:4]).dense_flops == 2 * 10_239_377_408


def test_a_stride_of_0_repeats_elements_in_one_place() -> None:
    """The elements of an expanded tensor are stored only once, so their bytes count once."""
    strides = ([5, 1], [0, 1])
    cost = cost_of(Arguments("aten::add", ([4, 5], [4, 5]), (F32, F32), strides))
    assert cost.bytes == 80 + 20 + 80


def test_the_kernel_shows_the_element_type_of_a_list() -> None:
    """No element type is recorded for lists, so it is taken from the template arguments in the kernel's name."""
    lists = [[[2, 8], [2, 8]], []], ["TensorList", "Scalar"], ["", "0"]
    assert (
        call(
            "aten::cat",
            *lists,
            kernels=("CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, int>",),
        ).bytes
        == 2 * 2 * 32
    )
    assert (
        call(
            "aten::_foreach_mul_",
            *lists,
            kernels=("multi_tensor_apply_kernel<ListMetadata<1>, BinaryOp<float, 1>, float>",),
        ).bytes
        == 2 * 4 * 32
    )


def test_parameters_of_a_kernel_are_not_element_types() -> None:
    """The `long` parameters in the kernels of `_chunk_cat` are positions; they do not show the element type.

    One kernel copies the bytes of float32 values, the other one converts from bfloat16. The result is padded.
    """
    lists = [[[3], [2, 4]], [], [], [2, 6]], ["TensorList", "Scalar", "Scalar", F32], ["", "0", "2", ""]
    copied = "void at::native::detail::chunk_cat_cuda_kernel<char, char>(char**, char*, long*, long, long)"
    converted = "void at::native::detail::chunk_cat_cuda_kernel<c10::BFloat16, float>(char**, char*, long*, long)"
    assert call("aten::_chunk_cat", *lists, kernels=(copied,)).bytes == 4 * 11 + 4 * 12
    assert call("aten::_chunk_cat", *lists, kernels=(converted,)).bytes == 2 * 11 + 4 * 12
    assert "element type" in call("aten::cat", *(part[:1] for part in lists), kernels=(copied,)).reason


def test_all_lists_are_read_and_the_first_is_written() -> None:
    """`a += b` on lists of tensors reads both lists and writes `a`; `a *= 2` reads and writes `a`."""
    kernels = ("multi_tensor_apply_kernel<ListMetadata<1>, BinaryOp<float, 1>, float>",)
    lists = [[[2, 8], [2, 8]], [[2, 8], [2, 8]], []]
    assert (
        call("aten::_foreach_add_", lists, ["TensorList", "TensorList", "Scalar"], [], kernels=kernels).bytes
        == 3 * 4 * 32
    )
    assert (
        call("aten::_foreach_mul_", lists, ["TensorList", "Scalar", "Scalar"], [], kernels=kernels).bytes == 2 * 4 * 32
    )


def test_a_mask_by_number_halves_the_work() -> None:
    """In `_efficient_attention_forward`, the numbers 1 and 2 mean a causal mask."""
    dims, types = [[2, 6, 4, 8]] * 3 + [[]] * 7, [BF16] * 3 + ["Scalar"] * 7
    full, causal = (call("aten::_efficient_attention_forward", dims, types, [""] * 9 + [mask]) for mask in ("0", "1"))
    assert (full.flops, causal.flops) == (4 * 2 * 4 * 36 * 8, 2 * 2 * 4 * 36 * 8)


def test_what_the_compiler_recorded_comes_first() -> None:
    """If a trace contains `kernel_flop` and `kernel_num_gb`, they replace counts derived from the kernel's name."""
    cost = call(*HAND_COUNTED[-1][:4], recorded={"flops": 7.0, "bytes": 9.0})
    assert (cost.flops, cost.bytes) == (7, 9)


def test_attention_over_a_cache_needs_the_sums_of_the_step() -> None:
    """The name of a vLLM step has sums over its requests; from them, the rule computes the same counts as TraceLens."""
    step = "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)"
    dims = [[8192, 64, 64], [8192, 8, 64], [8192, 8, 64], [8192, 64, 64], [], [], [], [0]]
    types = [BF16] * 4 + [""] * 3 + [BF16]
    cost = call("vllm::unified_attention_with_output", dims, types, [], sums=request_sums(step))
    assert (cost.flops, cost.bytes) == (65_010_180_096, 222_115_840)
    assert "gives their sums" in call("vllm::unified_attention_with_output", dims, types, []).reason
    assert request_sums("step[DECODE bs=32]") == request_sums(None) == {}


def test_a_rule_of_formulas() -> None:
    """A user's formulas take precedence over the built-in rules."""
    add_rule("aten::mm", flops="2 * size(0, 0) * number(2)", bytes="bytes(0) // 2 + max(1, elements(1))", work="matrix")
    assert call("aten::mm", [[2, 3], [3, 4], []], [F32, F32, "Scalar"], ["", "", "10"]) == Cost(
        40, 24, "matrix", "float32", 40
    )


def test_a_rule_that_is_a_function() -> None:
    """A user's rule may be a function of the arguments."""
    add_rule("mylib::gemm", lambda arguments: Cost(arguments.elements(0), 1))
    assert call("mylib::gemm", [[2, 3]], [F32], []) == Cost(6, 1)


def test_a_formula_that_cannot_be_computed_is_unknown() -> None:
    """If a formula divides by 0 or needs an input that is missing, the cost is unknown; no error is raised."""
    add_rule("mylib::odd", flops="1 // elements(0)")
    assert "cannot be computed" in call("mylib::odd", [[0]], [F32], []).reason
    add_rule("mylib::odd", flops="elements(3)")
    assert "input 3" in call("mylib::odd", [[0]], [F32], []).reason


@pytest.mark.parametrize(
    "text", ["__import__('os')", "elements.__class__", "2 ** 9", "x", "'a'", "(", "[1]", "lambda: 1"]
)
def test_formulas_are_only_arithmetic(text) -> None:
    """Only simple arithmetic is accepted; unknown names, attributes and powers, for example, are refused."""
    with pytest.raises(InvalidOptionError, match="is not a formula"):
        add_rule("mylib::gemm", flops=text)


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "needs `flops` or `bytes`"), ({"flops": "1", "work": "magic"}, "is not one of")],
)
def test_an_incomplete_rule_is_refused(options, message) -> None:
    """A rule that lacks a formula or has an unknown kind of work is refused."""
    with pytest.raises(InvalidOptionError, match=message):
        add_rule("mylib::gemm", **options)


def test_rules_from_a_file(tmp_path, monkeypatch) -> None:
    """Rules are read from the file that `RULES_VARIABLE` names: JSON or, in Python 3.11 and later, TOML."""
    rule = {"pattern": "mylib::scale", "flops": "elements(0)", "bytes": "2 * bytes(0)"}
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"rules": [rule]}))
    monkeypatch.setenv(RULES_VARIABLE, str(file))
    scaled = Cost(32, 256, "vector", "float32", 0)
    assert call("mylib::scale", [[4, 8]], [F32], []) == scaled
    if sys.version_info >= (3, 11):
        toml = tmp_path / "rules.toml"
        toml.write_text("[[rules]]\n" + "\n".join(f'{key} = "{text}"' for key, text in rule.items()))
        monkeypatch.setenv(RULES_VARIABLE, str(toml))
        assert call("mylib::scale", [[4, 8]], [F32], []) == scaled


NAMES = [
    *{row[0] for row in (*HAND_COUNTED, *UNKNOWN)},
    *(
        "aten::linear",
        "aten::dot",
        "aten::addmv",
        "aten::_grouped_mm",
        "aten::mkldnn_rnn_layer",
        "aten::cudnn_convolution",
    ),
    *(
        "aten::miopen_convolution",
        "aten::_slow_conv2d_forward",
        "aten::convolution_backward",
        "aten::native_group_norm",
    ),
    *(
        "aten::batch_norm",
        "aten::native_batch_norm_backward",
        "aten::_fused_rms_norm_backward",
        "aten::max",
        "aten::topk",
    ),
    *(
        "aten::max_pool2d_with_indices",
        "aten::_adaptive_avg_pool2d",
        "aten::nll_loss_forward",
        "aten::mse_loss",
        "aten::where",
    ),
    *(
        "aten::index_select",
        "aten::gather",
        "aten::scatter_add_",
        "aten::embedding_bag",
        "aten::_foreach_add_",
        "aten::index",
    ),
    *(
        "aten::upsample_nearest2d",
        "aten::replication_pad2d",
        "aten::native_dropout",
        "aten::embedding_dense_backward",
        "aten::_efficient_attention_forward",
    ),
    *(
        "vllm::unified_attention_with_output",
        "aten::_scaled_dot_product_flash_attention_backward",
        "aiter::add_rmsnorm",
    ),
    *("vllm::moe_forward", "vllm::inplace_fused_experts", "aiter::fmoe_g1u1", "aiter::ck_moe_stage1"),
    *("aiter::ck_moe_stage2", "_C::cutlass_scaled_mm", "_C::cutlass_scaled_fp4_mm", "aiter::batched_gemm_bf16"),
    *("aten::_weight_int4pack_mm", "torchao::rowwise_scaled_linear_sparse_cutlass_f8f8", "tex_ts::te_gemm_ts"),
    *("_Linear", "_LayerNormMLP", "_GroupedLinear", "flash_attn_3::fwd", "flash_attn_3::bwd"),
    *("flash_attn::_flash_attn_varlen_forward", "flash_attn::_flash_attn_varlen_backward", "aiter::mha_bwd"),
    *("xformers_flash::flash_fwd", "triton_tem_fused_mm_0", "_C::static_scaled_fp8_quant"),
]
sizes = st.one_of(st.integers(-2, 70), st.just(2**70), st.text(max_size=2), st.none(), st.booleans())
shapes = st.one_of(st.lists(sizes, max_size=5), st.lists(st.lists(sizes, max_size=3), max_size=3), st.none(), sizes)
scalars = st.one_of(
    st.sampled_from(["", "True", "False", "0", "1", "[1, 1]", "[0]", "[-1]", "[9, 9]", "[True]", "[", "1e400"]),
    st.text(max_size=4),
)
kinds = st.one_of(
    st.sampled_from([F32, BF16, LONG, "TensorList", "Scalar", "ScalarList", "", "bool", "c10::complex<float>"]),
    st.text(max_size=4),
)


@given(
    st.sampled_from(NAMES),
    st.lists(shapes, max_size=9),
    st.lists(kinds, max_size=9),
    st.lists(shapes, max_size=9),
    st.lists(scalars, max_size=11),
)
def test_no_input_breaks_a_rule(operator, dims, types, strides, values) -> None:
    """Whatever the trace contains, a cost is known or has a reason, and no rule raises an error."""
    cost = cost_of(Arguments(operator, tuple(dims), tuple(types), tuple(strides), tuple(values)))
    assert cost.reason or (cost.flops is not None and cost.bytes is not None)


def test_every_rule_has_a_formula_and_a_source() -> None:
    """Every rule has the formula and the source that the reference page shows."""
    for rule in RULES:
        formula = getattr(rule.formula, "func", rule.formula)
        assert formula.__doc__, rule.pattern
        assert rule.source, rule.pattern


DIFFERENCES = Path(__file__).parent / "bytes_against_tracelens.csv"
"""Every operator and shape for which TraceLens counts a different number of bytes, with both numbers and the reason."""


@pytest.mark.slow
def test_operations_equal_those_of_tracelens(goldens) -> None:
    """For every operator and shape that both model, holotrace and TraceLens count the same number of operations."""
    rows = tracelens_rows(goldens)
    assert len(rows) > 150
    for row in rows:
        cost = recorded_cost(row)
        if not cost.reason.startswith(("no rule", "the lengths of the requests")):
            assert cost.flops == round(1e9 * float(row["GFLOPS"])), row["name"]


def test_bytes_equal_those_of_tracelens_or_the_difference_is_listed(goldens) -> None:
    """The list contains exactly the calls whose bytes TraceLens counts differently, with a reason for each."""
    differing = {
        (row["name"], row["Input Dims"], str(here), str(there))
        for row in tracelens_rows(goldens)
        if (there := tracelens_bytes(row)) is not None
        and (here := recorded_cost(row).bytes) is not None
        and here != there
    }
    with DIFFERENCES.open(newline="") as file:
        listed = list(csv.DictReader(file))
    assert all(row["reason"] for row in listed)
    columns = ("operator", "input_dims", "bytes_here", "bytes_in_tracelens")
    assert differing == {tuple(row[column] for column in columns) for row in listed}


def tracelens_rows(goldens: Path) -> list[dict[str, str]]:
    """Return those rows of all tables whose operators TraceLens can model."""
    paths = sorted((goldens / "tracelens").glob("*/unified_perf_summary.csv"))
    return [row for path in paths for row in modelled(path)]


def tracelens_bytes(row: dict[str, str]) -> int | None:
    """Return the bytes that TraceLens counts; the values in its "MB" column are in MiB."""
    return round(2**20 * float(row["Data Moved (MB)"])) if row["Data Moved (MB)"] else None


def modelled(path: Path) -> list[dict[str, str]]:
    """Return those rows of one table whose operators TraceLens can model."""
    with path.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["has_perf_model"] == "True"]


def recorded_cost(row: dict[str, str]) -> Cost:
    """Return the cost that holotrace computes for the call in a row of TraceLens' table."""
    dims, strides = (lists(ast.literal_eval(row[f"Input {name}"])) for name in ("Dims", "Strides"))
    types, values = (ast.literal_eval(row[name]) for name in ("Input type", "Concrete Inputs"))
    return cost_of(Arguments(row["name"], tuple(dims), types, tuple(strides), values))


def lists(value: Any) -> Any:
    """Turn tuples into lists, as JSON does."""
    return [lists(part) for part in value] if isinstance(value, tuple) else value
