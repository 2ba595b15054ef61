"""The recorded inputs of one operator call, in the form that cost formulas use."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any

from holotrace.enrich.collectives.element_types import element_bytes, type_name
from holotrace.enrich.operator_costs.cost import UnknownCostError

Shape = tuple[int, ...]

_TENSOR_LISTS = ("TensorList", "GenericList", "OptionalTensorList")


@dataclass(frozen=True)
class Arguments:
    """The inputs of one call; its methods take the `index` of an input, and negative indexes count from the end.

    operator   name of the operator
    dims       shape of each input: a list of sizes or, for a list of tensors, a list of shapes
    types      element type of each tensor; `Scalar`, `ScalarList`, `TensorList` or empty for other inputs
    strides    strides of each input
    values     text of each scalar; empty for tensors
    kernels    names of kernels that the call launched
    recorded   `flops` and `bytes` of a generated kernel, as the compiler recorded them
    sums       sums over the requests of an inference step: `c_sqsk`, …
    related    other operators that the rule reads; see `Rule.reads`
    product_count  number of tensor-core kernels that this call itself launched, if it is known and the call's rule
                   reads the forward operator; otherwise None
    """

    operator: str
    dims: tuple[Any, ...]
    types: tuple[str, ...] = ()
    strides: tuple[Any, ...] = ()
    values: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    recorded: dict[str, float] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    related: tuple[Arguments, ...] = ()
    product_count: int | None = None

    @property
    def count(self) -> int:
        """Number of inputs."""
        return len(self.dims)

    def type(self, index: int) -> str:
        """Return the type of an input; empty if not recorded."""
        return self.types[index] if -len(self.types) <= index < len(self.types) else ""

    def has_tensor(self, index: int) -> bool:
        """Whether this input is a tensor: it has a shape or a known element type."""
        if not -self.count <= index < self.count:
            return False
        return element_bytes(self.type(index)) is not None or (
            _is_shape(self.dims[index]) and bool(self.dims[index]) and self.type(index) not in _TENSOR_LISTS
        )

    def is_given(self, index: int) -> bool:
        """Whether an optional tensor was given; an omitted tensor has an empty type or no sizes."""
        return self.has_tensor(index) and bool(self.dims[index])

    def tensors(self) -> list[int]:
        """Return the positions of the inputs that are tensors."""
        return [index for index in range(self.count) if self.has_tensor(index)]

    def shape(self, index: int, dimensions: int | None = None) -> Shape:
        """Return the shape of a tensor; `dimensions` is the required number of dimensions.

        Raises:
            UnknownCostError: the input is sparse or not a tensor, its shape is symbolic or was not recorded, or it has
                the wrong number of dimensions.
        """
        if not -self.count <= index < self.count or not isinstance(self.dims[index], list):
            message = f"the shape of input {index} was not recorded"
            raise UnknownCostError(message)
        dims = self.dims[index]
        if symbolic := [size for size in dims if isinstance(size, str)]:
            message = f"input {index} has a symbolic size: {symbolic[0]}"
            raise UnknownCostError(message)
        if not _is_shape(dims) or any(size < 0 for size in dims):
            message = f"the shape of input {index} is not a list of sizes (nested tensors have none)"
            raise UnknownCostError(message)
        if dims and self._is_sparse(index):
            message = f"input {index} is sparse: the number of stored elements was not recorded"
            raise UnknownCostError(message)
        if dimensions is not None and len(dims) != dimensions:
            message = f"input {index} has {len(dims)} dimensions instead of {dimensions}"
            raise UnknownCostError(message)
        return tuple(dims)

    def shapes(self, index: int) -> list[Shape]:
        """Return the shapes of a list of tensors.

        Raises:
            UnknownCostError: the input is not a list of shapes, or the trace has an empty list for it. The profiler
                writes an empty list if there are more than 30 tensors; see
                https://github.com/pytorch/pytorch/blob/main/torch/csrc/profiler/util.h
        """
        listed = self.dims[index] if -self.count <= index < self.count else None
        if not isinstance(listed, list) or not all(_is_shape(shape) for shape in listed):
            message = f"input {index} is not a list of shapes"
            raise UnknownCostError(message)
        if not listed:
            message = "the profiler does not record the shapes in lists of more than 30 tensors"
            raise UnknownCostError(message)
        return [tuple(shape) for shape in listed]

    def elements(self, index: int) -> int:
        """Return the number of elements of a tensor."""
        return prod(self.shape(index))

    def element_bytes(self, index: int) -> int:
        """Return the bytes of one element of a tensor.

        Raises:
            UnknownCostError: the element type was not recorded or is unknown.
        """
        size = element_bytes(self.type(index))
        if size is None:
            message = f"the element type of input {index} is unknown: {self.type(index) or 'not recorded'}"
            raise UnknownCostError(message)
        return size

    def bytes(self, index: int) -> int:
        """Return the bytes of a tensor; elements that are repeated by a stride of 0 count once."""
        return self._stored(index) * self.element_bytes(index)

    def precision(self, index: int) -> str | None:
        """Return PyTorch's name of a tensor's element type, such as `bfloat16`."""
        return type_name(self.type(index)) if element_bytes(self.type(index)) is not None else None

    def text(self, index: int) -> str:
        """Return the text of a scalar; empty if not recorded."""
        return self.values[index] if -len(self.values) <= index < len(self.values) else ""

    def flag(self, index: int, *, default: bool = False) -> bool:
        """Return a boolean argument."""
        return {"True": True, "False": False}.get(self.text(index), default)

    def number(self, index: int, default: int | None = None) -> int:
        """Return a whole number.

        Raises:
            UnknownCostError: the number was not recorded, and there is no default.
        """
        try:
            return int(self.text(index))
        except ValueError:
            if default is not None:
                return default
            message = f"argument {index} was not recorded as a number"
            raise UnknownCostError(message) from None

    def numbers(self, index: int) -> list[int] | None:
        """Return a list of whole numbers, such as `[1, 2]`; None if it was not recorded."""
        try:
            listed = json.loads(self.text(index))
        except ValueError:
            return None
        if isinstance(listed, int) and not isinstance(listed, bool):
            return [listed]
        return listed if isinstance(listed, list) and all(isinstance(number, int) for number in listed) else None

    def factors(self, index: int) -> list[float]:
        """Return a list of finite positive numbers, such as `[2., 0.5]`; empty if no such list was recorded."""
        parts = self.text(index).strip("[]").split(",")
        try:
            listed = [float(part) for part in parts] if self.text(index).startswith("[") else []
        except ValueError:
            return []
        return listed if all(0 < factor < inf for factor in listed) else []

    def _is_sparse(self, index: int) -> bool:
        """Whether a tensor is sparse: the profiler records an empty list of strides for sparse tensors.

        The profiler also records an empty list for packed tensors of oneDNN, which are dense. No input of an mkldnn
        operator is therefore treated as sparse.
        """
        is_recorded = -len(self.strides) <= index < len(self.strides)
        return is_recorded and self.strides[index] == [] and "mkldnn" not in self.operator

    def _stored(self, index: int) -> int:
        shape = self.shape(index)
        strides = self.strides[index] if -len(self.strides) <= index < len(self.strides) else None
        if not isinstance(strides, list) or len(strides) != len(shape) or 0 in shape:
            return prod(shape)
        return prod(size for size, stride in zip(shape, strides, strict=True) if stride != 0)


def _is_shape(dims: object) -> bool:
    return isinstance(dims, list) and all(isinstance(size, int) and not isinstance(size, bool) for size in dims)
