"""Measures how much time the intervals of each group cover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace import _native

_Int64 = npt.NDArray[np.int64]


def covered_by_number(group: npt.NDArray[np.integer], start: _Int64, end: _Int64, group_count: int) -> _Int64:
    """Return how much time the intervals [start, end) of each group cover; groups are numbered from 0."""
    columns = np.ascontiguousarray(group, np.uint32), np.ascontiguousarray(start), np.ascontiguousarray(end)
    return _native.covered_by_group(*columns, group_count)


def covered_by_group(
    table: pl.DataFrame, by: Sequence[str], *, start: str = "start_ns", end: str = "end_ns", name: str = "covered_ns"
) -> pl.DataFrame:
    """Return how much time the intervals [start, end) of each group cover; rows with the same null keys form a group.

    Returns:
        The columns `by`, and the covered time as an int64 column named `name`; rows are in no particular order.
    """
    keys = table.select(by).unique()
    numbered = keys.with_row_index("number")
    groups = table.select(by).join(numbered, on=by, how="left", nulls_equal=True, maintain_order="left")
    columns = (groups["number"].to_numpy(), table[start].to_numpy(), table[end].to_numpy())
    return keys.with_columns(pl.Series(name, covered_by_number(*columns, keys.height), pl.Int64))
