"""How much time the intervals of each group cover."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def covered_by_group(
    table: pl.DataFrame, by: Sequence[str], *, start: str = "start_ns", end: str = "end_ns", name: str = "covered_ns"
) -> pl.DataFrame:
    """Return the length of the union of the intervals [start, end) of each group; null is a key like any other.

    In order of their starts each interval adds what lies behind all ends so far.

    Returns:
        The columns `by`, and `name`, int64; groups in no order.
    """
    ordered = table.sort(start)
    reached = pl.col(end).cum_max().shift(1).over(by)
    begin = pl.max_horizontal(start, reached)
    added = (pl.col(end) - begin).clip(lower_bound=0).alias(name)
    return ordered.select(*by, added).group_by(by).agg(pl.col(name).sum())
