"""Computes statistics of values, weighted by how long each value lasts."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

TIME_WEIGHTED = ("mean", "std", "min", "p25", "median", "p75", "max")
"""Names of the statistics, in the order of the columns."""


def time_weighted(values: pl.DataFrame, *, by: Sequence[str], value: str, weight: str) -> pl.DataFrame:
    """Return statistics of one int64 column for each combination of the columns `by`, sorted by these columns.

    Rows with a weight of 0 or less are ignored. Groups without a positive weight have no row in the result.

    Returns:
        The columns `by`, then `total` (int64, the summed weight) and `TIME_WEIGHTED`:

        mean              float64
        std               float64  population standard deviation
        min, max          int64
        p25, median, p75  float64  the smallest value such that the rows up to this value have
                                   at least 25 %, 50 % or 75 % of the total weight
    """
    weights = (
        values.filter(pl.col(weight) > 0)
        .group_by(*by, value)
        .agg(pl.col(weight).sum().alias("weight"))
        .sort(*by, value)
        .with_columns(pl.col("weight").sum().over(by).alias("total"))
    )
    means = weights.with_columns(_mean(pl.col(value).cast(pl.Float64)).over(by).alias("mean"))
    distance = pl.col(value).cast(pl.Float64) - pl.col("mean")
    return means.group_by(by, maintain_order=True).agg(
        pl.col("total").first(),
        pl.col("mean").first(),
        _mean(distance * distance).sqrt().alias("std"),
        pl.col(value).min().alias("min"),
        *(_quantile(value, share).alias(name) for name, share in (("p25", 0.25), ("median", 0.5), ("p75", 0.75))),
        pl.col(value).max().alias("max"),
    )


def _mean(values: pl.Expr) -> pl.Expr:
    return (values * pl.col("weight")).sum() / pl.col("weight").sum()


def _quantile(value: str, share: float) -> pl.Expr:
    reached = pl.col("weight").cum_sum() >= share * pl.col("weight").sum()
    return pl.col(value).filter(reached).first().cast(pl.Float64)
