"""Tests of roofline with missing shapes, unusual tensors and unusual types."""

from __future__ import annotations

from typing import Any

import pytest

from holotrace.analyses.roofline.compute import Roofline, roofline
from holotrace.testing.builder import TraceBuilder

H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}
BF16 = "c10::BFloat16"


def of_call(operator: str, dims: Any, types: list[str], values: list[str] | None = None, **more: Any) -> Roofline:
    """Return the roofline of one call whose kernel runs for 20 µs."""
    args = {"Input Dims": dims, "Input type": types, "Concrete Inputs": values or [""] * len(types)}
    if "strides" in more:
        args["Input Strides"] = more["strides"]
    builder = TraceBuilder().header(**H100).operator(operator, start_us=0, duration_us=10, args=args)
    return roofline(builder.kernel(more.get("kernel", "k"), start_us=20, duration_us=20, launch_us=1).build())


@pytest.mark.parametrize(
    ("operator", "dims", "types", "reason"),
    [
        ("aten::mm", [["s0", 4], [4, 8]], ["float"] * 2, "input 0 has a symbolic size: s0"),
        ("aten::bmm", [[2, 3, "u1"], [2, 4, 8]], [BF16] * 2, "input 0 has a symbolic size: u1"),
        (
            "aten::mm",
            [[[2, 4], [3, 4]], [4, 8]],
            ["float"] * 2,
            "the shape of input 0 is not a list of sizes (nested tensors have none)",
        ),
        ("aten::mul", [[], []], ["", "double"], "no input is a tensor of a known type (nested tensors have none)"),
        ("aten::_softmax", [[]], ["QUInt4x2"], "the element type of input 0 is unknown: QUInt4x2"),
        ("aten::index", [[4, 8], []], ["float", ""], "the shapes of the positions were not recorded"),
        ("mylib::op", [[4, 8]], ["float"], "no rule covers the operator"),
    ],
)
def test_what_is_unknown_has_its_reason(operator, dims, types, reason) -> None:
    """If the cost of a call is unknown, the row and the first finding give the reason.

    The FLOPs, the bytes and the lower bound of the call are null, and the coverage is 0 %.
    """
    result = of_call(operator, dims, types)
    row = result.per_operator.row(0, named=True)
    assert (row["flops"], row["bytes_moved"], row["floor_ns"], row["bound"]) == (None, None, None, None)
    assert row["reason"] == reason
    assert result.per_rank["covered_fraction"].item() == 0
    assert reason in result.findings[0]


def test_a_sparse_matrix_has_an_unknown_cost() -> None:
    """An input without strides is sparse; the number of stored elements is unknown, so there is no lower bound."""
    result = of_call("aten::mm", [[64, 32], [32, 8]], ["float"] * 2, strides=[[], [8, 1]])
    row = result.per_operator.row(0, named=True)
    assert (row["flops"], row["bytes_moved"], row["floor_ns"]) == (None, None, None)
    assert row["reason"] == "input 0 is sparse: the number of stored elements was not recorded"


def test_an_empty_tensor_costs_nothing() -> None:
    """The product of a 0 x 4 and a 4 x 8 matrix has 0 FLOPs, reads only the second matrix, and causes no error."""
    row = of_call("aten::mm", [[0, 4], [4, 8]], ["float"] * 2).per_operator.row(0, named=True)
    assert (row["flops"], row["bytes_moved"], row["flops_per_s"], row["reason"]) == (0, 128, 0.0, "")
    nothing = of_call("aten::add", [[0], [0], []], ["float", "float", "Scalar"]).per_operator.row(0, named=True)
    assert (nothing["flops"], nothing["bytes_moved"], nothing["flops_per_byte"], nothing["bound"]) == (0, 0, None, None)
    assert (nothing["floor_ns"], nothing["roofline_fraction"]) == (0, 0.0)


def test_integers_have_their_own_peak() -> None:
    """int8 products are bounded by the int8 peak; int64 products have no peak, so memory bounds them."""
    sizes = [[4096, 4096], [4096, 4096]]
    int8 = of_call("aten::_int_mm", sizes, ["signed char"] * 2).per_operator.row(0, named=True)
    assert (int8["precision"], int8["bound"]) == ("int8", "compute")
    assert int8["floor_ns"] == round(2 * 4096**3 / 1978.9e12 * 1e9)
    int64 = of_call("aten::mm", sizes, ["long int"] * 2).per_operator.row(0, named=True)
    assert (int64["precision"], int64["flops"], int64["bound"]) == ("int64", 2 * 4096**3, "memory")
    assert int64["floor_ns"] == round(3 * 8 * 4096**2 / 3352e9 * 1e9)


def test_an_unknown_element_type_leaves_the_operations() -> None:
    """If only the element type is unknown, FLOPs follow from the sizes, but bytes and lower bound are unknown."""
    row = of_call("aten::mm", [[64, 64], [64, 64]], ["c10::Strange"] * 2).per_operator.row(0, named=True)
    assert (row["flops"], row["bytes_moved"], row["floor_ns"]) == (2 * 64**3, None, None)
    assert row["reason"] == "the element type of input 0 is unknown: c10::Strange"


def test_experts_of_few_tokens_have_a_lower_bound_without_a_resource() -> None:
    """The call reads an unknown number of weights, so it is unknown whether compute or memory bounds the call."""
    dims = [[4, 4096], [64, 2048, 4096], [64, 4096, 1024], [4, 2], [4, 2]]
    row = of_call("vllm::inplace_fused_experts", dims, [BF16] * 3 + ["float", "int"]).per_operator.row(0, named=True)
    assert row["flops"] == 2 * 8 * (4096 * 2048 + 1024 * 4096)
    assert row["reason"] == "the trace does not record which experts 4 tokens chose (2 to 8 of 64)"
    assert (row["floor_ns"], row["bound"]) == (round(row["flops"] / 989.4e12 * 1e9), None)


def test_joined_sequences_from_the_cache_do_not_contradict_the_device() -> None:
    """12 MB in 1 µs exceed the memory bandwidth, but the data may be in the cache; the reason says so."""
    dims = [[2048, 16, 64]] * 3 + [[3], [3]]
    args = {"Input Dims": dims, "Input type": [BF16] * 3 + ["int", "int"]}
    builder = (
        TraceBuilder().header(**H100).operator("aten::_flash_attention_forward", start_us=0, duration_us=5, args=args)
    )
    result = roofline(builder.kernel("flash", start_us=20, duration_us=1, launch_us=1).build())
    row = result.per_operator.row(0, named=True)
    assert (row["flops"], row["bound"]) == (None, None)
    assert "cache" in row["contradiction"]
