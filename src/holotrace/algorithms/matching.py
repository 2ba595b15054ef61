"""Finds rows by their keys, in native code, because a large trace has millions of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace import _native

NO_MATCH, SEVERAL = -1, -2
"""Values in place of a row number: `NO_MATCH` if no row matches, `SEVERAL` if several rows match."""

_Int64: TypeAlias = npt.NDArray[np.int64]


def only_matches(offered: _Int64, wanted: _Int64) -> _Int64:
    """Return, for each wanted key, its row in `offered`; `NO_MATCH` if no row has the key, `SEVERAL` if several do."""
    return _native.only_matches(np.ascontiguousarray(offered), np.ascontiguousarray(wanted))


def rows_of(numbers: npt.NDArray[np.uint32], wanted: npt.NDArray[np.uint32]) -> _Int64:
    """Return, for each wanted number, its row in `numbers`, or `NO_MATCH`.

    `numbers` must be distinct. The search is fastest if both arrays are sorted.
    """
    return _native.rows_of(np.ascontiguousarray(numbers), np.ascontiguousarray(wanted))


def distinct(values: _Int64) -> tuple[_Int64, _Int64]:
    """Return the first row of each distinct value, in order, and for each row the index of its value in this list."""
    return _native.distinct(np.ascontiguousarray(values))


def distinct_rows(columns: Sequence[_Int64]) -> tuple[_Int64, _Int64]:
    """Return the first row of each distinct combination, and for each row the index of its combination; see `distinct`.

    All values must be at least -1.
    """
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        width = int(column.max(initial=-1)) + 2
        if int(number.max(initial=0)) >= np.iinfo(np.int64).max // width - 1:
            number = distinct(number)[1]
        number = number * width + column + 1
    return distinct(number)
