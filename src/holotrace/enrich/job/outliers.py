"""Values that stand out from their peers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

FEWEST_PEERS = 4
LARGEST_Z = 5.0
LEAST_RATIO = 1.25
"""A value among at least 4 peers stands out if it exceeds their median by 25 % and by 5 robust standard deviations."""

_TO_SIGMA = 1.4826
"""The median absolute deviation of a normal distribution, multiplied by this factor, is its standard deviation."""

_LEAST_SPREAD = 0.02
"""The spread is at least this fraction of the median, because smaller differences between peers are noise."""


def stands_out(table: pl.DataFrame, value: str, peers: Sequence[str]) -> pl.Series:
    """Return, for each row, whether its value is far above the values of its peers.

    The peers of a row are all rows that have the same entries in the columns `peers`, including the row itself. m is
    the median of the peers; s is their median absolute deviation times 1.4826, but at least 2 % of m:

        value > 1.25 m  and  value > m + 5 s

    The result is false for rows with fewer than 4 peers.

    s is based on the median of the deviations because outliers hardly change it, whereas they would increase the mean.
    Source: B. Iglewicz and D. Hoaglin, "How to Detect and Handle Outliers", 1993, chapter 3.
    """
    keys, values = list(peers), pl.col(value)
    known = table.with_columns(values.median().over(keys).alias("_median"), pl.len().over(keys).alias("_count"))
    apart = known.with_columns((values - pl.col("_median")).abs().alias("_apart"))
    spread = pl.max_horizontal(pl.col("_apart").median().over(keys) * _TO_SIGMA, _LEAST_SPREAD * pl.col("_median"))
    is_far = (values > LEAST_RATIO * pl.col("_median")) & (values > pl.col("_median") + LARGEST_Z * spread)
    return apart.select(is_far & (pl.col("_count") >= FEWEST_PEERS)).to_series()
