"""Tables are read from memory and from Arrow files, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow.ipc
import pytest
from polars.testing import assert_frame_equal

from holotrace.errors import InvalidOptionError
from holotrace.schema import TABLES
from holotrace.store.tables.arrow_tables import (
    ColumnMemo,
    DamagedTableError,
    FolderTables,
    MemoryTables,
    arrow_file,
    empty_table,
    known_columns,
    schema_fingerprint,
    table_types,
)

FLOWS = pl.DataFrame(
    {"event_index": [0, 3], "start_ns": [5, 6], "flow_id": [1, None], "is_start": [True, False]}
    | {"category": [0, 0], "name": [1, 1], "track_id": [0, 1]},
    schema=table_types("flows"),
)


@pytest.mark.parametrize("name", TABLES)
def test_an_empty_table_has_every_column(name: str) -> None:
    """A table without rows keeps the names and types of the schema."""
    assert empty_table(name).schema == table_types(name)
    assert empty_table(name).columns == [column.name for column in TABLES[name]]


def test_strings_are_ids() -> None:
    """`string` and `json` columns contain uint32 ids of strings; `text` columns contain strings."""
    assert table_types("operator_inputs")["input_dims"] == pl.UInt32
    assert table_types("operator_sources")["scope"] == pl.UInt32
    assert table_types("extra_args")["json"] == pl.String


def test_memory_serves_the_requested_columns() -> None:
    """`MemoryTables` returns columns in the requested order, and an empty frame for a table that was never written."""
    tables = MemoryTables({"flows": FLOWS})
    assert tables.read("flows", ["name", "start_ns"]).to_dict(as_series=False) == {"name": [1, 1], "start_ns": [5, 6]}
    assert_frame_equal(tables.read("mtia", ["size"]), empty_table("mtia").select("size"))


def test_a_folder_serves_the_requested_columns(tmp_path: Path) -> None:
    """`FolderTables` returns the columns of an Arrow file unchanged, each in one chunk."""
    table = FLOWS.to_arrow()
    with pyarrow.ipc.new_file(arrow_file(tmp_path, "flows"), table.schema) as file:
        file.write_table(table, max_chunksize=1)
    read = FolderTables(tmp_path).read("flows", ["name", "flow_id"])
    assert_frame_equal(read, FLOWS.select("name", "flow_id"))
    assert read.n_chunks("all") == [1, 1]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "other columns"])
def test_damaged_files_are_errors(tmp_path: Path, damage: str) -> None:
    """A file that is missing, empty or truncated, or that has other columns, raises a DamagedTableError."""
    file = arrow_file(tmp_path, "flows")
    (FLOWS.drop("name") if damage == "other columns" else FLOWS).write_ipc(file)
    if damage == "missing":
        file.unlink()
    elif damage != "other columns":
        file.write_bytes(file.read_bytes()[: 100 if damage == "cut" else 0])
    with pytest.raises(DamagedTableError, match=r"flows\.arrow"):
        FolderTables(tmp_path).read("flows", ["name"])


def test_known_columns_follow_the_request() -> None:
    """None requests all columns; a list requests the listed columns, in the order of the list."""
    assert known_columns("strings", None) == ["text"]
    assert known_columns("events", ["name", "kind"]) == ["name", "kind"]


@pytest.mark.parametrize(("table", "column", "listed"), [("event", "name", "events"), ("events", "ts", "start_ns")])
def test_unknown_names_list_the_known_ones(table: str, column: str, listed: str) -> None:
    """The error for a misspelt table or column lists the existing ones."""
    with pytest.raises(InvalidOptionError, match=listed):
        known_columns(table, [column])


def test_a_memo_loads_each_column_once() -> None:
    """`ColumnMemo` loads each column only when it is first requested."""
    loaded: list[Sequence[str]] = []

    def load(columns: Sequence[str]) -> pl.DataFrame:
        loaded.append(columns)
        return FLOWS.select(columns)

    memo = ColumnMemo(load)
    assert_frame_equal(memo.get(["name", "start_ns"]), FLOWS.select("name", "start_ns"))
    assert_frame_equal(memo.get(["start_ns", "flow_id"]), FLOWS.select("start_ns", "flow_id"))
    assert loaded == [["name", "start_ns"], ["flow_id"]]


def test_the_fingerprint_differs_between_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding or removing a column changes the fingerprint."""
    before = schema_fingerprint()
    monkeypatch.setitem(TABLES, "flows", TABLES["flows"][:-1])
    assert schema_fingerprint() != before
