"""Costs of normalisations and softmax: a few operations for each element; what is read and written dominates.

Operations are counted as TraceLens counts them, so that both tools can be compared:
https://github.com/AMD-AGI/TraceLens/blob/main/TraceLens/PerfModel/perf_model.py
Bytes count every tensor once; `bytes_moved` of TraceLens differs where it takes the channels for the statistics.
"""

from __future__ import annotations

from math import prod

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError


def layer_norm(arguments: Arguments) -> Cost:
    """5·E + 6·C for E elements and C parameters; bytes of input, output, parameters, mean and deviation of each row."""
    elements, parameters = arguments.elements(0), _normalised(arguments, 1)
    rows = elements // max(parameters, 1)
    return _forward(arguments, 5 * elements + 6 * parameters, (2, 3), statistics=2 * rows)


def group_norm(arguments: Arguments) -> Cost:
    """5·E + 6·C for C channels; bytes as `layer_norm`, with a mean and deviation for each group of each sample."""
    shape = arguments.shape(0)
    is_native = "native" in arguments.operator
    parameters, groups = ((1, 2), arguments.number(6)) if is_native else ((2, 3), arguments.number(1))
    return _forward(
        arguments, 5 * prod(shape) + 6 * _channels(arguments, 0), parameters, statistics=2 * shape[0] * groups
    )


def batch_norm(arguments: Arguments) -> Cost:
    """5·E + 6·C in training, 2·E + 6·C with stored statistics; bytes of input, output, parameters and statistics."""
    channels = _channels(arguments, 0)
    in_training = arguments.flag(5, default=True)
    flops = (5 if in_training else 2) * arguments.elements(0) + 6 * channels
    stored = [index for index in (3, 4) if arguments.has_tensor(index)]
    written = sum(arguments.bytes(index) for index in stored) if in_training else 0
    statistics = 2 * channels if in_training else 0
    cost = _forward(arguments, flops, (1, 2, *stored), statistics=statistics)
    return Cost(cost.flops, (cost.bytes or 0) + written, "vector", cost.precision)


def rms_norm(arguments: Arguments, parameter: int = 2, normalised: int | None = 1) -> Cost:
    """4·E + 2·R for R rows; bytes of input, output and weight."""
    elements = arguments.elements(0)
    width = _normalised(arguments, normalised) if normalised is not None else arguments.shape(0)[-1]
    flops = 4 * elements + 2 * (elements // max(width, 1))
    return _forward(arguments, flops, (parameter,), statistics=0)


def added_rms_norm(arguments: Arguments) -> Cost:
    """`residual + input`, normalised: 5·E + 2·R; bytes of two inputs, two outputs and the weight."""
    rows, width = _rows(arguments)
    flops = 5 * rows * width + 2 * rows
    return Cost(flops, 4 * arguments.bytes(0) + width * arguments.element_bytes(0), "vector", arguments.precision(0))


def layer_norm_backward(arguments: Arguments) -> Cost:
    """9·E; bytes of the gradient, the input, its gradient, statistics, and parameters with their gradients."""
    return _backward(arguments, 9 * arguments.elements(1), parameters=(5, 6), statistics=(3, 4))


def group_norm_backward(arguments: Arguments) -> Cost:
    """9·E; bytes as `layer_norm_backward`."""
    return _backward(arguments, 9 * arguments.elements(1), parameters=(4,), statistics=(2, 3), bias=4)


def batch_norm_backward(arguments: Arguments) -> Cost:
    """9·E; bytes as `layer_norm_backward`."""
    return _backward(arguments, 9 * arguments.elements(1), parameters=(2,), statistics=(5, 6), bias=2)


def library_batch_norm_backward(arguments: Arguments) -> Cost:
    """Those of cuDNN and MIOpen (input, gradient, weight, …): 4·E + 3·C; bytes as `layer_norm_backward`."""
    flops = 4 * arguments.elements(0) + 3 * _channels(arguments, 0)
    return _backward(arguments, flops, parameters=(2,), statistics=(5, 6), bias=2)


def rms_norm_backward(arguments: Arguments) -> Cost:
    """10·E with a weight, 8·E without; bytes as `layer_norm_backward`."""
    is_weighted = arguments.has_tensor(4) and bool(arguments.dims[4])
    flops = (10 if is_weighted else 8) * arguments.elements(1)
    return _backward(arguments, flops, parameters=(4,) if is_weighted else (), statistics=(3,))


def softmax(arguments: Arguments) -> Cost:
    """5·E: maximum, difference, exponential, sum, quotient; bytes of input and output."""
    elements = arguments.elements(0)
    written = 4 if arguments.flag(2) else arguments.element_bytes(0)
    return Cost(5 * elements, arguments.bytes(0) + elements * written, "vector", arguments.precision(0))


def softmax_backward(arguments: Arguments) -> Cost:
    """4·E: product, sum, difference, product; bytes of gradient, output and result."""
    elements = arguments.elements(1)
    moved = arguments.bytes(0) + arguments.bytes(1) + elements * arguments.element_bytes(0)
    return Cost(4 * elements, moved, "vector", arguments.precision(0))


def _forward(arguments: Arguments, flops: int, parameters: tuple[int, ...], *, statistics: int) -> Cost:
    size = arguments.element_bytes(0)
    read = sum(arguments.bytes(index) for index in parameters if _is_used(arguments, index))
    moved = arguments.bytes(0) + arguments.elements(0) * size + read + statistics * size
    return Cost(flops, moved, "vector", arguments.precision(0))


def _backward(
    arguments: Arguments, flops: int, parameters: tuple[int, ...], statistics: tuple[int, ...], bias: int | None = None
) -> Cost:
    """Gradient and input are inputs 0 and 1; parameters are read and their gradients written."""
    used = [index for index in parameters if _is_used(arguments, index)]
    read = sum(arguments.bytes(index) for index in (0, 1, *used, *statistics) if _is_used(arguments, index))
    gradients = arguments.elements(1) * arguments.element_bytes(1) + sum(map(arguments.bytes, used))
    of_bias = arguments.bytes(bias) if bias is not None and _is_used(arguments, bias) else 0
    return Cost(flops, read + gradients + of_bias, "vector", arguments.precision(1))


def _is_used(arguments: Arguments, index: int) -> bool:
    """Whether a tensor is there; an undefined tensor has an empty type or no sizes."""
    return arguments.has_tensor(index) and bool(arguments.dims[index])


def _normalised(arguments: Arguments, index: int) -> int:
    sizes = arguments.numbers(index)
    if sizes is None:
        message = "which dimensions are normalised was not recorded"
        raise UnknownCostError(message)
    return prod(sizes)


def _channels(arguments: Arguments, index: int) -> int:
    shape = arguments.shape(index)
    if len(shape) < 2:  # noqa: PLR2004 -- samples and channels
        message = "the input has no channels"
        raise UnknownCostError(message)
    return shape[1]


def _rows(arguments: Arguments) -> tuple[int, int]:
    shape = arguments.shape(0)
    if not shape:
        message = "the input has no dimensions"
        raise UnknownCostError(message)
    return prod(shape[:-1]), shape[-1]
