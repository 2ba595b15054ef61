"""Compare results by content: same columns, types and rows, with nulls equal to nulls."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl


class EqualByContent:
    """Base class for frozen dataclasses with `eq=False` that contain frames; `==` compares their content.

    Equal results have equal hashes, so they work in sets and as dict keys. Results of different classes are never
    equal.
    """

    def __eq__(self, other: object) -> bool:
        """Return whether all fields are equal; tables are compared by content."""
        if type(other) is not type(self):
            return NotImplemented
        return are_equal(_content(self), _content(other))

    def __hash__(self) -> int:
        """Return a hash of the class and the shapes of the tables."""
        return hash((type(self), *map(_shape, _content(self))))


def _content(result: Any) -> list[object]:  # noqa: ANN401 -- any dataclass
    return [getattr(result, field.name) for field in dataclasses.fields(result)]


def are_equal(one: Any, other: Any) -> bool:  # noqa: ANN401 -- any field of a result
    """Compare frames, series and arrays by content, also if mappings or sequences contain them.

    >>> are_equal({0: pl.Series([1, None])}, {0: pl.Series([1, None])})
    True
    """
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, pl.Series):
        one, other = one.to_frame(), other.to_frame()
    if isinstance(one, pl.DataFrame):
        return one.schema == other.schema and one.equals(other)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(are_equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(are_equal, one, other))
    return bool(one == other)


def _shape(value: Any) -> object:  # noqa: ANN401 -- any field of a result
    if isinstance(value, pl.DataFrame):
        return value.shape, tuple(value.columns)
    return len(value) if hasattr(value, "__len__") else type(value)
