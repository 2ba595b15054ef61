"""Tests of tables that are compressed before they are sent to another process."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.store.tables.packed_tables import packed, reduced, unpacked


class _Record(NamedTuple):
    table: pl.DataFrame
    name: str

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)


@pytest.mark.slow
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "start_ns": st.none() | st.integers(-(2**63), 2**63 - 1),
                "number": st.none() | st.integers(0, 2**64 - 1),
                "text": st.none() | st.text(),
                "list": st.none() | st.lists(st.integers(-5, 5)),
                "flag": st.none() | st.booleans(),
            }
        )
    )
)
def test_a_packed_table_comes_back_unchanged(rows) -> None:
    """Values, nulls and types are preserved, even in empty tables."""
    types = {
        "start_ns": pl.Int64,
        "number": pl.UInt64,
        "text": pl.String,
        "list": pl.List(pl.Int64),
        "flag": pl.Boolean,
    }
    table = pl.DataFrame(rows, types, orient="row")

    back = unpacked(packed(table))

    assert back.schema == table.schema
    assert back.equals(table, null_equal=True)


def test_pickling_a_record_packs_its_tables() -> None:
    """When pickled, ten thousand ascending times take less than 3 bytes each; other fields stay unchanged."""
    record = _Record(pl.DataFrame({"start_ns": range(0, 10_000_000, 1_000)}), "rank 3")

    content = pickle.dumps(record)
    back = pickle.loads(content)  # noqa: S301 -- ours

    assert len(content) < 30_000
    assert back.table.equals(record.table)
    assert (type(back), back.name) == (_Record, "rank 3")
