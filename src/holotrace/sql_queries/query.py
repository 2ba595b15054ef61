"""Run SQL queries on a trace with DuckDB.

The views in a query are written to a temporary folder as Parquet files, rank by rank. A local store's
tables are not copied: the temporary folder contains links to them. DuckDB can access only this folder and the local
stores that it links to: no other files, no network, no extensions, no Python variables. The query must be a
single SELECT, and cannot change DuckDB's settings
(https://duckdb.org/docs/stable/operations_manual/securing_duckdb/overview).
"""

from __future__ import annotations

import functools
import glob
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from platform import node
from typing import Any

import polars as pl

from holotrace.errors import HolotraceError, InvalidOptionError, LimitReachedError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.execution.processes import available_cores, available_memory_bytes
from holotrace.locations import scratch_folder
from holotrace.schema import TABLES
from holotrace.sql_queries.running import Limits, RunningQuery
from holotrace.sql_queries.views import VIEWS, SqlView
from holotrace.store.job_store import StoredFile
from holotrace.store.tables.parquet_tables import parquet_types, write_parquet
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import size_text

STORED = "stored"
"""Name of the DuckDB schema that contains the stored tables."""

DEFAULT_TIMEOUT_S = 600.0
"""Time limit of a query in seconds, excluding the time for writing its views."""

_SHARE_OF_MEMORY = 2
_LEAST_MEMORY_BYTES = 128 << 20
_UNKNOWN_MEMORY_BYTES = 4 << 30
_LEAST_SETTING_BYTES = 16 << 20
_SHARE_OF_DISK = 2
"""The size limit of DuckDB's temporary files is the free disk space divided by this number."""

_DUCKDB_TYPES: dict[Any, str] = {
    pl.Int64: "BIGINT",
    pl.Int32: "INTEGER",
    pl.UInt32: "UINTEGER",
    pl.UInt64: "UBIGINT",
    pl.UInt8: "UTINYINT",
    pl.Float64: "DOUBLE",
    pl.Boolean: "BOOLEAN",
    pl.String: "VARCHAR",
}


def sql(
    trace: Trace,
    query: str,
    *,
    memory_limit_bytes: int | None = None,
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    executor: Executor = IN_PROCESS,
) -> pl.DataFrame:
    """Run one SELECT on the ranks of a trace with DuckDB.

        holotrace.sql(trace, "SELECT name, sum(duration_ns) AS ns FROM kernels GROUP BY name ORDER BY ns DESC LIMIT 10")

    docs/reference/schema.md lists the views and their columns. The views that the query uses are written into a
    temporary folder, rank by rank. The query can read only files in this folder and in the trace's local stores, and
    cannot write any files.

    Args:
        trace: the ranks to query.
        query: a SELECT that spells out the names of its views.
        memory_limit_bytes: the memory that DuckDB may use before it switches to temporary files, and also the maximum
            size of the result; by default half of the available memory.
        timeout_s: time limit in seconds, excluding the time for writing the views; None for no limit.
        executor: computes the rows of the views; its worker processes must run on this machine.

    Returns:
        The rows. Types that frames do not support, such as intervals, unions and enums, become text.

    Raises:
        InvalidOptionError: DuckDB is not installed or rejects the query; the message gives the reason and lists the
        views.
        LimitReachedError: the query exceeded its time or memory limit.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.sql(small_job(), "SELECT rank, count(*) AS kernels FROM kernels GROUP BY rank ORDER BY rank").rows()
    [(0, 6), (1, 6)]
    """
    duckdb = _duckdb()
    memory_bytes = _memory_bytes(memory_limit_bytes)
    stored, derived = named_views(query)
    with scratch_folder("sql-") as folder:
        if stored or derived:
            write = functools.partial(_write_rank, folder=folder, stored=stored, derived=derived)
            trace = trace.visit(write, executor).trace
            _write_job(trace, executor, folder, derived)
        with _errors_explained(duckdb, query, memory_bytes):
            connection = duckdb.connect(":memory:", config=_settings(folder, memory_bytes))
            running = RunningQuery(connection, Limits(timeout_s or None, memory_bytes))
            try:
                _make_views(connection, folder, stored, derived)
                _lock(connection, [folder, *_linked_stores(trace)])
                _expect_one_select(connection, duckdb, query)
                answer = _plain(running.answer(query))
            finally:
                if not running.is_stuck:  # closing would wait for a stuck query
                    connection.close()
        for file in _stored_files(trace):
            file.expect_unchanged()
        return answer


def named_views(query: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the stored tables that a query or one of its views reads, and the views that the query names."""
    stored = {name for name in TABLES if re.search(rf'\b{STORED}"?\s*\.\s*"?{name}\b', query, re.IGNORECASE)}
    views = [view for view in VIEWS.values() if re.search(rf"(?<!{STORED}\.)\b{view.name}\b", query, re.IGNORECASE)]
    stored.update(name for view in views for name in view.needs)
    return tuple(sorted(stored)), tuple(view.name for view in views)


def _duckdb() -> Any:  # noqa: ANN401 -- a module
    try:
        import duckdb  # noqa: PLC0415 -- an extra, and slow to import
    except ImportError as error:
        message = "SQL needs DuckDB: pip install 'holotrace[sql]'"
        raise InvalidOptionError(message) from error
    return duckdb


def _write_rank(rank_trace: RankTrace, folder: Path, stored: tuple[str, ...], derived: tuple[str, ...]) -> None:
    """Write the nonempty tables and views of a rank into the folder."""
    if not folder.is_dir():
        message = f"SQL runs on one machine, and a worker on {node()} does not see {folder}; use holotrace.processes()"
        raise InvalidOptionError(message)
    for name in stored:
        _put_table(rank_trace, name, _file(folder, f"{STORED}.{name}", rank_trace.rank))
    for name in derived:
        view = VIEWS[name]
        if view.rows is not None:
            _put_view(view, view.rows(rank_trace), _file(folder, name, rank_trace.rank))


def _write_job(trace: Trace, executor: Executor, folder: Path, derived: tuple[str, ...]) -> None:
    """Write the views that are computed from all ranks at once."""
    for view in (VIEWS[name] for name in derived):
        if view.of_job is not None:
            for (rank,), rows in view.of_job(trace, executor).partition_by("rank", as_dict=True).items():
                _put_view(view, rows, _file(folder, view.name, rank))


def _file(folder: Path, view: str, rank: int) -> Path:
    return folder / view / f"rank={rank}" / "rows.parquet"


def _put_table(rank_trace: RankTrace, name: str, target: Path) -> None:
    file = rank_trace.file
    if isinstance(file, StoredFile) and not rank_trace.has_selections:
        if name in file.table_names:
            file.put_table(name, _emptied(target))
        return
    rows = rank_trace.table(name)
    if len(rows):
        with _emptied(target).open("xb") as written:
            write_parquet(rows.lazy(), len(rows), name, rank_trace.unselected.strings, written)


def _put_view(view: SqlView, rows: pl.DataFrame, target: Path) -> None:
    if len(rows):
        columns = [pl.col(name).cast(column_type) for name, column_type in view.types.items()]
        rows.select(columns).write_parquet(_emptied(target), compression="lz4", row_group_size=1 << 17)


def _emptied(target: Path) -> Path:
    """Create the folder of a file, and remove a partial file that a crashed worker may have left."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    return target


def _memory_bytes(asked: int | None) -> int:
    """Return the memory limit of a query: by default half of the available memory.

    Raises:
        InvalidOptionError: the limit is too small for DuckDB.
    """
    if asked is None:
        free = available_memory_bytes()
        return _UNKNOWN_MEMORY_BYTES if free is None else max(_LEAST_MEMORY_BYTES, free // _SHARE_OF_MEMORY)
    if asked < _LEAST_SETTING_BYTES:
        message = f"a memory limit of {size_text(asked)} is too small; give {size_text(_LEAST_SETTING_BYTES)} or more"
        raise InvalidOptionError(message)
    return asked


def _settings(folder: Path, memory_bytes: int) -> dict[str, str]:
    """Return DuckDB's settings, with a folder for its temporary files inside `folder`."""
    return {
        "memory_limit": f"{memory_bytes}B",
        "max_temp_directory_size": f"{shutil.disk_usage(folder).free // _SHARE_OF_DISK}B",
        "threads": str(available_cores()),
        "temp_directory": str(folder / "spilled"),
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",
    }


def _make_views(connection: Any, folder: Path, stored: tuple[str, ...], derived: tuple[str, ...]) -> None:  # noqa: ANN401 -- DuckDB is imported late
    connection.execute(f"CREATE SCHEMA {STORED}")
    for name in stored:
        _make_view(connection, f"{STORED}.{name}", _of_files(folder, f"{STORED}.{name}", parquet_types(name)))
    for name in derived:
        view = VIEWS[name]
        _make_view(connection, name, view.select or _of_files(folder, name, view.types))


def _make_view(connection: Any, name: str, select: str) -> None:  # noqa: ANN401 -- DuckDB is imported late
    connection.execute(f"CREATE VIEW {name} AS {select}")


def _of_files(folder: Path, view: str, types: pl.Schema) -> str:
    """Return a query that reads the files of a view; if the view has no files, the query returns no rows."""
    if not (folder / view).is_dir():
        nulls = ", ".join(f'NULL::{_DUCKDB_TYPES[column_type]} AS "{name}"' for name, column_type in types.items())
        return f"SELECT NULL::INTEGER AS rank, {nulls} WHERE false"
    pattern = f"{glob.escape(str(folder))}/{view}/rank=*/rows.parquet"
    columns = ", ".join(f'"{name}"' for name in types)
    return (
        f"SELECT rank, {columns} FROM read_parquet({_text(pattern)}, hive_partitioning = true, "  # noqa: S608 -- all names are from this package
        "hive_types = {'rank': INTEGER})"
    )


def _linked_stores(trace: Trace) -> set[Path]:
    """Return the folders of the local stores; the query's folder contains links to their files."""
    folders = (file.folder.parent for file in _stored_files(trace))
    return {folder for folder in folders if isinstance(folder, Path)}


def _stored_files(trace: Trace) -> list[StoredFile]:
    return [rank_trace.file for rank_trace in trace.ranks.values() if isinstance(rank_trace.file, StoredFile)]


def _lock(connection: Any, folders: Iterable[Path]) -> None:  # noqa: ANN401 -- DuckDB is imported late
    """Restrict DuckDB to the folders; the query cannot lift this restriction."""
    paths = [str(folder.resolve()) for folder in folders]
    # a view reads its files through a glob pattern that contains the escaped path; DuckDB checks both the pattern and
    # the files, so both the escaped and the plain path must be allowed
    readable = ", ".join(_text(f"{path}/") for path in {*paths, *map(glob.escape, paths)})
    connection.execute(f"SET allowed_directories = [{readable}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _expect_one_select(connection: Any, duckdb: Any, query: str) -> None:  # noqa: ANN401 -- DuckDB is imported late
    """Raise InvalidOptionError unless the query is one SELECT, because other statements could write into the folder."""
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        message = "only one SELECT (or DESCRIBE, SUMMARIZE, FROM …, WITH …) is allowed"
        raise InvalidOptionError(message)


def _plain(rows: pl.DataFrame) -> pl.DataFrame:
    """Convert 128-bit integers, which DuckDB returns for sums of integers, to int64 if they fit."""
    wide = [name for name, dtype in rows.schema.items() if isinstance(dtype, pl.Decimal) and dtype.scale == 0]
    narrow = [rows[name].cast(pl.Int64, strict=False) for name in wide]
    return rows.with_columns(column for column in narrow if column.null_count() == rows[column.name].null_count())


@contextmanager
def _errors_explained(duckdb: Any, query: str, memory_bytes: int) -> Iterator[None]:  # noqa: ANN401 -- DuckDB is imported late
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        message = (
            f"the query needs more than {size_text(memory_bytes)} of memory, or more than half of the free disk space; "
            "aggregate or join less, or raise the limit with --memory-limit (memory_limit_bytes=)"
        )
        raise LimitReachedError(message) from error
    except (duckdb.Error, OSError, pl.exceptions.PolarsError) as error:  # fetching rows raises OSError
        if isinstance(error, HolotraceError):
            raise
        reason = " ".join(re.split(r"\n\s*\n|\nLINE \d", str(error), maxsplit=1)[0].split())
        others = f"the tables of {STORED}: {', '.join(TABLES)}" if STORED in query else f"and {STORED}.<table>"
        message = f"{reason.rstrip('.')}. The views are: {', '.join(VIEWS)}; {others}"
        raise InvalidOptionError(message) from error


def _text(value: str) -> str:
    """Quote a string for SQL."""
    return "'" + value.replace("'", "''") + "'"
