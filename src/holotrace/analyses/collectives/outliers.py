"""Values that stand out from their peers."""

from __future__ import annotations

import polars as pl

FEWEST_PEERS = 4
LARGEST_Z = 5.0
LEAST_RATIO = 1.25
"""Of at least 4 peers, a value stands out if it exceeds their median by 25 % and by 5 robust standard deviations."""

_TO_SIGMA = 1.4826
"""The median absolute deviation of a normal distribution, times this, is its standard deviation."""

_LEAST_SPREAD = 0.02
"""Least spread to assume, as a fraction of the median: smaller differences between peers are noise."""


def stands_out(value: str, peers: list[str]) -> pl.Expr:
    """Return whether a value is far above its peers, the values whose columns `peers` are equal; these include itself.

    With m the median of the peers, and s the larger of 2 % of m and 1.4826 times their median absolute deviation:

        value > 1.25 m  and  value > m + 5 s

    The median of deviations, unlike their mean, does not grow with the outliers themselves. Source: B. Iglewicz and
    D. Hoaglin, "How to Detect and Handle Outliers", 1993, chapter 3.
    """
    median = pl.col(value).median().over(peers)
    deviation = (pl.col(value) - median).abs().median().over(peers) * _TO_SIGMA
    spread = pl.max_horizontal(deviation, _LEAST_SPREAD * median)
    is_far = (pl.col(value) > LEAST_RATIO * median) & (pl.col(value) > median + LARGEST_Z * spread)
    return is_far & (pl.len().over(peers) >= FEWEST_PEERS)
