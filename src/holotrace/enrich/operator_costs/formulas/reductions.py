"""Compute the costs of reductions, pooling, sorting and losses: one operation for each element that is read."""

from __future__ import annotations

from math import prod

from holotrace.enrich.operator_costs.arguments import Arguments, Shape
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError


def reduction(arguments: Arguments, dimensions: int = 1, result: int = 0, flops_each: int = 1) -> Cost:
    """FLOPs: 1 for each element of the input. Bytes: input and result.

    The argument at position `dimensions` lists the reduced dimensions.
    """
    shape = arguments.shape(0)
    reduced = arguments.numbers(dimensions)
    elements = prod(remaining(shape, reduced))
    size = result or arguments.element_bytes(0)
    return Cost(flops_each * prod(shape), arguments.bytes(0) + elements * size, "vector", arguments.precision(0))


def with_positions(arguments: Arguments) -> Cost:
    """Like `reduction`, but with 8 more bytes for the position of each result."""
    cost = reduction(arguments)
    reduced = arguments.numbers(1)
    positions = 0 if reduced is None else 8 * prod(remaining(arguments.shape(0), reduced))
    return Cost(cost.flops, (cost.bytes or 0) + positions, "vector", cost.precision)


def scan(arguments: Arguments) -> Cost:
    """`cumsum`, `cumprod`. FLOPs: E. Bytes: input and result."""
    return Cost(arguments.elements(0), 2 * arguments.bytes(0), "vector", arguments.precision(0))


def largest(arguments: Arguments) -> Cost:
    """`topk` along the last dimension. FLOPs: E. Bytes: input, k values and k positions."""
    shape, count = arguments.shape(0), arguments.number(1)
    kept = prod(shape[:-1]) * count
    moved = arguments.bytes(0) + kept * (arguments.element_bytes(0) + 8)
    return Cost(prod(shape), moved, "vector", arguments.precision(0))


def sort(arguments: Arguments) -> Cost:
    """FLOPs: 1 for each element, although sorting may take E·⌈log2 E⌉ comparisons. Bytes: input, values and positions."""
    elements = arguments.elements(0)
    return Cost(elements, 2 * arguments.bytes(0) + 8 * elements, "vector", arguments.precision(0))


def pooling(arguments: Arguments, *, positions: bool) -> Cost:
    """FLOPs: 1 for each element of each window. Bytes: input, result and, if returned, positions."""
    shape, window = arguments.shape(0), arguments.numbers(1)
    if not window or len(shape) < 3:  # noqa: PLR2004 -- channels and one length
        message = "the size of the window was not recorded"
        raise UnknownCostError(message)
    spatial = shape[-len(window) :] if len(window) > 1 else shape[2:]
    stride, padding = arguments.numbers(2) or window, arguments.numbers(3) or [0]
    lengths = [
        max(0, (size + 2 * size_at(padding, place) - size_at(window, place)) // max(1, size_at(stride, place)) + 1)
        for place, size in enumerate(spatial)
    ]
    elements = prod(shape[: len(shape) - len(spatial)]) * prod(lengths)
    size = arguments.element_bytes(0) + (8 if positions else 0)
    every = prod(size_at(window, place) for place in range(len(spatial)))
    return Cost(elements * every, arguments.bytes(0) + elements * size, "vector", arguments.precision(0))


def adaptive_pooling(arguments: Arguments) -> Cost:
    """FLOPs: 1 for each element of the input. Bytes: input and result."""
    shape, sizes = arguments.shape(0), arguments.numbers(1)
    if not sizes:
        message = "the size of the result was not recorded"
        raise UnknownCostError(message)
    elements = prod(shape[: len(shape) - len(sizes)]) * prod(sizes)
    moved = arguments.bytes(0) + elements * arguments.element_bytes(0)
    return Cost(prod(shape), moved, "vector", arguments.precision(0))


def pooling_backward(arguments: Arguments) -> Cost:
    """FLOPs: 1 for each element of the result's gradient. Bytes: the gradients of the result and of the input."""
    moved = arguments.bytes(0) + arguments.elements(1) * arguments.element_bytes(1)
    return Cost(arguments.elements(0), moved, "vector", arguments.precision(0))


def negative_log_likelihood(arguments: Arguments) -> Cost:
    """FLOPs: 1 for each target. Bytes: the targets, and one element of the input for each target."""
    targets = arguments.elements(1)
    return Cost(targets, targets * arguments.element_bytes(0) + arguments.bytes(1), "vector", arguments.precision(0))


def negative_log_likelihood_backward(arguments: Arguments) -> Cost:
    """FLOPs: 1 for each target. Bytes: the targets, and one element of the gradient for each target.

    A separate operator fills the remaining elements of the gradient with zeros.
    """
    targets = arguments.elements(2)
    return Cost(targets, targets * arguments.element_bytes(1) + arguments.bytes(2), "vector", arguments.precision(1))


def loss(arguments: Arguments) -> Cost:
    """Losses of two tensors. FLOPs: 2 per element. Bytes: both tensors and the result (1 element if reduced)."""
    kept = arguments.bytes(0) if arguments.text(2) == "0" else arguments.element_bytes(0)
    return Cost(
        2 * arguments.elements(0), arguments.bytes(0) + arguments.bytes(1) + kept, "vector", arguments.precision(0)
    )


def remaining(shape: Shape, reduced: list[int] | None) -> Shape:
    """Return the sizes of the dimensions that are not reduced; if `reduced` is empty, all dimensions are reduced."""
    if not reduced:
        return ()
    places = {place % len(shape) for place in reduced} if shape else set()
    return tuple(size for place, size in enumerate(shape) if place not in places)


def size_at(sizes: list[int], place: int) -> int:
    """Return the size that applies to a dimension; if only one size is given, it applies to all dimensions."""
    return sizes[place] if len(sizes) > 1 else sizes[0]
