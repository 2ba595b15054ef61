"""The schemas in Python and in the reader agree."""

from __future__ import annotations

from holotrace import _native
from holotrace.schema import TABLES


def test_the_reader_writes_the_declared_columns() -> None:
    """The Rust reader has the tables, columns, types and order that are declared in Python."""
    declared = {name: [(column.name, column.type) for column in columns] for name, columns in TABLES.items()}
    assert _native.schema() == declared


def test_every_column_says_what_it_means() -> None:
    """Every column of every table has a description."""
    assert all(column.meaning for columns in TABLES.values() for column in columns)


def test_side_tables_join_by_event() -> None:
    """Every table except `tracks` and `strings` begins with `event_index`, which is never null."""
    for name in TABLES.keys() - {"tracks", "strings"}:
        first = TABLES[name][0]
        assert (first.name, first.type, first.nullable) == ("event_index", "uint32", False)
