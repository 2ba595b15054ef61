"""`export_tables` writes the stored tables to CSV and Parquet files."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace import open_trace
from holotrace.errors import InvalidOptionError
from holotrace.export.tables import export_tables
from holotrace.schema import TABLES
from jobs import gpu_job

READ = {"csv": pl.read_csv, "parquet": pl.read_parquet}


@pytest.fixture
def trace(tmp_path):
    """Write the small GPU job and open it."""
    gpu_job().write(tmp_path / "job")
    return open_trace(tmp_path / "job", cache=False)


@pytest.mark.parametrize("table_format", READ)
def test_every_table_with_rows_is_a_file(trace, tmp_path, table_format) -> None:
    """Each table with rows becomes a file; it has the schema's columns, and string ids are replaced by strings."""
    paths = export_tables(trace, tmp_path / "out", table_format)

    assert sorted(paths) == sorted((tmp_path / "out").rglob(f"*.{table_format}"))
    for path in paths:
        table = READ[table_format](path)
        assert table.columns == [column.name for column in TABLES[path.stem]]
        assert len(table) > 0
    events = READ[table_format](tmp_path / "out" / "rank_1" / f"events.{table_format}")
    assert events.filter(pl.col("category") == "kernel").select("name", "duration_ns").rows() == [("gemm", 100_000)]
    assert not (tmp_path / "out" / "rank_0" / f"strings.{table_format}").exists()


def test_large_tables_are_written_in_parts(trace, tmp_path, monkeypatch) -> None:
    """A CSV file written one row at a time has one header line and all rows."""
    monkeypatch.setattr("holotrace.export.tables._ROWS_AT_ONCE", 1)
    export_tables(trace, tmp_path / "out", "csv")
    expected = trace.ranks[0].table("events")["start_ns"].to_list()
    assert pl.read_csv(tmp_path / "out" / "rank_0" / "events.csv")["start_ns"].to_list() == expected


def test_nothing_is_overwritten_unless_requested(trace, tmp_path) -> None:
    """If a target folder exists, nothing is written; `overwrite=True` replaces the folder's files."""
    mine = tmp_path / "out" / "rank_1" / "events.csv"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(InvalidOptionError, match=r"rank_1 already exists"):
        export_tables(trace, tmp_path / "out", "csv")
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [mine]
    export_tables(trace, tmp_path / "out", "csv", overwrite=True)
    assert mine.read_text() != "mine"


def test_a_folder_that_cannot_be_created_is_an_error(trace, tmp_path) -> None:
    """A target whose parent folder is missing raises an error."""
    with pytest.raises(InvalidOptionError, match="is not a folder"):
        export_tables(trace, tmp_path / "a" / "b", "csv")
