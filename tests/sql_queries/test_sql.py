"""SQL on a trace can read the views of the trace and nothing else."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import Future
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import holotrace
from holotrace.errors import HolotraceError, InvalidOptionError
from holotrace.execution.executor import InProcessExecutor
from holotrace.schema import TABLES
from holotrace.sql_queries.query import named_views
from holotrace.sql_queries.views import VIEWS
from holotrace.store.tables.parquet_tables import parquet_types
from holotrace.testing.builder import TraceBuilder
from jobs import cpu_job, gpu_job
from matrices import slow_except

REAL = slow_except(["amd_mi250", "cpu_only", "two_rank_128", "ddp_gloo_4rank"], ["amd_mi250"])


def small_job() -> TraceBuilder:
    """Return a step (0-100 µs), an operator (10-40), its gemm (50-60, launched at 20), and a copy with no launch."""
    return (
        TraceBuilder()
        .step(7, 0, 100)
        .operator("aten::mm", start_us=10, duration_us=30)
        .kernel("gemm", start_us=50, duration_us=10, launch_us=20)
        .copy("Memcpy HtoD", start_us=70, duration_us=5, byte_count=4_096)
    )


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("make", [gpu_job, cpu_job, TraceBuilder], ids=["gpu", "cpu", "empty"])
def test_a_view_always_has_the_same_columns(view, make) -> None:
    """A view has its declared columns and types, even if it has no rows."""
    rows = holotrace.sql(make().build(), f"FROM {view}")
    assert dict(rows.schema) == {"rank": pl.Int32(), **VIEWS[view].types}


@pytest.mark.parametrize("table", TABLES)
def test_every_stored_table_is_a_view(table) -> None:
    """Each view `stored.<table>` has the columns of the table `<table>` in a store."""
    rows = holotrace.sql(gpu_job().build(), f"FROM stored.{table}")
    assert dict(rows.schema) == {"rank": pl.Int32(), **parquet_types(table)}


@pytest.mark.parametrize("name", REAL)
def test_a_store_returns_the_same_rows_as_its_traces(name, real_traces, tmp_path) -> None:
    """Every view returns the same rows for real traces as for a store written from them."""
    trace = holotrace.open_trace(real_traces / name, cache=False)
    holotrace.write_store(trace, tmp_path / "job.store")
    stored = holotrace.open_trace(tmp_path / "job.store")
    for view in VIEWS:
        expected, actual = (holotrace.sql(source, f"FROM {view}") for source in (trace, stored))
        assert_frame_equal(actual, expected, check_row_order=False)
        assert len(expected) or view not in {"ranks", "events"}


def test_columns_of_device_work() -> None:
    """Device work has the columns launch, operator and step, which are null if the file does not record them."""
    rows = holotrace.sql(small_job().build(), "SELECT * FROM device_work ORDER BY start_ns")
    gemm, copy = rows.to_dicts()
    assert gemm["duration_ns"] == 10_000
    assert [gemm[name] for name in ("kernel_kind", "event_kind", "operator", "step")] == [
        *("computation", "kernel", "aten::mm", 7),
    ]
    assert gemm["launch_delay_ns"] == gemm["start_ns"] - gemm["launch_end_ns"]
    assert [copy[name] for name in ("kernel_kind", "bytes", "launch_index", "operator", "step")] == [
        *("memory", 4_096, None, None, 7),
    ]


def test_a_query_respects_the_selection(tmp_path) -> None:
    """Events excluded by `where` are missing from every view, for traces and for stores."""
    trace = gpu_job().build()
    holotrace.write_store(trace, tmp_path / "job.store")
    for source in (trace, holotrace.open_trace(tmp_path / "job.store")):
        chosen = source.where(_is_first)
        assert holotrace.sql(chosen, "SELECT rank, name FROM kernels ORDER BY rank").rows() == [
            (0, "gemm"),
            (1, "gemm"),
        ]
        assert holotrace.sql(chosen, "SELECT count(*) FROM events").item() == 2


def _is_first(rank_trace) -> object:
    names = rank_trace.texts(rank_trace.table("events", ["name"])["name"])
    return (names == "gemm").to_numpy()


def test_only_named_views_are_written() -> None:
    """A view is written for DuckDB only if its name occurs in the query; quotes and upper or lower case do not matter."""
    assert named_views('SELECT 1 FROM "Kernels" JOIN steps USING (rank)') == ((), ("kernels", "steps"))
    assert named_views("FROM stored.kernels") == (("kernels",), ())
    assert named_views("FROM events") == (("events", "tracks"), ("events",))


def test_sums_of_whole_numbers_are_whole_numbers() -> None:
    """DuckDB computes sums in 128 bits; in the result, they are int64."""
    rows = holotrace.sql(
        gpu_job().build(), "SELECT rank, sum(duration_ns) AS ns FROM kernels GROUP BY rank ORDER BY rank"
    )
    assert dict(rows.schema) == {"rank": pl.Int32(), "ns": pl.Int64()}
    assert rows.rows() == [(0, 90_000), (1, 100_000)]
    assert rows.to_arrow().num_rows == 2


@pytest.mark.slow
def test_workers_write_the_views(job) -> None:
    """A query returns the same rows with and without worker processes."""
    query = "SELECT rank, name, count(*) AS call_count FROM kernels GROUP BY ALL ORDER BY ALL"
    with holotrace.processes(2) as executor:
        assert_frame_equal(holotrace.sql(job, query, executor=executor), holotrace.sql(job, query))


class Repeating(InProcessExecutor):
    """An executor that runs every call twice, as if a worker had died and its calls were repeated."""

    def submit(self, fn, /, *args, **kwargs) -> Future:
        """Run the call twice."""
        super().submit(fn, *args, **kwargs)
        return super().submit(fn, *args, **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("is_stored", [False, True], ids=["traces", "store"])
def test_a_rank_may_be_written_again(is_stored, tmp_path) -> None:
    """If a worker dies and its rank is written again, each row is counted only once."""
    trace = gpu_job().build()
    holotrace.write_store(trace, tmp_path / "job.store", executor=Repeating())
    trace = holotrace.open_trace(tmp_path / "job.store") if is_stored else trace
    rows = holotrace.sql(
        trace, "SELECT count(*) FROM kernels JOIN events USING (rank, event_index)", executor=Repeating()
    )
    assert rows.item() == 4


class OnAnotherMachine(InProcessExecutor):
    """A worker that cannot see the temporary folder of the caller."""

    def submit(self, fn, /, *args, **kwargs) -> Future:
        """Run the call; meanwhile, rename the temporary folder so that the call cannot find it."""
        (folder,) = Path(tempfile.gettempdir()).glob("holotrace-sql-*")
        folder.rename(folder.with_name("away"))
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            folder.with_name("away").rename(folder)


def test_workers_on_another_machine_are_rejected(tmp_path, monkeypatch) -> None:
    """`holotrace.sql` rejects workers on another machine, because the result would lack their rows."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InvalidOptionError, match="SQL runs on one machine"):
        holotrace.sql(gpu_job().build(), "FROM kernels", executor=OnAnotherMachine())


FORBIDDEN = {
    "read_csv": "SELECT * FROM read_csv('{secret}')",
    "read_text": "SELECT * FROM read_text('{secret}')",
    "file name": "SELECT * FROM '{secret}'",
    "glob": "SELECT * FROM glob('{folder}/*')",
    "network": "SELECT * FROM 'http://127.0.0.1:9/x.parquet'",
    "variable of Python": "SELECT * FROM secret_frame",
    "copy": "COPY (SELECT 1) TO '{folder}/out.csv'",
    "attach": "ATTACH '{folder}/new.db'",
    "extension": "LOAD httpfs",
    "install": "INSTALL httpfs",
    "setting": "SET enable_external_access = true",
    "pragma": "PRAGMA memory_limit='1GB'",
    "drop": "DROP VIEW events",
    "create": "CREATE TABLE x AS SELECT 1",
    "two": "SELECT 1; SELECT 2",
    "two, the second writes": "SELECT 1; COPY (SELECT 1) TO '{folder}/out.csv'",
    "explain analyze": "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/out.csv'",
    "nothing": "",
    "no SQL": "selec 1",
    "no view": "SELECT * FROM nothing",
    "no column": "SELECT nothing FROM events",
}


@pytest.mark.parametrize("kind", FORBIDDEN)
@pytest.mark.parametrize("is_stored", [False, True], ids=["traces", "store"])
def test_nothing_else_is_accessible(kind, is_stored, tmp_path) -> None:
    """Queries that read or write files, use the network or change settings fail with a one-line error."""
    secret_frame = pl.DataFrame({"secret": [1]})
    assert len(secret_frame) == 1
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    trace = gpu_job().build()
    if is_stored:
        holotrace.write_store(trace, tmp_path / "job.store")
        trace = holotrace.open_trace(tmp_path / "job.store")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidOptionError) as caught:
        holotrace.sql(trace, FORBIDDEN[kind].format(secret=tmp_path / "secret.csv", folder=tmp_path))
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_store_cannot_be_written_into(tmp_path) -> None:
    """A query that copies into a store fails and changes no byte, because only SELECT is allowed."""
    holotrace.write_store(gpu_job().build(), tmp_path / "job.store")
    stored = holotrace.open_trace(tmp_path / "job.store")
    target = tmp_path / "job.store" / "rank=0" / "events.parquet"
    before = target.read_bytes()
    with pytest.raises(InvalidOptionError, match="one SELECT"):
        holotrace.sql(stored, f"COPY (FROM events) TO '{target}'")
    assert target.read_bytes() == before


def test_the_message_lists_the_views() -> None:
    """The error for an unknown view lists all views."""
    with pytest.raises(InvalidOptionError, match=r"kernel does not exist.*The views are: ranks, events, device_work"):
        holotrace.sql(gpu_job().build(), "SELECT * FROM kernel")


@pytest.mark.slow
def test_special_characters_in_paths(tmp_path, monkeypatch) -> None:
    """A store or temporary folder named `a=b [1]* it's` can be queried."""
    odd = tmp_path / "a=b [1]* it's"
    odd.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(odd))
    holotrace.write_store(gpu_job().build(), odd / "job.store")
    for trace in (gpu_job().build(), holotrace.open_trace(odd / "job.store")):
        assert holotrace.sql(trace, "SELECT count(*) FROM events JOIN kernels USING (rank, event_index)").item() == 4


def test_queries_beyond_the_memory_limit_use_files(tmp_path, monkeypatch) -> None:
    """A sort that exceeds the memory limit uses a temporary folder and removes it afterwards."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    query = "SELECT count(*) FROM (SELECT a.start_ns, b.name, random() AS x FROM events AS a, events AS b, range(30000) ORDER BY x)"
    assert holotrace.sql(gpu_job().build(), query, memory_limit_bytes=150_000_000).item() > 0
    assert not list(tmp_path.glob("holotrace-sql-*"))


def test_duckdb_is_missing(monkeypatch) -> None:
    """Without DuckDB, the error contains the pip command to install it."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(HolotraceError, match=r"SQL needs DuckDB: pip install 'holotrace\[sql\]'"):
        holotrace.sql(gpu_job().build(), "SELECT 1")
