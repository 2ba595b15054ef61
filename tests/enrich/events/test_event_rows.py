"""Tests of looking up table rows by event index."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.events.event_rows import gathered, of_events, rows_of_events


def test_rows_of_events_that_exist():
    """Events 3 and 5 are found in rows 1 and 0 of the table; event 4 and null are not found."""
    stacks = pl.DataFrame({"event_index": [5, 3]}, schema={"event_index": pl.UInt32})

    rows = rows_of_events(stacks, pl.Series([3, 4, None, 5], dtype=pl.UInt32))

    assert rows.tolist() == [1, -1, -1, 0]
    assert gathered(stacks["event_index"], rows).to_list() == [3, None, None, 5]
    assert rows_of_events(stacks.clear(), pl.Series([3], dtype=pl.UInt32)).tolist() == [-1]


def test_columns_of_events_equal_a_join():
    """The table contains event 3, but neither event 4 nor null, so the values of these two are null."""
    table = pl.DataFrame({"event_index": [5, 3], "bytes": [50, 30]}, schema_overrides={"event_index": pl.UInt32})

    columns = of_events(table, pl.Series([4, None, 3], dtype=pl.UInt32))

    assert columns.to_dict(as_series=False) == {"bytes": [None, None, 30]}
