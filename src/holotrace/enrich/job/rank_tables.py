"""Tables of many ranks as one, with the columns and types of a result."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl


def of_all_ranks(tables: Mapping[int, pl.DataFrame]) -> pl.DataFrame:
    """Return the tables of all ranks as one, with a column `rank`.

    >>> of_all_ranks({0: pl.DataFrame({"step": [3]}), 5: pl.DataFrame({"step": [3]})}).rows()
    [(3, 0), (3, 5)]
    """
    return pl.concat([table.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank, table in tables.items()])


def typed(table: pl.DataFrame, types: Mapping[str, pl.DataType | type[pl.DataType]]) -> pl.DataFrame:
    """Return these columns of a table, in this order and with these types.

    >>> typed(pl.DataFrame({"wait_ns": [1.0], "rank": [0]}), {"rank": pl.Int32, "wait_ns": pl.Int64}).rows()
    [(0, 1)]
    """
    return table.select(pl.col(name).cast(column_type) for name, column_type in types.items())
