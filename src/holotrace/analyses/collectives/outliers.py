"""Values that stand out from their peers."""

from __future__ import annotations

import polars as pl

FEWEST_PEERS = 4
LARGEST_Z = 5.0
LEAST_RATIO = 1.25
"""A value stands out if it exceeds the median of at least 4 peers by a quarter and by 5 robust standard deviations."""

_TO_SIGMA = 1.4826
"""The median absolute deviation of a normal distribution, times this, is its standard deviation."""

_LEAST_SPREAD = 0.02
"""Spread, as a part of the median, below which differences between peers are taken for noise."""


def stands_out(value: str, peers: list[str]) -> pl.Expr:
    """Return whether a value is far above the values with equal keys `peers`.

    With m the median of the peers, and s their median absolute deviation times 1.4826, at least 2 % of m:

        value > 1.25 m  and  value > m + 5 s

    The median of deviations, unlike their mean, does not grow with the outliers themselves. Source: B. Iglewicz and
    D. Hoaglin, "How to Detect and Handle Outliers", 1993, chapter 3.
    """
    median = pl.col(value).median().over(peers)
    deviation = (pl.col(value) - median).abs().median().over(peers) * _TO_SIGMA
    spread = pl.max_horizontal(deviation, _LEAST_SPREAD * median)
    is_far = (pl.col(value) > LEAST_RATIO * median) & (pl.col(value) > median + LARGEST_Z * spread)
    return is_far & (pl.len().over(peers) >= FEWEST_PEERS)
