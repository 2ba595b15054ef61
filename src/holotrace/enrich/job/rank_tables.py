"""The tables of many ranks as one."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl


def of_all_ranks(tables: Mapping[int, pl.DataFrame]) -> pl.DataFrame:
    """Return the tables of all ranks as one, with a column `rank`.

    >>> of_all_ranks({0: pl.DataFrame({"step": [3]}), 5: pl.DataFrame({"step": [3]})}).rows()
    [(3, 0), (3, 5)]
    """
    return pl.concat([table.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank, table in tables.items()])
