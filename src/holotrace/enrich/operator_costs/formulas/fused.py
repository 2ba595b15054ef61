"""Compute the costs of kernels that `torch.compile` generates with Triton."""

from __future__ import annotations

import re
from itertools import pairwise
from math import prod

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError

_NAME = re.compile(r"triton_(poi|red|per)_fused_(.*?)_?\d*$")

_TEMPLATE = re.compile(r"triton_tem_fused_")
_PRODUCT = re.compile(r"_(add|b|badd)?mm_|_(add|b|badd)?mm$")
_UNKNOWN = "the operations are unknown"

_OPERATIONS = {
    **dict.fromkeys(("add", "sub", "mul", "div", "relu", "mean", "sum", "abs", "neg", "ne", "eq", "lt", "gt"), 1),
    **dict.fromkeys(("pow", "sqrt", "rsqrt", "var", "reciprocal"), 2),
    **dict.fromkeys(("exp", "log", "sigmoid", "tanh", "silu"), 4),
    "gelu": 8,
}
"""Operations per element, by the name of the fused operator, as TraceLens counts them; other operators count as 0:
https://github.com/AMD-AGI/TraceLens/blob/main/TraceLens/PerfModel/triton_compiled_perf_model.py"""


def generated(arguments: Arguments) -> Cost:
    """FLOPs: (elements)·(operations in the kernel's name); 2·M·N·K for matrix products. Bytes: every tensor once.

    Even a tensor that the kernel reads and then overwrites is counted once, because the trace does not show which
    tensors are overwritten. Operations and bytes that the compiler recorded (`kernel_flop`, `kernel_num_gb`) take
    precedence.
    """
    fused = _NAME.match(arguments.operator)
    flops = _recorded(arguments, "flops")
    moved = _recorded(arguments, "bytes")
    if flops is None and fused:
        flops = _elements(arguments, fused[1]) * operations_each(fused[2])
    if moved is None:
        moved = sum(map(arguments.bytes, arguments.tensors()))
    tensors = arguments.tensors()
    precision = arguments.precision(tensors[0]) if tensors else None
    if _TEMPLATE.match(arguments.operator):
        return _of_template(arguments, flops, moved, precision)
    return Cost(flops, moved, "vector", precision, reason="" if flops is not None else _UNKNOWN)


def _of_template(arguments: Arguments, flops: int | None, moved: int, precision: str | None) -> Cost:
    """Return the cost of a kernel made from a template: a matrix product, or attention with an unrecorded mask."""
    if flops is None and _PRODUCT.search(arguments.operator):
        flops = _product(arguments)
    reason = (
        "flex_attention skips blocks according to a mask that was not recorded"
        if "flex_attention" in arguments.operator
        else _UNKNOWN
    )
    return Cost(flops, moved, "matrix", precision, flops, "" if flops is not None else reason)


def _product(arguments: Arguments) -> int | None:
    """Return 2·B·M·N·K, the FLOPs of the first product of adjacent inputs that has the shape of an input."""
    shapes = [arguments.shape(index) for index in arguments.tensors()]
    for left, right in pairwise(shapes):
        is_product = len(left) == len(right) > 1 and left[-1] == right[-2] and left[:-2] == right[:-2]
        if is_product and (*left[:-1], right[-1]) in shapes:
            return 2 * prod(left) * right[-1]
    return None


def operations_each(fused: str) -> int:
    """Return the operations per element for all operators in a kernel's name, such as `add_mean_mul_pow_rsqrt`.

    >>> operations_each("add_mean_mul_pow_rsqrt")
    7
    """
    return sum(_OPERATIONS.get(word, 0) for word in fused.split("_"))


def _elements(arguments: Arguments, kind: str) -> int:
    lengths = [int(text) for text in arguments.values if text.isdigit()]
    if not lengths:
        message = "the number of elements was not recorded"
        raise UnknownCostError(message)
    return lengths[-1] if kind == "poi" or len(lengths) == 1 else prod(lengths[-2:])


def _recorded(arguments: Arguments, name: str) -> int | None:
    value = arguments.recorded.get(name)
    return None if value is None else round(value)
