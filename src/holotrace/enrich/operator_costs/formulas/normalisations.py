"""Compute the costs of normalisations and softmax: a few operations per element; reading and writing dominate.

E is the number of elements, C the number of parameters or channels, R the number of rows. Operations are counted as in
TraceLens, so the results of both tools can be compared. Bytes include every tensor once. TraceLens' `bytes_moved`
differs for some operators, because TraceLens assumes that there are as many statistics as channels. Source:
https://github.com/AMD-AGI/TraceLens/blob/main/TraceLens/PerfModel/perf_model.py
"""

from __future__ import annotations

from math import prod

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError


def layer_norm(arguments: Arguments) -> Cost:
    """FLOPs: 5·E + 6·C for E elements, C parameters. Bytes: input, output, parameters, and each row's mean and deviation."""
    elements, parameters = arguments.elements(0), _normalised(arguments, 1)
    rows = elements // max(parameters, 1)
    return _forward(
        arguments, 5 * elements + 6 * parameters, (2, 3), statistics=2 * rows * _accumulator_bytes(arguments)
    )


def group_norm(arguments: Arguments) -> Cost:
    """FLOPs: 5·E + 6·C for C channels. Bytes: as for `layer_norm`, but one mean and deviation per group of each sample."""
    shape = arguments.shape(0)
    is_native = "native" in arguments.operator
    parameters, groups = ((1, 2), arguments.number(6)) if is_native else ((2, 3), arguments.number(1))
    flops = 5 * prod(shape) + 6 * _channels(arguments, 0)
    return _forward(arguments, flops, parameters, statistics=2 * shape[0] * groups * arguments.element_bytes(0))


def batch_norm(arguments: Arguments) -> Cost:
    """FLOPs: 5·E + 6·C for C channels, or 2·E + 6·C with stored statistics. Bytes: input, output, parameters and statistics."""
    channels = _channels(arguments, 0)
    in_training = arguments.flag(5, default=True)
    flops = (5 if in_training else 2) * arguments.elements(0) + 6 * channels
    stored = [index for index in (3, 4) if arguments.has_tensor(index)]
    written = sum(arguments.bytes(index) for index in stored) if in_training else 0
    normalised = arguments.shape(0)[0] * channels if arguments.operator == "aten::instance_norm" else channels
    statistics = 2 * normalised if in_training else 0
    cost = _forward(arguments, flops, (1, 2, *stored), statistics=statistics * _accumulator_bytes(arguments))
    return Cost(cost.flops, (cost.bytes or 0) + written, "vector", cost.precision)


def rms_norm(arguments: Arguments, parameter: int = 2, normalised: int | None = 1) -> Cost:
    """FLOPs: 4·E + 2·R for R rows. Bytes: input, output, weight and, for PyTorch's operator, one deviation per row."""
    elements = arguments.elements(0)
    width = _normalised(arguments, normalised) if normalised is not None else arguments.shape(0)[-1]
    rows = elements // max(width, 1)
    statistics = 0 if normalised is None else rows * _accumulator_bytes(arguments)
    return _forward(arguments, 4 * elements + 2 * rows, (parameter,), statistics=statistics)


def added_rms_norm(arguments: Arguments) -> Cost:
    """`residual + input`, normalised. FLOPs: 5·E + 2·R. Bytes: two inputs, two outputs and the weight."""
    rows, width = _rows(arguments)
    flops = 5 * rows * width + 2 * rows
    return Cost(flops, 4 * arguments.bytes(0) + width * arguments.element_bytes(0), "vector", arguments.precision(0))


def layer_norm_backward(arguments: Arguments) -> Cost:
    """FLOPs: 9·E. Bytes: the gradient, the input, the statistics, the weight and the requested gradients."""
    return _backward(arguments, 9 * arguments.elements(1), weight=5, statistics=(3, 4), mask=7, bias=6)


def group_norm_backward(arguments: Arguments) -> Cost:
    """FLOPs: 9·E. Bytes: as for `layer_norm_backward`."""
    return _backward(arguments, 9 * arguments.elements(1), weight=4, statistics=(2, 3), mask=9, bias=4)


def batch_norm_backward(arguments: Arguments) -> Cost:
    """FLOPs: 9·E. Bytes: as for `layer_norm_backward`."""
    statistics = (5, 6) if arguments.is_given(5) else (3, 4)
    return _backward(arguments, 9 * arguments.elements(1), weight=2, statistics=statistics, mask=9, bias=2)


def library_batch_norm_backward(arguments: Arguments) -> Cost:
    """Arguments as in cuDNN and MIOpen (input, gradient, …). FLOPs: 4·E + 3·C. Bytes: as for `layer_norm_backward`."""
    flops = 4 * arguments.elements(0) + 3 * _channels(arguments, 0)
    return _backward(arguments, flops, weight=2, statistics=(5, 6), bias=2)


def rms_norm_backward(arguments: Arguments) -> Cost:
    """FLOPs: 10·E with a weight, 8·E without. Bytes: as for `layer_norm_backward`."""
    is_weighted = arguments.has_tensor(4) and bool(arguments.dims[4])
    flops = (10 if is_weighted else 8) * arguments.elements(1)
    return _backward(arguments, flops, weight=4, statistics=(3,), mask=5)


def softmax(arguments: Arguments) -> Cost:
    """FLOPs: 5·E: maximum, difference, exponential, sum, quotient. Bytes: input and output."""
    elements = arguments.elements(0)
    written = 4 if arguments.flag(2) else arguments.element_bytes(0)
    return Cost(5 * elements, arguments.bytes(0) + elements * written, "vector", arguments.precision(0))


def softmax_backward(arguments: Arguments) -> Cost:
    """FLOPs: 4·E: product, sum, difference, product. Bytes: gradient, output and result."""
    elements = arguments.elements(1)
    moved = arguments.bytes(0) + arguments.bytes(1) + elements * arguments.element_bytes(0)
    return Cost(4 * elements, moved, "vector", arguments.precision(0))


def _forward(arguments: Arguments, flops: int, parameters: tuple[int, ...], *, statistics: int) -> Cost:
    """Return the cost of a forward pass that also writes `statistics` bytes of statistics."""
    read = sum(arguments.bytes(index) for index in parameters if arguments.is_given(index))
    moved = arguments.bytes(0) + arguments.elements(0) * arguments.element_bytes(0) + read + statistics
    return Cost(flops, moved, "vector", arguments.precision(0))


def _backward(  # noqa: PLR0913 -- positions of inputs
    arguments: Arguments,
    flops: int,
    *,
    weight: int,
    statistics: tuple[int, ...],
    mask: int | None = None,
    bias: int | None = None,
) -> Cost:
    """Return the cost of a backward pass; inputs 0 and 1 are the gradient and the layer's input, in either order.

    The pass writes the gradient of the bias but does not read the bias. Only the size of the bias matters, so `bias`
    may be the position of any input of the same size. The mask shows which gradients were requested. If no mask was
    recorded, all gradients are assumed to be requested.
    """
    used = [index for index in (0, 1, weight, *statistics) if arguments.is_given(index)]
    asked = _gradients(arguments, mask)
    written = arguments.elements(1) * arguments.element_bytes(1) if asked[0] else 0
    for index, is_asked in zip((weight, bias), asked[1:], strict=False):
        if index is not None and is_asked and arguments.is_given(index):
            written += arguments.bytes(index)
    return Cost(flops, sum(map(arguments.bytes, used)) + written, "vector", arguments.precision(1))


def _gradients(arguments: Arguments, mask: int | None) -> list[bool]:
    """Return whether the gradients of input, weight and bias were requested."""
    texts = [] if mask is None else arguments.text(mask).strip("[]").replace(" ", "").lower().split(",")
    return [text in {"true", "1"} for text in texts] if len(texts) > 1 else [True] * 3


def _accumulator_bytes(arguments: Arguments) -> int:
    """Return the bytes per statistic; on the GPU, the statistics of 16-bit inputs are float32.

    https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cuda/layer_norm_kernel.cu
    """
    return max(4, arguments.element_bytes(0))


def _normalised(arguments: Arguments, index: int) -> int:
    sizes = arguments.numbers(index)
    if sizes is None:
        message = "the normalised dimensions were not recorded"
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
