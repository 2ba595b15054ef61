"""Output to a pipe or a file is never cut or wrapped, whatever the width of the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.cli.app import main
from holotrace.cli.group import app
from holotrace.testing.builder import TraceBuilder
from matrices import each_command

LONG = "void " + "::".join(f"a_namespace_{number}" for number in range(30)) + "::kernel<float, 128>(float const*, int)"
OPERATOR = "aten::" + "a_long_operator_" * 20
WIDTHS = ("10", "80", "100000")


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Path:
    """Write a job with long names of kernels, operators and annotations."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).step(1, 0, 1_000).step(2, 1_000, 1_000)
        for start in (0, 1_000):
            builder.annotation(f"annotated {OPERATOR}", start_us=start + 5, duration_us=900)
            builder.operator(OPERATOR, start_us=start + 10, duration_us=500)
            for index in range(4):
                at = start + 100 + 50 * index
                builder.kernel(f"{LONG}#{index}", start_us=at, duration_us=20, launch_us=start + 20 + index)
    folder = tmp_path_factory.mktemp("traces") / "job"
    builder.write(folder)
    return folder


def printed(*arguments: object) -> str:
    """Run a command; return its stdout, which is not a terminal."""
    return CliRunner().invoke(app, list(map(str, arguments))).stdout


@pytest.mark.slow
@each_command(["summary", "check", "runs", *(analysis.command for analysis in ANALYSES)])
def test_a_pipe_gets_complete_lines(command, job, monkeypatch) -> None:
    """Piped output ignores COLUMNS and has no trailing spaces; only its first two lines may contain shortened names."""
    outputs = set()
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", width)
        outputs.add(printed(command, job))
    (output,) = outputs
    assert not [line for line in output.splitlines()[2:] if "…" in line]
    assert "no room for" not in output
    assert [line for line in output.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("kernels", f"{LONG}#3"),
        ("kernel-breakdown", f"{LONG}#3"),
        ("kernel-sequences", f"{LONG}#3"),
        ("operators", OPERATOR),
        ("operator-kernels", f"{LONG}#3"),
        ("user-annotations", f"annotated {OPERATOR}"),
    ],
)
def test_grep_finds_a_name(command, name, job) -> None:
    """A pipe receives complete names, so `holotrace … | grep NAME` finds them."""
    assert name in printed(command, job)


def test_sql_prints_every_column(job) -> None:
    """On a pipe, `sql` prints all columns in full."""
    lines = printed("sql", job, "SELECT * FROM kernels ORDER BY name DESC LIMIT 1").splitlines()
    assert len(lines[1].split()) > 20
    assert f"{LONG}#3" in lines[3]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", [[], ["idle-time"], ["sql"]])
def test_help_on_a_pipe_is_not_wrapped(command, width, monkeypatch) -> None:
    """On a pipe, help prints each option and command on one line, with its complete description."""
    monkeypatch.setenv("COLUMNS", width)
    lines = printed(*command, "--help").splitlines()
    assert not any(line.endswith("...") for line in lines if not line.startswith("Usage"))
    if command == ["idle-time"]:
        whole = "If a rank fails, skip it with a warning (skip) or stop with its error (fail)."
        assert sum(whole in line for line in lines) == 1


@pytest.mark.parametrize("arguments", [["summary"], ["summary", "x", "--ranks", "1-"], ["nothing"], ["summary", "--x"]])
def test_a_usage_error_is_one_line(arguments, monkeypatch, capsys) -> None:
    """A usage error is one line that ends with a hint to use `--help`."""
    monkeypatch.setattr(sys, "argv", ["holotrace", *arguments])
    monkeypatch.setenv("COLUMNS", "20")
    with pytest.raises(SystemExit) as ending:
        main()
    error = capsys.readouterr().err
    assert (ending.value.code, error.count("\n")) == (2, 1)
    assert error.startswith("holotrace: ")
    assert error.endswith("--help shows its options\n")


@pytest.mark.parametrize("length", [1, 20, 57, 58, 59, 60, 61, 120, 200])
def test_long_paths_are_not_wrapped(length, tmp_path) -> None:
    """A path stays on one line, even if it is long."""
    folder = tmp_path / ("f" * length)
    folder.mkdir()
    holotrace.write_store(TraceBuilder().kernel("k", start_us=0, duration_us=1).build(), folder / "job.store")
    lines = printed("runs", folder).splitlines()
    assert lines == [
        f"{folder}: no trace, 1 file skipped.",
        f"skipped  {folder / 'job.store'}: a store of a whole job; open it by its path",
    ]
