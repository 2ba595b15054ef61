"""Compare each rank's time per step in each line and callee with that of the median rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

KEYS = ("file", "line", "function", "callee")
EXCESS = {
    "rank": pl.Int32,
    "file": pl.String,
    "line": pl.Int64,
    "function": pl.String,
    "callee": pl.String,
    "own_ns_per_step": pl.Int64,
    "typical_ns_per_step": pl.Int64,
    "excess_ns_per_step": pl.Int64,
    "excess_fraction": pl.Float64,
}


class RankTimes(NamedTuple):
    """The time that a rank spends in each source line during its steps, and the number and total length of these steps.

    The times (columns `KEYS` and own_ns) exclude waits.
    """

    own: pl.DataFrame
    step_count: int
    steps_ns: int


def excess(ranks: Mapping[int, RankTimes]) -> pl.DataFrame:
    """Return the table `EXCESS`, the largest excess first; a rank that does not run a line spends 0 ns in it."""
    if len(ranks) < 2:  # noqa: PLR2004 -- no other rank to compare with
        return pl.DataFrame(schema=EXCESS)
    times = pl.concat([_per_step(rank, known) for rank, known in ranks.items()])
    typical = times.group_by(KEYS).agg(
        _lower_median(pl.col("own_ns_per_step"), len(ranks)).alias("typical_ns_per_step")
    )
    both = times.join(typical, on=KEYS, nulls_equal=True)
    difference = pl.col("own_ns_per_step") - pl.col("typical_ns_per_step")
    longer = both.with_columns(difference.alias("excess_ns_per_step")).filter(pl.col("excess_ns_per_step") > 0)
    longer = longer.with_columns(excess_fraction=pl.col("excess_ns_per_step") / pl.col("ns_per_step"))
    order = ["excess_ns_per_step", "rank", *KEYS]
    return longer.sort(order, descending=[True] + [False] * (len(order) - 1), nulls_last=True)


def _per_step(rank: int, known: RankTimes) -> pl.DataFrame:
    count = max(1, known.step_count)
    own = (pl.col("own_ns") // count).alias("own_ns_per_step")
    step = pl.lit(max(1, known.steps_ns) / count).alias("ns_per_step")
    return known.own.select(pl.lit(rank, pl.Int32).alias("rank"), *KEYS, own, step)


def _lower_median(values: pl.Expr, count: int) -> pl.Expr:
    """Add zeros until there are `count` values, and return the lower median of the result."""
    position = (count - 1) // 2 - (count - values.len().cast(pl.Int64))
    return pl.when(position >= 0).then(values.sort().get(position.clip(lower_bound=0))).otherwise(0)
