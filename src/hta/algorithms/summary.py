"""Statistics of numbers by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

STATISTICS = ("count", "sum", "mean", "std", "min", "p25", "median", "p75", "max")
"""Names of the statistics, in the order of the columns."""


def summary(values: pl.DataFrame, *, by: Sequence[str], value: str) -> pl.DataFrame:
    """Return the statistics of one int64 column for each combination of the columns `by`, sorted by them.

    Returns:
        The columns `by`, then `STATISTICS`:

        count              int64
        sum, min, max      int64
        mean               float64
        std                float64  of a sample (divided by count - 1); 0 where there is one value
        p25, median, p75   float64  between two values: on the straight line between them
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


def summary_by_number(numbers: npt.NDArray[np.uint32], values: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Return `summary` without quartiles for each of the numbers, in their order; several times as fast.

    Returns:
        number uint32, and of `STATISTICS`: count, sum, mean, std, min, max.
    """
    order = np.argsort(numbers, kind="stable")
    ordered, rows = numbers[order], values[order]
    first = np.append(np.arange(len(rows))[:1], 1 + np.flatnonzero(ordered[1:] != ordered[:-1]))
    count = np.diff(first, append=len(rows))
    total = _reduced(np.add, rows, first)
    squares = _reduced(np.add, (rows - np.repeat(total / count, count)) ** 2, first)
    statistics = {
        "count": count,
        "sum": total,
        "mean": total / count,
        "std": np.sqrt(squares / np.maximum(count - 1, 1)),
        "min": _reduced(np.minimum, rows, first),
        "max": _reduced(np.maximum, rows, first),
    }
    return pl.DataFrame({"number": ordered[first], **statistics})


def _reduced(function: np.ufunc, values: npt.NDArray[Any], first: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return what the function makes of the values from each of the rows `first` to the next one."""
    reduced: npt.NDArray[Any] = function.reduceat(values, first) if len(first) else values
    return reduced


def _quantile(column: pl.Expr, share: float) -> pl.Expr:
    return column.quantile(share, interpolation="linear")
