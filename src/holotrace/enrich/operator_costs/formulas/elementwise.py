"""Compute the costs of operators that do a fixed number of operations per element and move each tensor once."""

from __future__ import annotations

from math import floor, prod

from holotrace.enrich.collectives.element_types import element_bytes, type_name
from holotrace.enrich.operator_costs.arguments import Arguments, Shape
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError

_PROMOTION = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
"""Element types in the order in which PyTorch promotes them; https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc"""

_INTEGERS = _PROMOTION[:6]


def elementwise(arguments: Arguments, flops_each: int = 1, inputs: tuple[int, ...] = (0,), result: int = 0) -> Cost:
    """FLOPs: `flops_each` (default 1) for each element of the result. Bytes: inputs and result.

    Args:
        arguments: the inputs.
        flops_each: operations per element of the result.
        inputs: positions of the tensors that are read.
        result: bytes per element of the result; 0 to derive them from the types of the inputs.
    """
    read = [index for index in inputs if arguments.has_tensor(index)]
    if not read or not arguments.type(0):
        message = "no input is a tensor of a known type (nested tensors have none)"
        raise UnknownCostError(message)
    shape = broadcast([arguments.shape(index) for index in read])
    kind = promoted(arguments, read)
    size = result or element_bytes(kind)
    if size is None:
        message = f"the element type is unknown: {kind or 'not recorded'}"
        raise UnknownCostError(message)
    moved = sum(map(arguments.bytes, read)) + prod(shape) * size
    return Cost(flops_each * prod(shape), moved, "vector", kind)


def comparison(arguments: Arguments) -> Cost:
    """FLOPs: 1 for each element. Bytes: inputs and a boolean result."""
    return elementwise(arguments, 1, tuple(index for index in (0, 1) if arguments.has_tensor(index)), 1)


def copy(arguments: Arguments) -> Cost:
    """`destination, source`. FLOPs: 1 for each element (a conversion). Bytes: both tensors."""
    elements = arguments.elements(0)
    moved = elements * arguments.element_bytes(0) + arguments.bytes(1)
    return Cost(elements, moved, "copy", arguments.precision(0))


def fill(arguments: Arguments) -> Cost:
    """FLOPs: none. Bytes: the tensor that is written."""
    return Cost(0, arguments.elements(0) * arguments.element_bytes(0), "copy", arguments.precision(0))


def gated(arguments: Arguments) -> Cost:
    """`activation(a)·b` for the input's two halves a and b. FLOPs: 5 per result element. Bytes: input and result."""
    elements = arguments.elements(0)
    moved = arguments.bytes(0) + arguments.bytes(1)
    return Cost(5 * elements, moved, "vector", arguments.precision(0))


def rotary_embedding(arguments: Arguments, query: int = 1, key: int = 2) -> Cost:
    """Rotates query and key in place. FLOPs: 3 for each element. Bytes: both tensors, read and written."""
    tensors = [index for index in (query, key) if arguments.has_tensor(index)]
    elements = sum(map(arguments.elements, tensors))
    return Cost(3 * elements, 2 * sum(map(arguments.bytes, tensors)), "vector", arguments.precision(query))


def rotary_embedding_into(arguments: Arguments) -> Cost:
    """Rotates inputs 2 and 3, and writes to inputs 0 and 1. FLOPs: 3 for each element. Bytes: all four tensors."""
    elements = arguments.elements(2) + arguments.elements(3)
    return Cost(3 * elements, sum(map(arguments.bytes, range(4))), "vector", arguments.precision(2))


def arange(arguments: Arguments) -> Cost:
    """Writes the range `start, end, step` into a tensor. FLOPs: none. Bytes: the result."""
    start, end, step = (arguments.number(index) for index in range(3))
    if not step or not arguments.has_tensor(3):
        message = "the result of arange was not recorded"
        raise UnknownCostError(message)
    elements = max(0, -((start - end) // step))
    return Cost(0, elements * arguments.element_bytes(3), "copy", arguments.precision(3))


def dropout(arguments: Arguments) -> Cost:
    """FLOPs: 2 for each element. Bytes: input, output and a boolean mask."""
    elements = arguments.elements(0)
    return Cost(2 * elements, 2 * arguments.bytes(0) + elements, "vector", arguments.precision(0))


def quantise_into(arguments: Arguments) -> Cost:
    """`result, input, scale`. FLOPs: 2 for each element (a scaling and a conversion). Bytes: all three tensors."""
    moved = sum(map(arguments.bytes, (0, 1, 2)))
    return Cost(2 * arguments.elements(1), moved, "vector", arguments.precision(1))


def resample(arguments: Arguments) -> Cost:
    """FLOPs: 1 for each element of the result, whose size is an argument. Bytes: input and result."""
    shape, sizes = arguments.shape(0), arguments.numbers(1) or _scaled_sizes(arguments)
    if not sizes or len(sizes) > len(shape):
        message = "the size of the result was not recorded"
        raise UnknownCostError(message)
    elements = prod(shape[: len(shape) - len(sizes)]) * prod(sizes)
    moved = arguments.bytes(0) + elements * arguments.element_bytes(0)
    return Cost(elements, moved, "vector", arguments.precision(0))


def _scaled_sizes(arguments: Arguments) -> list[int]:
    """Return the sizes of the result's last dimensions: the input's sizes times argument 2 or 3, such as `[2., 2.]`."""
    shape = arguments.shape(0)
    factors = next((listed for index in (2, 3) if (listed := arguments.factors(index))), [])
    if len(factors) > len(shape):
        return []
    return [floor(size * factor) for size, factor in zip(shape[len(shape) - len(factors) :], factors, strict=True)]


def pad(arguments: Arguments) -> Cost:
    """FLOPs: 1 for each element of the result. Bytes: input and result.

    The padding argument lists two numbers (before, after) for each padded dimension, beginning with the last dimension.
    """
    shape, padding = arguments.shape(0), arguments.numbers(1) or []
    if not padding or len(padding) % 2 or len(padding) // 2 > len(shape):
        message = "the padding was not recorded"
        raise UnknownCostError(message)
    sizes = list(shape)
    for place, (before, after) in enumerate(zip(padding[::2], padding[1::2], strict=True)):
        sizes[-1 - place] = max(0, sizes[-1 - place] + before + after)
    moved = arguments.bytes(0) + prod(sizes) * arguments.element_bytes(0)
    return Cost(prod(sizes), moved, "copy", arguments.precision(0))


def broadcast(shapes: list[Shape]) -> Shape:
    """Return the shape to which all of these shapes are broadcast.

    Raises:
        UnknownCostError: the shapes cannot be broadcast.
    """
    length = max(map(len, shapes))
    padded = [(1,) * (length - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        distinct = {size for size in sizes if size != 1}
        if len(distinct) > 1:
            message = f"the shapes {[list(shape) for shape in shapes]} cannot be broadcast"
            raise UnknownCostError(message)
        result.append(distinct.pop() if distinct else 1)
    return tuple(result)


def promoted(arguments: Arguments, tensors: list[int]) -> str | None:
    """Return the element type of the result.

    The kinds of numbers are ranked: boolean, integer, real, complex. A tensor without dimensions affects the result's
    type only if its kind ranks above the kinds of all tensors with dimensions. For example, the sum of an integer
    tensor of shape [3] and a real tensor of shape [] is real.
    """
    types = [(type_name(arguments.type(index)), bool(arguments.dims[index])) for index in tensors]
    if any(kind not in _PROMOTION for kind, _ in types):
        return types[0][0]
    with_dimensions = [str(kind) for kind, is_sized in types if is_sized]
    without = [str(kind) for kind, is_sized in types if not is_sized]
    best = _highest(with_dimensions) if with_dimensions else _highest(without)
    scalar = _highest(without) if without else best
    return ("float32" if with_dimensions else scalar) if _rank(scalar) > _rank(best) else best


def _highest(kinds: list[str]) -> str:
    if {"float16", "bfloat16"} <= set(kinds) and max(map(_PROMOTION.index, kinds)) < _PROMOTION.index("float32"):
        return "float32"
    return max(kinds, key=_PROMOTION.index)


def _rank(kind: str) -> int:
    """Return the rank of a kind of number: 0 boolean, 1 integer, 2 real, 3 complex."""
    if kind == "bool":
        return 0
    return 1 if kind in _INTEGERS else 3 if kind.startswith("complex") else 2
