"""The names of the categories of step time in the answer, the tables and the figure."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.step_time.compute import CATEGORIES
from holotrace.questions.result_columns import heading_of


def name_of(category: str) -> str:
    """Return the heading of the category's column, such as `data loader` for `dataloader`."""
    return heading_of(f"{category}_part_ns")


def with_names(table: pl.DataFrame) -> pl.DataFrame:
    """Replace each category in the column `category` with its name; for example, `dataloader` with `data loader`."""
    return table.with_columns(pl.col("category").replace({category: name_of(category) for category in CATEGORIES}))
