"""What a command writes to a pipe or a file: every line whole, whatever the width of any terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.cli.app import main
from holotrace.cli.commands import app
from holotrace.testing.builder import TraceBuilder
from matrices import each_command

LONG = "void " + "::".join(f"a_namespace_{number}" for number in range(30)) + "::kernel<float, 128>(float const*, int)"
OPERATOR = "aten::" + "a_long_operator_" * 20
WIDTHS = ("10", "80", "100000")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    """A cache of the test."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Path:
    """Long names of kernels, operators and annotations."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).step(1, 0, 1_000).step(2, 1_000, 1_000)
        for start in (0, 1_000):
            builder.annotation(f"annotated {OPERATOR}", start_us=start + 5, duration_us=900)
            builder.operator(OPERATOR, start_us=start + 10, duration_us=500)
            for place in range(4):
                at = start + 100 + 50 * place
                builder.kernel(f"{LONG}#{place}", start_us=at, duration_us=20, launch_us=start + 20 + place)
    folder = tmp_path_factory.mktemp("traces") / "job"
    builder.write(folder)
    return folder


def printed(*arguments: object) -> str:
    """Run a command; return what it prints on stdout, which is no terminal."""
    return CliRunner().invoke(app, list(map(str, arguments))).stdout


@each_command(["summary", "advice", "check", "runs", *(each.command for each in ANALYSES)])
def test_a_pipe_gets_whole_lines(command, job, monkeypatch) -> None:
    """The same for any COLUMNS, without an ellipsis, a line cut off or blanks at its end."""
    outputs = set()
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", width)
        outputs.add(printed(command, job))
    (output,) = outputs
    assert "…" not in output
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
def test_a_name_can_be_found_in_a_pipe(command, name, job) -> None:
    """As `holotrace … | grep NAME` does."""
    assert name in printed(command, job)


def test_sql_prints_every_column_whole(job) -> None:
    """However many there are."""
    lines = printed("sql", job, "SELECT * FROM kernels ORDER BY name DESC LIMIT 1").splitlines()
    assert len(lines[1].split()) > 20
    assert f"{LONG}#3" in lines[3]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", [[], ["idle-time"], ["sql"]])
def test_help_on_a_pipe_is_not_wrapped(command, width, monkeypatch) -> None:
    """An option or a command has one line, with all that is said of it."""
    monkeypatch.setenv("COLUMNS", width)
    lines = printed(*command, "--help").splitlines()
    assert not any(line.endswith("...") for line in lines if not line.startswith("Usage"))
    if command == ["idle-time"]:
        assert (
            sum(
                "Leave a rank out that cannot be worked on, and say so, or end with its error." in each
                for each in lines
            )
            == 1
        )


@pytest.mark.parametrize("arguments", [["summary"], ["summary", "x", "--ranks", "1-"], ["nothing"], ["summary", "--x"]])
def test_a_wrong_use_is_one_line(arguments, monkeypatch, capsys) -> None:
    """What is wrong, and how to see what is right."""
    monkeypatch.setattr(sys, "argv", ["holotrace", *arguments])
    monkeypatch.setenv("COLUMNS", "20")
    with pytest.raises(SystemExit) as ending:
        main()
    error = capsys.readouterr().err
    assert (ending.value.code, error.count("\n")) == (2, 1)
    assert error.startswith("holotrace: ")
    assert error.endswith("--help shows what it takes\n")


@pytest.mark.parametrize("length", [1, 20, 57, 58, 59, 60, 61, 120, 200])
def test_paths_of_any_length_are_whole(length, tmp_path) -> None:
    """A path is one word of one line, however long the folder's name is."""
    folder = tmp_path / ("f" * length)
    folder.mkdir()
    holotrace.write_store(TraceBuilder().kernel("k", start_us=0, duration_us=1).build(), folder / "job.store")
    lines = printed("runs", folder).splitlines()
    assert lines == [
        f"{folder}: no trace, 1 file left out.",
        f"left out  {folder / 'job.store'}: a store of a whole job; open it by its path",
    ]
