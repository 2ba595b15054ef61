"""Compute the costs of Transformer Engine's layers, which multiply matrices without calling operators like `aten::mm`.

The order of inputs differs between versions, so the formulas find matrices by their shapes.
"""

from __future__ import annotations

import re
from dataclasses import replace

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError

_8_BITS = re.compile(r"e4m3|e5m2|nvjet_qq|fp8|_f8", re.IGNORECASE)
_4_BITS = re.compile(r"e2m1|fp4", re.IGNORECASE)


def linear(arguments: Arguments) -> Cost:
    """Tokens x weights. FLOPs: 2·M·N·K. Bytes: tokens, weights and result.

    The first matrix among the inputs contains the tokens; the last matrix with the same last dimension, the weights.
    """
    first, last = _alike(arguments)
    return _cost(arguments, first, last, arguments.shape(first)[-1])


def _alike(arguments: Arguments) -> tuple[int, int]:
    """Return the positions of the tokens (first matrix) and the weights (last matrix with the same last dimension)."""
    matrices = _matrices(arguments)
    shared = arguments.shape(matrices[0])[-1]
    alike = [index for index in matrices if arguments.shape(index)[-1] == shared]
    if len(alike) < 2 or not shared:  # noqa: PLR2004 -- tokens and weights
        message = "no two inputs are matrices with the same last dimension"
        raise UnknownCostError(message)
    return alike[0], alike[-1]


def two_layers(arguments: Arguments) -> Cost:
    """`_LayerNormMLP`. FLOPs: 2·T·(elements of both weights). Bytes: tokens, weights and result.

    Each weight may be followed by its 8-bit copy, which has the same shape.
    """
    tokens, *others = _matrices(arguments)
    if len(others) not in {2, 4}:
        message = f"expected two weights (or four, with copies) after the tokens, but found {len(others)} matrices"
        raise UnknownCostError(message)
    first, second = others[0], others[len(others) // 2]
    width = arguments.shape(tokens)[-1]
    if arguments.shape(first, 2)[1] != width or arguments.shape(second, 2)[0] != width or not width:
        message = "the shapes of the weights do not match the shape of the tokens"
        raise UnknownCostError(message)
    rows = arguments.elements(tokens) // width
    flops = 2 * rows * (arguments.elements(first) + arguments.elements(second))
    moved = 2 * arguments.bytes(tokens) + arguments.bytes(first) + arguments.bytes(second)
    return Cost(flops, moved, "matrix", _precision(arguments, tokens), flops)


def backward(arguments: Arguments, products: int) -> Cost:
    """For each computed gradient: FLOPs and input bytes of the forward call. Once: bytes of the result's gradient.

    `products` is the number of matrix multiplications in the forward call. The number of tensor-core kernels shows
    whether the call computed one gradient (of the inputs or of the weights) or both. Computing the gradient of
    the inputs moves as many bytes as computing the gradient of the weights. The bytes of a backward pass of two
    multiplications are unknown.
    """
    forward = _forward(arguments, products)
    gradients, rest = divmod(arguments.product_count or 0, products)
    if rest or gradients not in {1, 2}:
        message = (
            f"the number of tensor-core kernels ({arguments.product_count or 0}) "
            "does not show which gradients were computed"
        )
        raise UnknownCostError(message)
    flops = (forward.flops or 0) * gradients
    if products > 1:
        return Cost(
            flops, None, "matrix", forward.precision, flops, "the trace does not show which tensors the gradients need"
        )
    matrices = _alike(arguments.related[0])
    inputs = sum(arguments.related[0].bytes(index) for index in matrices)
    gradient = (forward.bytes or 0) - inputs
    return Cost(flops, gradient + gradients * inputs, "matrix", forward.precision, flops)


def _forward(arguments: Arguments, products: int) -> Cost:
    """Return the cost of the forward call, with the precision that the backward kernels' names show."""
    if not arguments.related:
        message = "the shapes are unknown, because the forward call of this gradient was not recorded"
        raise UnknownCostError(message)
    called = replace(arguments.related[0], kernels=arguments.kernels)
    return linear(called) if products == 1 else two_layers(called)


def grouped(arguments: Arguments) -> Cost:
    """`_GroupedLinear` multiplies each row by the weight of one group. FLOPs: 2·M·N·K. Bytes: rows, all weights, result."""
    rows, *others = _matrices(arguments)
    width = arguments.shape(rows)[-1]
    weights = [index for index in others if len(arguments.shape(index)) == 2 and arguments.shape(index)[1] == width]  # noqa: PLR2004 -- columns and K
    columns = {arguments.shape(index)[0] for index in weights}
    if len(columns) != 1 or not width:
        message = "the weights of the groups do not all have the same shape"
        raise UnknownCostError(message)
    count = arguments.elements(rows) // width
    result = count * columns.pop()
    moved = arguments.bytes(rows) + sum(map(arguments.bytes, weights)) + result * arguments.element_bytes(rows)
    return Cost(2 * result * width, moved, "matrix", _precision(arguments, rows), 2 * result * width)


def scripted_product(arguments: Arguments) -> Cost:
    """`tex_ts::te_gemm_ts` multiplies inputs 0 and 5. FLOPs: 2·M·N·K. Bytes: inputs 0, 5 and 10.

    Argument 4 shows whether input 0 is transposed.
    """
    shape = arguments.shape(0, 2)
    shared = shape[1] if arguments.text(4) in {"1", "True"} else shape[0]
    if not shared or shared not in arguments.shape(5, 2):
        message = "the two factors have no dimension of the same size"
        raise UnknownCostError(message)
    flops = 2 * arguments.elements(0) * arguments.elements(5) // shared
    moved = sum(map(arguments.bytes, (0, 5, 10)))
    precision = "float8" if arguments.element_bytes(0) == 1 else arguments.precision(0)
    return Cost(flops, moved, "matrix", precision, flops)


def _matrices(arguments: Arguments) -> list[int]:
    matrices = [index for index in arguments.tensors() if len(arguments.shape(index)) > 1]
    if not matrices:
        message = "no input is a matrix"
        raise UnknownCostError(message)
    return matrices


def _cost(arguments: Arguments, a: int, b: int, shared: int) -> Cost:
    result = arguments.elements(a) // shared * (arguments.elements(b) // shared)
    moved = arguments.bytes(a) + arguments.bytes(b) + result * arguments.element_bytes(a)
    return Cost(2 * result * shared, moved, "matrix", _precision(arguments, a), 2 * result * shared)


def _precision(arguments: Arguments, index: int) -> str | None:
    """Return the 4- or 8-bit type in the kernel's name or, if the name shows none, the type of the input.

    The kernel's name takes precedence over the input's type, because the call may quantise its inputs first.
    """
    kernel = next(iter(arguments.kernels), "")
    if _4_BITS.search(kernel):
        return "float4"
    return "float8" if _8_BITS.search(kernel) else arguments.precision(index)
