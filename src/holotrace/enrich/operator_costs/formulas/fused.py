"""Costs of kernels that `torch.compile` generates with Triton."""

from __future__ import annotations

import re
from math import prod

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError

_NAME = re.compile(r"triton_(poi|red|per)_fused_(.*?)_?\d*$")

_OPERATIONS = {
    **dict.fromkeys(("add", "sub", "mul", "div", "relu", "mean", "sum", "abs", "neg", "ne", "eq", "lt", "gt"), 1),
    **dict.fromkeys(("pow", "sqrt", "rsqrt", "var", "reciprocal"), 2),
    **dict.fromkeys(("exp", "log", "sigmoid", "tanh", "silu"), 4),
    "gelu": 8,
}
"""Operations for each element, by the name of the fused operator, as TraceLens counts them; others count 0:
https://github.com/AMD-AGI/TraceLens/blob/main/TraceLens/PerfModel/triton_compiled_perf_model.py"""


def generated(arguments: Arguments) -> Cost:
    """(Elements)·(operations of the operators in the name); bytes of every tensor once.

    A tensor that the kernel changes in place counts once, since the trace does not say which one it is. Operations and
    bytes that the compiler recorded (`kernel_flop`, `kernel_num_gb`) come first.
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
    return Cost(flops, moved, "vector", precision, reason="" if flops is not None else "the operations are unknown")


def operations_each(fused: str) -> int:
    """Return the operations for each element of the operators in the name of a kernel: `add_mean_mul_pow_rsqrt`.

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
