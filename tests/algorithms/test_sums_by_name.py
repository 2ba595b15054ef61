"""`sums_by_name` counts events and sums their durations by kind and name."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.sums_by_name import sums_by_name

SCHEMA = {"kind": pl.UInt8, "name": pl.UInt32, "duration_ns": pl.Int64}
rows = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-3, 10**17), st.integers(-1, 2))


@given(st.lists(rows, max_size=12))
def test_sums_equal_those_of_polars(rows: list[tuple[int, int, int, int]]) -> None:
    """The sums over all events, and over marked events, equal those of a Polars query."""
    events = pl.DataFrame([row[:3] for row in rows], SCHEMA, orient="row")
    position, marked = np.array([row[3] for row in rows], np.int64), [False, True, True]

    sums = sums_by_name(events, position, np.array(marked))

    duration_ns, is_marked = pl.col("duration_ns").clip(lower_bound=0), pl.col("is_marked")
    expected = (
        events.with_columns(pl.Series("is_marked", [number > 0 for number in position.tolist()], pl.Boolean))
        .group_by("kind", "name", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            duration_ns.sum().alias("total_ns"),
            is_marked.sum().cast(pl.Int64).alias("marked_count"),
            duration_ns.filter(is_marked).sum().alias("marked_ns"),
        )
    )
    assert sums.equals(expected)
    assert sums.schema == expected.schema
