"""`covered_by_group` adds up the time that the intervals of each group cover."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.covered_by_group import covered_by_group
from oracles import covered

SCHEMA = {"key": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}
intervals = st.tuples(st.one_of(st.none(), st.integers(0, 2)), st.integers(0, 20), st.integers(0, 8))


@given(st.lists(intervals, max_size=12))
def test_each_group_covers_its_own_nanoseconds_once(rows: list[tuple[int | None, int, int]]) -> None:
    """The covered length of each group equals its number of covered nanoseconds; null is a group too."""
    placed = [(key, start, start + length) for key, start, length in rows]
    table = pl.DataFrame(placed, SCHEMA, orient="row")

    covered_ns = dict(covered_by_group(table, ["key"]).iter_rows())

    keys = {key for key, _, _ in placed}
    assert covered_ns == {key: len(covered((start, end) for own, start, end in placed if own == key)) for key in keys}


def test_columns_can_be_chosen() -> None:
    """The caller chooses the columns with the starts and ends, and the name of the result column."""
    table = pl.DataFrame({"a": [1, 1], "b": [2, 2], "from": [0, 5], "to": [8, 10]})
    covered_ns = covered_by_group(table, ["a", "b"], start="from", end="to", name="busy_ns")
    assert covered_ns.to_dicts() == [{"a": 1, "b": 2, "busy_ns": 10}]
