"""Compute the costs of convolutions: 2 operations for each filter element at each position of the filter."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from holotrace.enrich.operator_costs.arguments import Arguments, Shape
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError
from holotrace.enrich.operator_costs.formulas.reductions import size_at


class _Geometry(NamedTuple):
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    transposed: bool = False
    output_padding: list[int] | None = None
    groups: int = 1


def convolution(arguments: Arguments) -> Cost:
    """FLOPs: 2·N·(positions)·(elements of the filter). Bytes: input, filter and output.

    Positions are those of the output or, in a transposed convolution, of the input. The bias is not
    counted: another operator adds it, or its cost is negligible.
    """
    geometry = _Geometry(
        stride=_sizes(arguments, 3),
        padding=_sizes(arguments, 4),
        dilation=_sizes(arguments, 5),
        transposed=arguments.flag(6),
        output_padding=arguments.numbers(7),
        groups=arguments.number(8, 1),
    )
    return _forward(arguments, geometry)


def library_convolution(arguments: Arguments) -> Cost:
    """As `convolution`, with the arguments of cuDNN and MIOpen (input, filter, padding, stride, dilation, groups)."""
    first = 3 if "miopen" in arguments.operator or arguments.has_tensor(2) or not arguments.text(2) else 2
    padding, stride, dilation = (_sizes(arguments, first + place) for place in range(3))
    return _forward(arguments, _Geometry(stride, padding, dilation, groups=arguments.number(first + 3, 1)))


def slow_convolution(arguments: Arguments) -> Cost:
    """As `convolution`, with the arguments of PyTorch's kernels (input, filter, kernel size, bias, stride, padding)."""
    stride, padding = _sizes(arguments, 4), _sizes(arguments, 5)
    return _forward(arguments, _Geometry(stride, padding, [1] * len(stride)))


def convolution_backward(arguments: Arguments) -> Cost:
    """FLOPs: one convolution per requested gradient (input, filter). Bytes: what these convolutions read and write."""
    gradient, image, kernel = (arguments.shape(index) for index in range(3))
    mask = _mask(arguments, 10)
    transposed = arguments.flag(7)
    positions = prod(image[2:]) if transposed else prod(gradient[2:])
    once = 2 * image[0] * positions * prod(kernel)
    flops = once * (mask[0] + mask[1])
    read = arguments.bytes(0) + (arguments.bytes(2) if mask[0] else 0) + (arguments.bytes(1) if mask[1] else 0)
    written = (arguments.bytes(1) if mask[0] else 0) + (arguments.bytes(2) if mask[1] else 0)
    bias = gradient[1] * arguments.element_bytes(0) if mask[2] else 0
    added = prod(gradient) if mask[2] else 0
    return Cost(flops + added, read + written + bias, "matrix", arguments.precision(1), flops)


def _forward(arguments: Arguments, geometry: _Geometry) -> Cost:
    image, kernel = arguments.shape(0), arguments.shape(1)
    batched = len(image) == len(kernel)
    if len(kernel) < 3 or not (batched or len(image) == len(kernel) - 1):  # noqa: PLR2004 -- channels in and out, and one length
        message = f"{list(image)} and {list(kernel)} are not an image and a filter"
        raise UnknownCostError(message)
    batch, spatial = (image[0], image[2:]) if batched else (1, image[1:])
    output = _output(spatial, kernel[2:], geometry)
    flops = 2 * batch * prod(spatial if geometry.transposed else output) * prod(kernel)
    channels = kernel[1] * geometry.groups if geometry.transposed else kernel[0]
    written = batch * channels * prod(output) * arguments.element_bytes(0)
    return Cost(flops, arguments.bytes(0) + arguments.bytes(1) + written, "matrix", arguments.precision(0), flops)


def _output(image: Shape, kernel: Shape, geometry: _Geometry) -> list[int]:
    lengths = []
    for place, (size, width) in enumerate(zip(image, kernel, strict=True)):
        stride, padding, dilation = (size_at(sizes, place) for sizes in geometry[:3])
        span = dilation * (width - 1) + 1
        if geometry.transposed:
            extra = size_at(geometry.output_padding or [0], place)
            lengths.append(max(0, (size - 1) * stride - 2 * padding + span + extra))
        else:
            lengths.append(max(0, (size + 2 * padding - span) // max(stride, 1) + 1))
    return lengths


def _sizes(arguments: Arguments, index: int) -> list[int]:
    sizes = arguments.numbers(index)
    if not sizes:
        message = f"argument {index}, a list of sizes, was not recorded"
        raise UnknownCostError(message)
    return sizes


def _mask(arguments: Arguments, index: int) -> list[bool]:
    texts = arguments.text(index).strip("[]").replace(" ", "").split(",")
    if len(texts) != 3:  # noqa: PLR2004 -- input, filter, bias
        message = "the trace does not show which gradients were requested"
        raise UnknownCostError(message)
    return [text.lower() in {"true", "1"} for text in texts]
