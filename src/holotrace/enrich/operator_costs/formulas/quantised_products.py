"""Compute the costs of operators in kernel libraries that multiply 8-bit or 4-bit matrices with scales."""

from __future__ import annotations

from math import prod

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError

_RESULT_BYTES = 2
"""Bytes per element of the result (16 bits), used if the call was given no result tensor."""


def product(arguments: Arguments, a: int = 0, b: int = 1, result: int | None = None) -> Cost:
    """`[M, K] x [K, N]`: 2·M·N·K; each tensor is moved once: factors, scales, bias and result."""
    left, right = arguments.shape(a), arguments.shape(b, 2)
    if not left or left[-1] != right[0]:
        message = f"{list(left)} x {list(right)} is not a product of matrices"
        raise UnknownCostError(message)
    return _cost(arguments, a, result, (prod(left[:-1]), right[1], right[0]))


def linear(arguments: Arguments, a: int = 0, b: int = 1, result: int | None = None, packed: int = 1) -> Cost:
    """`[…, K] x [N, K]` transposed: 2·M·N·K, where K counts unpacked values; each tensor is moved once."""
    left, right = arguments.shape(a), arguments.shape(b, 2)
    if not left or left[-1] != right[1]:
        message = f"{list(left)} x {list(right)} is not a linear layer"
        raise UnknownCostError(message)
    return _cost(arguments, a, result, (prod(left[:-1]), right[0], left[-1] * packed), packed)


def sparse_linear(arguments: Arguments) -> Cost:
    """`[M, K] x [N, K / 2]`, where two of every four weights are zero and not stored: 2·M·N·K / 2; each tensor is moved once."""
    left, right = arguments.shape(0), arguments.shape(2, 2)
    if not left or left[-1] != 2 * right[1]:
        message = f"{list(left)} x {list(right)} is not a linear layer with 2:4 sparse weights"
        raise UnknownCostError(message)
    return _cost(arguments, 0, None, (prod(left[:-1]), right[0], right[1]))


def batched_linear(arguments: Arguments) -> Cost:
    """`[B, M, K] x [B, N, K]` transposed: 2·B·M·N·K; each tensor is moved once."""
    left, right = arguments.shape(0, 3), arguments.shape(1, 3)
    if (left[0], left[2]) != (right[0], right[2]):
        message = f"{list(left)} x {list(right)} is not a product of matrices"
        raise UnknownCostError(message)
    return _cost(arguments, 0, None, (left[0] * left[1], right[1], left[2]))


def packed_weights(arguments: Arguments, scales: int = 3) -> Cost:
    """`[M, K]` x 4-bit weights in a special order: 2·M·N·K, where N comes from the shape of the scales, `[K / group, N, …]`; each tensor is moved once."""
    left, scale = arguments.shape(0, 2), arguments.shape(scales)
    if len(scale) < 2:  # noqa: PLR2004 -- groups and columns
        message = "the scales have no dimension for the columns"
        raise UnknownCostError(message)
    return _cost(arguments, 0, None, (left[0], scale[1], left[1]))


def _cost(arguments: Arguments, a: int, result: int | None, sizes: tuple[int, int, int], packed: int = 1) -> Cost:
    rows, columns, shared = sizes
    flops = 2 * rows * columns * shared
    is_given = result is not None and arguments.has_tensor(result)
    if is_given and result is not None and arguments.elements(result) != rows * columns:
        message = "the size of the result tensor does not match the factors"
        raise UnknownCostError(message)
    moved = sum(map(arguments.bytes, arguments.tensors())) + (0 if is_given else rows * columns * _RESULT_BYTES)
    return Cost(flops, moved, "matrix", "float4" if packed > 1 else arguments.precision(a), flops)
