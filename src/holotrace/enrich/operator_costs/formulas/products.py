"""Compute the costs of matrix products: 2 x M x N x K operations; each matrix is moved once."""

from __future__ import annotations

from math import prod

from holotrace.enrich.operator_costs.arguments import Arguments, Shape
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError


def product(arguments: Arguments, a: int = 0, b: int = 1, bias: int | None = None) -> Cost:
    """`[…, M, K] x […, K, N]`. FLOPs: 2·B·M·N·K, + B·M·N with a bias. Bytes: both inputs, bias and result."""
    left, right = arguments.shape(a), arguments.shape(b)
    if len(left) < 2 or len(right) < 2 or left[-1] != right[-2]:  # noqa: PLR2004 -- rows and columns
        message = f"{list(left)} x {list(right)} is not a product of matrices"
        raise UnknownCostError(message)
    return _product(arguments, (a, b), (prod(left[:-1]), right[-1], left[-1]), bias)


def linear(arguments: Arguments, a: int = 0, b: int = 1, bias: int | None = 2) -> Cost:
    """`[…, K] x [N, K]` transposed. FLOPs: 2·M·N·K, + M·N with a bias. Bytes: both inputs, bias and result."""
    left, right = arguments.shape(a), arguments.shape(b, 2)
    if not left or left[-1] != right[1]:
        message = f"{list(left)} x {list(right)} is not a linear layer"
        raise UnknownCostError(message)
    return _product(arguments, (a, b), (prod(left[:-1]), right[0], left[-1]), bias)


def with_bias_first(arguments: Arguments) -> Cost:
    """`beta·bias + a x b`: as `product`, where input 0 is the bias. If beta is 0, the bias is not counted."""
    beta = arguments.text(3) or "1"
    return product(arguments, 1, 2, None if beta.rstrip("0.") == "" else 0)


def scaled(arguments: Arguments) -> Cost:
    """FP8 and FP4 products with scales: as `product`; each element of the result has 2 bytes unless the arguments name its type."""
    cost = product(arguments, 0, 1, next((index for index in (4, 5) if arguments.has_tensor(index)), None))
    left, right = arguments.shape(0), arguments.shape(1)
    result = left[0] * right[1] * _SCALED_RESULT.get(arguments.text(6), 2)
    moved = arguments.bytes(0) + arguments.bytes(1) + result
    scales = sum(arguments.bytes(index) for index in (2, 3) if arguments.has_tensor(index))
    return Cost(cost.flops, moved + scales, "matrix", arguments.precision(0), cost.dense_flops)


def matrix_vector(arguments: Arguments, a: int = 0, b: int = 1) -> Cost:
    """`[M, K] x [K]`. FLOPs: 2·M·K. Bytes: the matrix, the vector and the result."""
    rows, columns = arguments.shape(a, 2)
    if arguments.shape(b, 1) != (columns,):
        message = "the length of the vector does not match the matrix"
        raise UnknownCostError(message)
    flops = 2 * rows * columns
    moved = arguments.bytes(a) + arguments.bytes(b) + rows * arguments.element_bytes(a)
    return Cost(flops, moved, "matrix", arguments.precision(a), flops)


def matrix_vector_with_bias(arguments: Arguments) -> Cost:
    """`bias + a x b` with a vector b: as `matrix_vector`, plus M FLOPs and the bytes of the bias."""
    cost = matrix_vector(arguments, 1, 2)
    rows = arguments.shape(1)[0]
    return Cost(
        _plus(cost.flops, rows), _plus(cost.bytes, arguments.bytes(0)), "matrix", cost.precision, cost.dense_flops
    )


def dot(arguments: Arguments) -> Cost:
    """The inner product of two vectors. FLOPs: 2·K. Bytes: both vectors."""
    flops = 2 * arguments.elements(0)
    return Cost(flops, arguments.bytes(0) + arguments.bytes(1), "vector", arguments.precision(0))


def grouped(arguments: Arguments) -> Cost:
    """Grouped products `[M, K] x [G, K, N]`; each row belongs to one group. FLOPs: 2·M·N·K. Bytes: both inputs and the result."""
    left, right = arguments.shape(0), arguments.shape(1)
    if (len(left), len(right)) == (2, 3) and left[1] == right[1]:
        rows, columns, shared = left[0], right[2], left[1]
    elif (len(left), len(right)) == (2, 2) and left[1] == right[0]:
        return _summed_in_groups(arguments)
    elif (len(left), len(right)) == (3, 3) and left[0] == right[0] and left[2] == right[1]:
        return product(arguments)
    else:
        message = f"{list(left)} x {list(right)} are not the shapes of a grouped product"
        raise UnknownCostError(message)
    return _product(arguments, (0, 1), (rows, columns, shared), None)


def _summed_in_groups(arguments: Arguments) -> Cost:
    """Multiply, for each group, its columns of `[M, K]` by its rows of `[K, N]`. FLOPs: 2·M·N·K over all groups."""
    (rows, shared), columns, groups = arguments.shape(0, 2), arguments.shape(1, 2)[1], arguments.elements(2)
    flops = 2 * rows * columns * shared
    moved = arguments.bytes(0) + arguments.bytes(1) + groups * rows * columns * arguments.element_bytes(0)
    return Cost(flops, moved, "matrix", arguments.precision(0), flops)


def recurrent(arguments: Arguments, passes: int = 1) -> Cost:
    """RNN, LSTM, GRU over T steps of B sequences. FLOPs: 2·T·B·(elements of weights) per pass. Bytes: weights, input.

    `passes` is 2 for a backward pass: one pass computes the gradients of the inputs, the other those of the weights.
    """
    sequence = arguments.shape(0, 3)
    weights = [shape for shape in _weights(arguments) if len(shape) == 2]  # noqa: PLR2004 -- matrices, not biases
    if not weights:
        message = "the weights have no recorded shape"
        raise UnknownCostError(message)
    flops = 2 * passes * sequence[0] * sequence[1] * sum(map(prod, weights))
    moved = arguments.bytes(0) + sum(map(prod, weights)) * arguments.element_bytes(0)
    return Cost(flops, moved, "matrix", arguments.precision(0), flops)


def _weights(arguments: Arguments) -> list[Shape]:
    if arguments.type(1) in {"TensorList", "GenericList"}:
        return arguments.shapes(1)
    return [arguments.shape(index) for index in (1, 2) if arguments.has_tensor(index)]


def _product(arguments: Arguments, factors: tuple[int, int], sizes: tuple[int, int, int], bias: int | None) -> Cost:
    a, b = factors
    rows, columns, shared = sizes
    dense = 2 * rows * columns * shared
    has_bias = bias is not None and arguments.has_tensor(bias)
    flops = dense + (rows * columns if has_bias else 0)
    precision = arguments.precision(a)
    try:
        result = rows * columns * arguments.element_bytes(a)
        moved = arguments.bytes(a) + arguments.bytes(b) + result
        if bias is not None and has_bias:
            moved += arguments.bytes(bias)
    except UnknownCostError as error:
        return Cost(flops, None, "matrix", precision, dense, str(error))
    return Cost(flops, moved, "matrix", precision, dense)


def _plus(value: int | None, more: int) -> int | None:
    return None if value is None else value + more


_SCALED_RESULT = {"6": 4, "7": 8, "23": 1, "24": 1, "25": 1, "26": 1}
"""Bytes per element of the result, by the number of its type, `out_dtype`.

https://github.com/pytorch/pytorch/blob/main/torch/headeronly/core/ScalarType.h
"""
