"""Concatenate the tables of many ranks, with the columns and types of a result."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl


def of_all_ranks(tables: Mapping[int, pl.DataFrame]) -> pl.DataFrame:
    """Return the tables of all ranks as one, with a column `rank`.

    >>> of_all_ranks({0: pl.DataFrame({"step": [3]}), 5: pl.DataFrame({"step": [3]})}).rows()
    [(3, 0), (3, 5)]
    """
    # Add the column for all ranks at once, because a separate Polars query for each of thousands of ranks takes seconds.
    ranks = np.repeat(np.array(list(tables), np.int32), [table.height for table in tables.values()])
    return pl.concat(tables.values()).with_columns(pl.Series("rank", ranks))


def typed(table: pl.DataFrame, types: Mapping[str, pl.DataType | type[pl.DataType]]) -> pl.DataFrame:
    """Return these columns of a table, in this order and with these types.

    >>> typed(pl.DataFrame({"wait_ns": [1.0], "rank": [0]}), {"rank": pl.Int32, "wait_ns": pl.Int64}).rows()
    [(0, 1)]
    """
    return table.select(pl.col(name).cast(column_type) for name, column_type in types.items())
