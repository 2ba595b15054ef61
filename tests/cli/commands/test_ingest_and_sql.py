"""`holotrace ingest` and `holotrace sql`, and the other commands on a store."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from holotrace.catalogue import ANALYSES
from holotrace.cli.group import app
from holotrace.errors import InvalidOptionError
from jobs import MARKUP, gpu_job
from matrices import each_command

QUERY = "SELECT rank, name, duration_ns FROM kernels ORDER BY rank, start_ns"


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Path:
    """Write the small GPU job to a folder."""
    folder = tmp_path_factory.mktemp("traces") / "job"
    gpu_job().write(folder)
    return folder


@pytest.fixture(scope="module")
def store(job, tmp_path_factory) -> Path:
    """Write the job to a store."""
    folder = tmp_path_factory.mktemp("stores") / "job.store"
    run("ingest", job, "-o", folder, "--no-cache")
    return folder


def run(*arguments: object) -> str:
    """Run a command that succeeds; return its stdout."""
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_ingest_counts_its_ranks(job, tmp_path) -> None:
    """The first `ingest` writes both ranks, and the second writes nothing; with `--force`, both are written again."""
    first, second = (run("ingest", job, "-o", tmp_path / "s") for _ in range(2))
    assert "s: 2 ranks; 2 ranks written (" in first
    assert "0 unchanged, 0 files skipped" in first
    assert "2 ranks; 0 ranks written (0 B), 2 unchanged" in second
    assert "2 ranks written" in run("ingest", job, "-o", tmp_path / "s", "--force")


def test_ingest_reports_skipped_files(tmp_path) -> None:
    """`ingest` skips an unreadable file and reports it; `check` reports the file, too, if it is given the store."""
    gpu_job().write(tmp_path / "job")
    (tmp_path / "job" / "rank1.pt.trace.json").write_text("no trace")
    output = run("ingest", tmp_path / "job", "-o", tmp_path / "s")
    assert "1 rank; 1 rank written" in output
    for text in (output, run("check", tmp_path / "s")):
        assert "rank1.pt.trace.json: not a profiler trace" in text


@each_command(["summary", "check", *(analysis.command for analysis in ANALYSES)])
def test_commands_print_the_same_for_a_store(command, job, store) -> None:
    """A command prints the same output and errors for a store as for its traces."""
    runner = CliRunner()
    traces, stored = (runner.invoke(app, [command, str(path)]) for path in (job, store))
    assert stored.stdout == traces.stdout
    assert str(stored.exception) == str(traces.exception)


@pytest.mark.slow
def test_commands_that_write(job, store, tmp_path) -> None:
    """`report` and `diff` accept a store; files exported from a store equal those from the traces."""
    run("report", store, "-o", tmp_path / "of_store.html")
    for name, source in (("of_traces", job), ("of_store", store)):
        run("export", source, "--to", "csv", "-o", tmp_path / name)
        run("export", source, "--to", "perfetto", "-o", tmp_path / f"{name}_perfetto")
    for kind, pattern in (("", "*/*.csv"), ("_perfetto", "*")):
        of_traces, of_store = (sorted((tmp_path / f"{name}{kind}").glob(pattern)) for name in ("of_traces", "of_store"))
        assert [path.read_bytes() for path in of_traces] == [path.read_bytes() for path in of_store] != []
    assert "gemm" in (tmp_path / "of_store.html").read_text()
    assert "control" in run("diff", job, store)


def test_sql_prints_a_table(job, store) -> None:
    """`sql` prints all digits and unchanged names; the output is the same for traces and for a store made from them."""
    lines = run("sql", job, QUERY).splitlines()
    assert lines[0] == "4 rows"
    assert lines[1].split() == ["rank", "name", "duration_ns"]
    assert lines[3].split() == ["0", "gemm", "40000"]
    assert any(MARKUP in line for line in lines)
    assert run("sql", store, QUERY).splitlines() == lines


def test_sql_prints_the_first_of_many_rows(job) -> None:
    """`sql` prints the first 100 of 4,000 rows and says how to print all."""
    output = run("sql", job, "SELECT * FROM range(1000) JOIN kernels ON true")
    assert output.startswith("the first 100 of 4,000 rows\n")
    assert "to get all rows, use --format or --output" in output


def test_sql_prints_text_formats(job) -> None:
    """`--format json` and `--format csv` print rows; JSON shows NaN and infinity as null."""
    rows = json.loads(run("sql", job, QUERY, "--format", "json"))
    assert rows[0] == {"rank": 0, "name": "gemm", "duration_ns": 40_000}
    assert run("sql", job, QUERY, "--format", "csv").splitlines()[:2] == ["rank,name,duration_ns", "0,gemm,40000"]
    numbers = json.loads(
        run("sql", job, "SELECT 'nan'::DOUBLE AS a, '-inf'::DOUBLE AS b, 1.5 AS c", "--format", "json")
    )
    assert numbers == [{"a": None, "b": None, "c": 1.5}]


@pytest.mark.parametrize(
    ("ending", "read"),
    [("csv", pl.read_csv), ("json", pl.read_json), ("parquet", pl.read_parquet), ("arrow", pl.read_ipc)],
)
def test_sql_writes_files(ending, read, job, tmp_path) -> None:
    """The suffix or `--format` decides the format of the output; existing files are replaced only with `--force`."""
    target = tmp_path / f"rows.{ending}"
    assert run("sql", job, QUERY, "-o", target) == ""
    assert read(target).rows()[0] == (0, "gemm", 40_000)
    with pytest.raises(InvalidOptionError, match="already exists"):
        run("sql", job, QUERY, "-o", target)
    run("sql", job, QUERY, "-o", target, "--force")
    run("sql", job, QUERY, "-o", tmp_path / "rows", "--format", ending)
    assert (tmp_path / "rows").read_bytes() == target.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--format", "parquet"], "--format parquet is binary; name a file with --output"),
        (
            ["-o", "rows.txt"],
            "rows.txt: rows can be written as CSV, JSON, Parquet or Arrow; use one of these suffixes, or choose with --format",
        ),
        (["-o", "rows.csv", "--format", "table"], "rows can be written as CSV"),
    ],
)
def test_sql_refuses_contradictory_options(arguments, reason, job, tmp_path, monkeypatch) -> None:
    """`sql` refuses contradictory options before it reads any file."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOptionError, match=reason):
        run("sql", job, QUERY, *arguments)


def test_swapped_arguments_are_an_error(job) -> None:
    """The error for swapped arguments says that the traces come first and the query last."""
    with pytest.raises(InvalidOptionError, match="put the traces first and the query last"):
        run("sql", QUERY, job)
