"""Building blocks of the sentences that answer a question."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from holotrace.units import duration_text


class Largest(NamedTuple):
    """The group of rows with the largest total: its name, total, and share (0 to 1) of the sum over all rows."""

    name: str
    total: float
    share: float


def largest(table: pl.DataFrame, group: str, column: str) -> Largest:
    """Return the group of rows with the largest sum of a column; among equal sums, the alphabetically first group."""
    sums = (
        table.group_by(group).agg(pl.col(column).sum()).sort(column, group, descending=[True, False], nulls_last=True)
    )
    name, total = sums.row(0)
    everything = sums[column].sum()
    return Largest(str(name), total, total / everything if everything else 0.0)


def total(table: pl.DataFrame, column: str) -> float:
    """Return the sum of a column of numbers."""
    return float(table.select(pl.col(column).sum()).item())


def change_text(difference_ns: float) -> str:
    """Format the difference of two durations with its sign, such as `+400 µs`."""
    return f"{'+' if difference_ns > 0 else '-' if difference_ns < 0 else '±'}{duration_text(abs(difference_ns))}"
