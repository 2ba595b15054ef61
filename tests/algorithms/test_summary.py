"""Statistics by group agree with the textbook formulas."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from holotrace.algorithms.summary import summary, summary_by_number
from oracles import quantile, sample_deviation

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9)), min_size=1, max_size=40)


def frame(pairs: list[tuple[int, int]]) -> pl.DataFrame:
    """Turn (group, value) pairs into a table."""
    return pl.DataFrame(pairs, schema={"group": pl.Int32, "value": pl.Int64}, orient="row")


@given(rows)
def test_every_statistic_agrees_with_its_definition(pairs: list[tuple[int, int]]) -> None:
    """Count, sum, mean, sample deviation, extremes and quartiles are right for each group; groups are sorted."""
    result = summary(frame(pairs), by=["group"], value="value")

    groups = sorted({group for group, _ in pairs})
    assert result["group"].to_list() == groups
    for row in result.iter_rows(named=True):
        values = [value for group, value in pairs if group == row["group"]]
        assert (row["count"], row["sum"], row["min"], row["max"]) == (
            len(values),
            sum(values),
            min(values),
            max(values),
        )
        assert row["mean"] == pytest.approx(sum(values) / len(values))
        assert row["std"] == pytest.approx(sample_deviation(values), abs=1e-6)
        assert (row["p25"], row["median"], row["p75"]) == pytest.approx(
            tuple(quantile(values, share) for share in (0.25, 0.5, 0.75))
        )


def test_one_value_has_no_deviation() -> None:
    """The standard deviation of a single value is 0, not null."""
    assert summary(frame([(1, 7)]), by=["group"], value="value").row(0) == (1, 1, 7, 7.0, 0.0, 7, 7.0, 7.0, 7.0, 7)


def test_no_rows_have_no_groups() -> None:
    """The summary of an empty table has the usual columns and no rows."""
    result = summary(frame([]), by=["group"], value="value")

    assert result.columns == ["group", "count", "sum", "mean", "std", "min", "p25", "median", "p75", "max"]
    assert result.height == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-(10**9), 10**9)), max_size=40))
def test_the_statistics_of_numbers_equal_those_of_groups(pairs: list[tuple[int, int]]) -> None:
    """Except for quartiles, `summary_by_number` returns the statistics of `summary`, even if there are no values."""
    numbers, values = (np.array([pair[at] for pair in pairs], kind) for at, kind in ((0, np.uint32), (1, np.int64)))

    statistics = summary_by_number(numbers, values)

    expected = summary(frame(pairs), by=["group"], value="value").rename({"group": "number"})
    shown = pl.DataFrame(vars(statistics))
    assert_frame_equal(shown, expected.select(shown.columns).cast({"number": pl.UInt32}), check_row_order=False)
    assert statistics.number.tolist() == list(dict.fromkeys(numbers.tolist()))
