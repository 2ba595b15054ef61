"""Finds the sizes of element types from their names in traces."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

_TYPES = {
    "float32": (4, ("float",)),
    "float64": (8, ("double",)),
    "float16": (2, ("half",)),
    "bfloat16": (2, ()),
    "int8": (1, ("char", "signed char")),
    "uint8": (1, ("byte", "unsigned char")),
    "int16": (2, ("short", "short int")),
    "uint16": (2, ("unsigned short",)),
    "int32": (4, ("int",)),
    "uint32": (4, ("unsigned int",)),
    "int64": (8, ("long", "long int", "long long")),
    "uint64": (8, ("unsigned long",)),
    "bool": (1, ()),
    "complex32": (4, ("complexhalf", "complex<half>")),
    "complex64": (8, ("complexfloat", "complex<float>")),
    "complex128": (16, ("complexdouble", "complex<double>")),
    "qint8": (1, ()),
    "quint8": (1, ()),
    "qint32": (4, ()),
}
"""The size of each type in bytes, and its names in c10 and C++, in lower case and without `c10::`."""

_NAMES = {other: name for name, (_, others) in _TYPES.items() for other in (name, *others)}
_SMALL_FLOATS = ("float8_", "float4_")


def type_name(text: str | None) -> str | None:
    """Return PyTorch's public name of a type: `bfloat16` for `c10::BFloat16`; unknown names stay unchanged."""
    plain = _plain(text)
    return plain if plain.startswith(_SMALL_FLOATS) else _NAMES.get(plain, text)


def element_bytes(text: str | None) -> int | None:
    """Return the bytes per element of a type, such as `Float`, `c10::BFloat16` or `long int`; None if unknown."""
    plain = _plain(text)
    if plain.startswith(_SMALL_FLOATS):
        return 1
    return _TYPES[_NAMES[plain]][0] if plain in _NAMES else None


def _plain(text: str | None) -> str:
    return (text or "").replace("c10::", "").strip().lower()


def input_bytes(dims: str | None, types: str | None) -> int | None:
    """Return the total bytes of an operator's input tensors, from the JSON of their shapes and types.

    Return None if shapes or types were not recorded, or if no input is a tensor of a known type. Lists of tensors are
    not counted, because their element type is not recorded.
    """
    if dims is None or types is None:
        return None
    sized = [(shape, element_bytes(kind)) for shape, kind in zip(json.loads(dims), json.loads(types), strict=False)]
    known = [math.prod(shape) * size for shape, size in sized if size is not None and _is_shape(shape)]
    return sum(known) if known else None


def common_type(types: str | None) -> str | None:
    """Return the element type of an operator's input tensors, from JSON; None if there are several types or none."""
    named: Sequence[str] = [] if types is None else json.loads(types)
    distinct = {name for name in named if element_bytes(name) is not None}
    return distinct.pop() if len(distinct) == 1 else None


def _is_shape(shape: Any) -> bool:  # noqa: ANN401 -- whatever JSON holds
    return isinstance(shape, list) and all(isinstance(dim, int) for dim in shape)
