"""Judge whether a collective spends its time mostly on the transfer, or mostly on waiting for a late rank."""

from __future__ import annotations

import polars as pl

FEWEST_INSTANCES = 3
MOST_WAITING = 0.25
LEAST_WAITING = 0.75


def verdict() -> pl.Expr:
    """Return the verdict on the collectives that share a row of `per_collective`.

    transfer-bound  at most a quarter of the ranks' time in the collectives is waiting: a faster link or fewer bytes help
    skew-bound      at least three quarters is waiting: ranks arrive at different times, and the link hardly matters
    mixed           in between
    inconclusive    fewer than 3 instances, or most of the calls were recorded on only one rank
    """
    is_known = (pl.col("instance_count") >= FEWEST_INSTANCES) & (pl.col("matched_fraction") >= 1 / 2)
    waiting = pl.col("wait_fraction")
    return (
        pl.when(~is_known | waiting.is_null())
        .then(pl.lit("inconclusive"))
        .when(waiting <= MOST_WAITING)
        .then(pl.lit("transfer-bound"))
        .when(waiting >= LEAST_WAITING)
        .then(pl.lit("skew-bound"))
        .otherwise(pl.lit("mixed"))
        .alias("verdict")
    )
