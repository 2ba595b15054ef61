"""Results are equal when their tables are: same columns, types and rows, where missing equals missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl


class EqualByContent:
    """A base of frozen dataclasses with `eq=False` that hold frames; `==` compares what two of them hold.

    Equal results have the same hash, which rests on the shapes of their tables, so results can be kept in sets and as
    keys. Results of different classes are never equal.
    """

    def __eq__(self, other: object) -> bool:
        """Compare the fields, tables by their content."""
        if type(other) is not type(self):
            return NotImplemented
        return _are_equal(_content(self), _content(other))

    def __hash__(self) -> int:
        """Return a number that equal results share."""
        return hash((type(self), *map(_shape, _content(self))))


def _content(result: Any) -> list[object]:  # noqa: ANN401 -- a dataclass, which has no type of its own
    return [getattr(result, each.name) for each in dataclasses.fields(result)]


def _are_equal(one: Any, other: Any) -> bool:  # noqa: ANN401 -- whatever a result holds
    if type(one) is not type(other):
        return False
    if isinstance(one, pl.Series):
        one, other = one.to_frame(), other.to_frame()
    if isinstance(one, pl.DataFrame):
        return one.schema == other.schema and one.equals(other)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    return bool(one == other)


def _shape(value: Any) -> object:  # noqa: ANN401 -- as above
    if isinstance(value, pl.DataFrame):
        return value.shape, tuple(value.columns)
    return len(value) if hasattr(value, "__len__") else type(value)
