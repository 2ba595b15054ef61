"""Other tools can read the Parquet files of a rank, and holotrace reads its tables back unchanged."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from polars.testing import assert_frame_equal

import holotrace
from holotrace.errors import HolotraceError
from holotrace.schema import TABLES, EventKind
from holotrace.sql_queries.views import VIEWS
from holotrace.store.tables.parquet_tables import KIND_NAMES, ParquetTables, parquet_types
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.strategies import trace_documents


@pytest.mark.slow
@given(trace_documents())
def test_the_tables_of_any_trace_survive_a_round_trip(document) -> None:
    """For any trace, tables are the same after writing and reading a store, and every view can be computed."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "trace.json"
        path.write_bytes(document)
        try:
            trace = holotrace.open_trace(path, cache=False)
            holotrace.write_store(trace, Path(name) / "job.store")
        except HolotraceError:
            return
        again = holotrace.open_trace(Path(name) / "job.store")
        for rank, expected in trace.ranks.items():
            for table in TABLES:
                assert_frame_equal(again.ranks[rank].table(table), expected.table(table))
            for view in (view for view in VIEWS.values() if view.rows is not None):
                assert_has_columns(view.rows(again.ranks[rank]), view.types)


def assert_has_columns(rows: pl.DataFrame, types: pl.Schema) -> None:
    """Check that a table is empty, or that its columns can be cast to the declared types."""
    assert rows.is_empty() or rows.select(pl.col(name).cast(dtype) for name, dtype in types.items()).schema == types


def test_ids_and_kinds_are_stored_as_text(tmp_path) -> None:
    """Names and kinds become strings, and the column `rank` of `collectives` is renamed to `recorded_rank`."""
    trace = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).collective("all_reduce", start_us=2, duration_us=1)
    holotrace.write_store(trace.build(), tmp_path / "job.store")
    events = pl.read_parquet(tmp_path / "job.store" / "rank=0" / "events.parquet", hive_partitioning=False)
    assert dict(events.schema) == dict(parquet_types("events"))
    assert events.select("kind", "name").rows()[0] == ("kernel", "gemm")
    collectives = pl.read_parquet(tmp_path / "job.store" / "rank=0" / "collectives.parquet", hive_partitioning=False)
    assert "recorded_rank" in collectives.columns
    assert "rank" not in collectives.columns


def test_kinds_have_the_names_of_the_enum() -> None:
    """`KIND_NAMES[n]` is the lower-case name of the EventKind with the number n."""
    assert [KIND_NAMES[int(kind)] for kind in EventKind] == [kind.name.lower() for kind in EventKind]


def test_a_table_without_rows_has_no_file(tmp_path) -> None:
    """A table without rows usually has no file and reads back empty; `events`, `tracks` and `strings` always have files."""
    holotrace.write_store(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build(), tmp_path / "job.store")
    file_names = {path.stem for path in (tmp_path / "job.store" / "rank=0").glob("*.parquet")}
    assert {"events", "tracks", "strings", "kernels"} <= file_names
    assert not {"memory", "flows", "copies"} & file_names
    tables = ParquetTables(tmp_path / "job.store" / "rank=0", {})
    assert tables.read("memory", ["bytes"]).height == 0
