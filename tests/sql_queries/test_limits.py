"""Queries have limits, can be interrupted, and return results of every DuckDB type."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import holotrace
from holotrace.cli.commands.sql import parse_size
from holotrace.cli.group import app
from holotrace.errors import InvalidOptionError, LimitReachedError
from holotrace.sql_queries.running import ABANDONED
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder

ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"
MUCH = "SELECT range FROM range(1000000000000)"
NOT_INTERRUPTIBLE = "SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))"
ALL_TYPES = "SELECT * EXCLUDE (medium_enum) FROM test_all_types()"


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Return a trace with one kernel."""
    return TraceBuilder().kernel("k", start_us=0, duration_us=1).build()


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """Write a trace with one kernel to a file."""
    (path,) = TraceBuilder().kernel("k", start_us=0, duration_us=1).write(tmp_path_factory.mktemp("job"))
    return path


@pytest.mark.parametrize(
    "query", [ENDLESS, "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range % 7 = 3"]
)
def test_a_query_ends_at_its_time_limit(query, trace, tmp_path, monkeypatch) -> None:
    """A query stops at its limit of 0.2 s; the error says how to raise the limit, and no files remain."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other test workers write to the usual folder

    with pytest.raises(
        LimitReachedError, match=r"^the query took longer than 0.2 s .*--timeout \(timeout_s=\), 0 for none$"
    ):
        holotrace.sql(trace, query, timeout_s=0.2)

    assert list(tmp_path.iterdir()) == []
    assert holotrace.sql(trace, "SELECT 1 AS one", timeout_s=None).item() == 1


def test_a_query_can_be_stopped_before_it_begins(trace) -> None:
    """With a limit of 1 ms, a query stops while DuckDB is still planning it, and its thread ends."""
    abandoned = ABANDONED.count

    with pytest.raises(LimitReachedError):
        holotrace.sql(trace, ENDLESS, timeout_s=0.001)

    assert ABANDONED.count == abandoned


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (MUCH, "the result is larger than 100 MiB"),
        ("SELECT len(list(range)) FROM range(10000000000)", "the query needs more than 100 MiB of memory"),
    ],
)
def test_a_query_ends_at_its_memory_limit(query, reason, trace) -> None:
    """If a result or intermediate data exceeds 100 MiB, the query ends with an error."""
    with pytest.raises(LimitReachedError, match=reason):
        holotrace.sql(trace, query, memory_limit_bytes=100 << 20)


def test_too_small_a_limit_is_rejected(trace) -> None:
    """A memory limit of 1 KiB raises an error that suggests 16 MiB or more."""
    with pytest.raises(InvalidOptionError, match="a memory limit of 1 KiB is too small; give 16 MiB or more"):
        holotrace.sql(trace, "SELECT 1", memory_limit_bytes=1_024)


def test_an_error_while_fetching_rows_is_one_line(trace) -> None:
    """A conversion error in row 150,000 gives a one-line message that also lists the views."""
    query = "SELECT CAST(CASE WHEN range = 150000 THEN 'x' ELSE '1' END AS INT) FROM range(200000)"
    with pytest.raises(InvalidOptionError, match=r"^Conversion Error: [^\n]*The views are: [^\n]*$"):
        holotrace.sql(trace, query)


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
@pytest.mark.parametrize(
    ("query", "number"),
    [
        pytest.param(ENDLESS, signal.SIGINT, id="endless", marks=pytest.mark.slow),
        pytest.param(ENDLESS, signal.SIGTERM, id="endless, terminated", marks=pytest.mark.slow),
        pytest.param(NOT_INTERRUPTIBLE, signal.SIGINT, id="not interruptible", marks=pytest.mark.slow),
        pytest.param(NOT_INTERRUPTIBLE, signal.SIGTERM, id="not interruptible, terminated"),
    ],
)
def test_a_signal_ends_a_query(query, number, file, tmp_path) -> None:
    """SIGINT and SIGTERM end a query without output or files, even if DuckDB does not check for interrupts."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, "sql", str(file), query, "--timeout", "100"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        assert process.stdout.readline() == b"running\n"
        process.send_signal(number)
        output, error = process.communicate(timeout=60)
    assert (process.returncode, output, error) == (128 + number, b"", b"")
    assert list(tmp_path.glob("holotrace-sql-*")) == []


PROGRAM = """
import sys
import holotrace.sql_queries.running as running
wait = running._wait
def reporting_wait(*arguments):
    sys.stdout.write("running\\n")
    sys.stdout.flush()
    return wait(*arguments)
running._wait = reporting_wait
from holotrace.cli.app import main
main()
"""
"""Runs the command line; prints `running` when it begins to wait for DuckDB."""


@pytest.mark.parametrize("result_format", ["table", "csv", "json"])
def test_results_of_every_type_are_printed(result_format, file) -> None:
    """Values of every DuckDB type, such as blobs and infinite dates, can be printed as a table, CSV or JSON."""
    result = CliRunner().invoke(app, ["sql", str(file), ALL_TYPES, "--format", result_format], catch_exceptions=False)
    assert result.exit_code == 0
    if result_format == "csv":
        (heading, *rows) = csv.reader(
            io.StringIO(result.stdout.replace("\0", ""), newline="")
        )  # Python 3.10 cannot read NUL
        assert {len(row) for row in rows} == {len(heading)}
        first = dict(zip(heading, rows[0], strict=True))
    elif result_format == "json":
        rows = json.loads(result.stdout)
        first = rows[0]
    else:
        rows, first = result.stdout.splitlines()[3:], {}
    assert len(rows) == 3
    assert not first or first["interval"] == "00:00:00"
    assert not first or first["blob"] == b"thisisalongblob\x00withnullbytes".hex()
    assert not first or first["date"].lstrip("'") == "-2147483646 days from 1970"


@pytest.mark.parametrize(("ending", "read"), [("parquet", pl.read_parquet), ("arrow", pl.read_ipc)])
def test_results_of_every_type_are_written(ending, read, file, trace, tmp_path) -> None:
    """Parquet and Arrow files have the column types of the query's result."""
    target = tmp_path / f"rows.{ending}"
    CliRunner().invoke(app, ["sql", str(file), ALL_TYPES, "-o", str(target)], catch_exceptions=False)
    assert read(target).schema == holotrace.sql(trace, ALL_TYPES).schema


def test_common_types_are_kept(trace) -> None:
    """Common types are kept, except that maps become lists of pairs, and intervals and enums become strings."""
    rows = holotrace.sql(
        trace,
        "SELECT 1.5::DECIMAL(4, 1) AS d, DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:00:00' AS at, "
        "[1, 2] AS list, {'a': 1} AS struct, MAP {'k': 1} AS map, INTERVAL 36 HOUR AS i, 7 AS same, 8 AS same, "
        "'x'::ENUM('x', 'y') AS e, uuid() IS NOT NULL AS u",
    )
    assert dict(rows.schema) == {
        "d": pl.Decimal(4, 1),
        "day": pl.Date(),
        "at": pl.Datetime("us"),
        "list": pl.List(pl.Int32),
        "struct": pl.Struct({"a": pl.Int32}),
        "map": pl.List(pl.Struct({"key": pl.String, "value": pl.Int32})),
        "i": pl.String(),
        "same": pl.Int32(),
        "same_1": pl.Int32(),
        "e": pl.String(),
        "u": pl.Boolean(),
    }
    assert rows.select("map", "i", "same_1").row(0) == ([{"key": "k", "value": 1}], "36:00:00", 8)


def test_replacing_types_keeps_the_order_of_rows(trace) -> None:
    """A query with ORDER BY keeps its order when an interval column becomes text."""
    query = "SELECT to_days(range::INT) AS i, range AS n FROM range(5000) ORDER BY n DESC"
    assert holotrace.sql(trace, query)["n"].to_list() == list(range(4_999, -1, -1))


@pytest.mark.parametrize(
    ("text", "byte_count"), [("500MB", 500_000_000), ("4GiB", 4 << 30), ("1.5 gb", 1_500_000_000), ("7", 7)]
)
def test_an_amount_of_memory_can_be_written_in_units(text, byte_count) -> None:
    """Memory sizes may have decimal or binary units: 500MB is 500,000,000 bytes, 4GiB is 4 << 30."""
    assert parse_size(text) == byte_count
