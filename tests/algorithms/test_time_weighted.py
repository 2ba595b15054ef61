"""`time_weighted` weights each value by how long it lasts."""

from __future__ import annotations

import statistics

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holotrace.algorithms.time_weighted import time_weighted

SCHEMA = {"key": pl.Int64, "value": pl.Int64, "weight": pl.Int64}


def of(rows: list[tuple[int, int, int]]) -> pl.DataFrame:
    """Return the statistics of rows (key, value, weight)."""
    return time_weighted(pl.DataFrame(rows, SCHEMA, orient="row"), by=["key"], value="value", weight="weight")


def test_a_value_counts_as_long_as_it_lasts() -> None:
    """A queue with length 0 for 3 ns and length 4 for 1 ns has mean length 1 and median 0."""
    assert of([(7, 0, 1), (7, 4, 1), (7, 0, 2)]).rows() == [(7, 4, 1.0, pytest.approx(3**0.5), 0, 0, 0, 0, 4)]


def test_values_without_duration_are_ignored() -> None:
    """A value that lasts 0 ns changes no statistic, and a group with only such values has no row."""
    assert of([(1, 5, 10), (1, 99, 0), (2, 5, 0)])["max"].to_list() == [5]


def test_no_values_return_an_empty_table() -> None:
    """Without values, the result has the usual columns and no rows."""
    assert of([]).columns == ["key", "total", "mean", "std", "min", "p25", "median", "p75", "max"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 20)), min_size=1, max_size=12))
def test_statistics_equal_those_of_every_nanosecond(pairs: list[tuple[int, int]]) -> None:
    """The statistics equal those of a list that repeats each value once per nanosecond."""
    row = of([(0, value, weight) for value, weight in pairs]).row(0, named=True)
    values = sorted(value for value, weight in pairs for _ in range(weight))

    assert (row["total"], row["min"], row["max"]) == (len(values), values[0], values[-1])
    assert row["mean"] == pytest.approx(statistics.fmean(values))
    assert row["std"] == pytest.approx(statistics.pstdev(values), abs=1e-6)
    for name, share in (("p25", 0.25), ("median", 0.5), ("p75", 0.75)):
        assert row[name] == values[max(0, -(-share * len(values) // 1).__int__() - 1)]
