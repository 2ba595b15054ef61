"""Compute statistics of numbers by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace import _native
from holotrace.content_equality import EqualByContent


def summary(values: pl.DataFrame, *, by: Sequence[str], value: str) -> pl.DataFrame:
    """Return statistics of one int64 column for each combination of the columns `by`, sorted by these columns.

    Returns:
        The columns `by`, then:

        count              int64
        sum, min, max      int64
        mean               float64
        std                float64  sample standard deviation (divided by count - 1); 0 for a single value
        p25, median, p75   float64  interpolated linearly
    """
    column = pl.col(value)
    return (
        values.group_by(by)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            column.sum().alias("sum"),
            column.mean().alias("mean"),
            column.std(ddof=1).fill_null(0.0).alias("std"),
            column.min().alias("min"),
            _quantile(column, 0.25).alias("p25"),
            _quantile(column, 0.5).alias("median"),
            _quantile(column, 0.75).alias("p75"),
            column.max().alias("max"),
        )
        .sort(by)
    )


@dataclass(frozen=True, eq=False)
class SummaryByNumber(EqualByContent):
    """Statistics, but no quartiles, of the values of each number; the numbers are in order of first occurrence."""

    number: npt.NDArray[np.uint32]
    count: npt.NDArray[np.int64]
    sum: npt.NDArray[np.int64]
    min: npt.NDArray[np.int64]
    max: npt.NDArray[np.int64]
    std: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]


def summary_by_number(numbers: npt.NDArray[np.uint32], values: npt.NDArray[np.int64]) -> SummaryByNumber:
    """Summarise values grouped by a number, such as a string id, in one native pass."""
    statistics = _native.summaries(np.ascontiguousarray(numbers), np.ascontiguousarray(values))
    _, count, total, *_ = statistics
    return SummaryByNumber(*statistics, total / count)


def sum_or_null(name: str) -> pl.Expr:
    """Return the sum of a column, ignoring nulls; null if all values are null."""
    return pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name)


def ratio(part: str, whole: str) -> pl.Expr:
    """Return `part` divided by `whole`; null where `whole` is not positive."""
    return pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))


def _quantile(column: pl.Expr, share: float) -> pl.Expr:
    return column.quantile(share, interpolation="linear")
