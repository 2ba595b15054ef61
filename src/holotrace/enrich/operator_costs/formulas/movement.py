"""Costs of operators that look up and move data."""

from __future__ import annotations

import re
from math import prod

from holotrace.enrich.collectives.element_types import element_bytes
from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError

_OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")
_ELEMENT = re.compile(r"(?<![\w:])(float|double|c10::Half|c10::BFloat16|int|long|bool)(?=[,>])")

_CHUNKS = re.compile(r"chunk_cat_cuda_kernel<([\w:]+), ([\w:]+)>")
"""The element types that a kernel reads and writes; a kernel that only copies bytes has `char` for both."""


def lookup(arguments: Arguments, table: int = 0, positions: int = 1) -> Cost:
    """`table[positions]`. Bytes: the rows written, the same number of rows read (at most the whole table), and the positions."""
    shape, rows = arguments.shape(table), arguments.elements(positions)
    moved_rows = rows + min(rows, shape[0] if shape else 1)
    moved = moved_rows * prod(shape[1:]) * arguments.element_bytes(table) + arguments.bytes(positions)
    return Cost(0, moved, "copy", arguments.precision(table))


def select(arguments: Arguments) -> Cost:
    """`index_select(input, dim, positions)`. Bytes: the positions and the selected elements (read and written)."""
    shape, dimension = arguments.shape(0), arguments.number(1)
    if not shape:
        message = "the input has no dimensions"
        raise UnknownCostError(message)
    taken = prod(shape) // max(1, shape[dimension % len(shape)]) * arguments.elements(2)
    return Cost(0, 2 * taken * arguments.element_bytes(0) + arguments.bytes(2), "copy", arguments.precision(0))


def gather(arguments: Arguments) -> Cost:
    """`gather(input, dim, positions)`. Bytes: the positions and the gathered elements (read and written)."""
    moved = 2 * arguments.elements(2) * arguments.element_bytes(0) + arguments.bytes(2)
    return Cost(0, moved, "copy", arguments.precision(0))


def scatter(arguments: Arguments, source: int = 3) -> Cost:
    """`scatter(input, dim, positions, source)`. FLOPs: 1 per position. Bytes: positions; elements read and written."""
    elements = arguments.elements(2)
    read = elements * arguments.element_bytes(0) if arguments.has_tensor(source) else 0
    return Cost(
        elements, elements * arguments.element_bytes(0) + read + arguments.bytes(2), "copy", arguments.precision(0)
    )


def lookup_backward(arguments: Arguments) -> Cost:
    """Gradient of `table[positions]`. FLOPs: 1 per result element. Bytes: positions; gradients of result and table."""
    width = arguments.shape(0)[-1] if arguments.shape(0) else 0
    table = arguments.number(2) * width * arguments.element_bytes(0)
    moved = arguments.bytes(0) + arguments.bytes(1) + table
    return Cost(arguments.elements(0), moved, "vector", arguments.precision(0))


def bags(arguments: Arguments) -> Cost:
    """`embedding_bag(table, positions, offsets)`. FLOPs: 1 for each element read. Bytes: rows, positions, bags."""
    width, rows, count = arguments.shape(0, 2)[1], arguments.elements(1), arguments.elements(2)
    size = arguments.element_bytes(0)
    moved = (rows + count) * width * size + arguments.bytes(1) + arguments.bytes(2)
    return Cost(rows * width, moved, "vector", arguments.precision(0))


def concatenation(arguments: Arguments) -> Cost:
    """Bytes: all tensors, each read and written once. The kernel's name shows the size of an element."""
    elements = sum(map(prod, arguments.shapes(0)))
    return Cost(0, 2 * elements * listed_element_bytes(arguments), "copy")


def padded_concatenation(arguments: Arguments) -> Cost:
    """`_chunk_cat`: bytes of all tensors that are read, and of the padded result that is written (input 3)."""
    if not arguments.has_tensor(3):
        return concatenation(arguments)
    kinds = next((found for kernel in arguments.kernels if (found := _CHUNKS.search(kernel))), None)
    is_copied = kinds is None or kinds[1] == kinds[2]
    size = arguments.element_bytes(3) if is_copied or kinds is None else element_bytes(kinds[1])
    if size is None:
        message = "the element type of a list of tensors is not recorded"
        raise UnknownCostError(message)
    elements = sum(map(prod, arguments.shapes(0)))
    return Cost(0, elements * size + arguments.bytes(3), "copy", arguments.precision(3))


def split(arguments: Arguments) -> Cost:
    """Bytes of the tensor, read once, and of its parts, each written once."""
    return Cost(0, 2 * arguments.bytes(0), "copy", arguments.precision(0))


def read(arguments: Arguments) -> Cost:
    """Bytes of the tensor, read once."""
    return Cost(0, arguments.bytes(0), "copy", arguments.precision(0))


def index(arguments: Arguments) -> Cost:
    """`input[positions]`: as `lookup` if the positions select along the first dimension; otherwise, unknown.

    Raises:
        UnknownCostError: the positions are masks, or they select along a dimension other than the first.
    """
    if arguments.type(1) not in {"TensorList", "GenericList", "OptionalTensorList"}:
        message = "the shapes of the positions were not recorded"
        raise UnknownCostError(message)
    positions = arguments.shapes(1)
    if len(positions) != 1:
        message = "the inputs do not show along which dimensions the positions select"
        raise UnknownCostError(message)
    if any("bool" in kernel for kernel in arguments.kernels):
        message = "how many elements a mask selects depends on the data"
        raise UnknownCostError(message)
    shape, rows = arguments.shape(0), prod(positions[0])
    moved_rows = rows + min(rows, shape[0] if shape else 1)
    return Cost(0, moved_rows * prod(shape[1:]) * arguments.element_bytes(0) + 8 * rows, "copy", arguments.precision(0))


def cache_update(arguments: Arguments) -> Cost:
    """Copies new keys and values (inputs 0 and 1) into a cache: bytes of both, read and written."""
    moved = 2 * (arguments.bytes(0) + arguments.bytes(1))
    return Cost(0, moved, "copy", arguments.precision(0))


def tensor_lists(
    arguments: Arguments, flops_each: int = 1, lists_written: int = 1, lists_read: int | None = None
) -> Cost:
    """Operators on lists of tensors. FLOPs: `flops_each` (default 1) per element. Bytes: lists written and read."""
    if lists_read is None:
        lists_read = max(1, sum(kind == "TensorList" for kind in arguments.types))
    elements = sum(map(prod, arguments.shapes(0)))
    moved = elements * (lists_read + lists_written) * listed_element_bytes(arguments)
    return Cost(flops_each * elements, moved, "vector")


def listed_element_bytes(arguments: Arguments) -> int:
    """Return the bytes per element of the tensors in a list, from the template arguments of the kernels.

    The profiler records the shapes of the tensors in a list, but not their element type.

    Raises:
        UnknownCostError: the names of the kernels do not show the element type.
    """
    for kernel in arguments.kernels:
        if opaque := _OPAQUE.search(kernel):
            return int(opaque[1])
    for kernel in arguments.kernels:
        template, end, _ = kernel.rpartition(">(")  # drop the types of the kernel's parameters, which follow `>(`
        named = [
            size for size in map(element_bytes, _ELEMENT.findall(f"{template}>" if end else kernel)) if size is not None
        ]
        if named:
            return named[0]
    message = "the element type of a list of tensors is not recorded"
    raise UnknownCostError(message)
