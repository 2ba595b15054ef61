"""Names from a trace do no harm when shown on a terminal, in an error, in JSON, or in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from holotrace.catalogue import ANALYSES
from holotrace.cli.app import main
from holotrace.cli.progress import TerminalProgress, bars_on
from hostile import ACTING, FORMULA, hostile_job, steering
from matrices import QUICK_COMMANDS, slow_except

NAMES_IN_SQL = "SELECT name AS \"=cmd()\", name || chr(27) || '[31m' AS n FROM kernels ORDER BY ALL"

COMMANDS: dict[str, list[str]] = {
    **{analysis.command: [analysis.command, "{job}"] for analysis in ANALYSES},
    **{f"{analysis.command} --json": [analysis.command, "{job}", "--json"] for analysis in ANALYSES},
    **{name: [name, "{job}"] for name in ("summary", "check", "runs")},
    **{f"{name} --json": [name, "{job}", "--json"] for name in ("summary", "check", "runs")},
    "check --strict": ["check", "{job}", "--strict"],
    "diff": ["diff", "{job}", "{other}"],
    "diff --json": ["diff", "{job}", "{other}", "--json"],
    "compare-operators": ["compare-operators", "{job}", "{other}"],
    "compare-operators --json": ["compare-operators", "{job}", "{other}", "--json"],
    "critical-path --scale": ["critical-path", "{job}", "--scale", "gemm=0.5"],
    "sql": ["sql", "{job}", NAMES_IN_SQL],
    "sql --format csv": ["sql", "{job}", NAMES_IN_SQL, "--format", "csv"],
    "sql --format json": ["sql", "{job}", NAMES_IN_SQL, "--format", "json"],
    "export csv": ["export", "{job}", "--to", "csv", "-o", "{out}"],
    "export perfetto": ["export", "{job}", "--to", "perfetto", "-o", "{out}"],
    "ingest": ["ingest", "{job}", "-o", "{out}"],
    "report": ["report", "{job}", "-o", "{out}.html"],
    "an unknown annotation": ["stragglers", "{job}", "--annotation", "nothing"],
    "an unknown operator": ["kernel-sequences", "{job}", "--operator", f"aten{ACTING}x"],
    "a folder that is not there": ["summary", f"{{job}}{ACTING}"],
    "an option that is not there": ["summary", "{job}", f"--{ACTING}"],
    "a command that is not there": [f"sum{ACTING}"],
    "a wrong value": ["summary", "{job}", "--ranks", ACTING],
    "a column that is not there": ["sql", "{job}", f'SELECT "{ACTING}" FROM kernels'],  # noqa: S608 -- a test of names
    "a wrong file": ["summary", "{wrong}"],
}

QUICK = [
    name
    for name in COMMANDS
    if name.split()[0] in QUICK_COMMANDS or name.split()[0] not in {analysis.command for analysis in ANALYSES}
]
"""Commands of the quick tests: a few analyses, and every command that is not an analysis."""


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Path:
    """Write a hostile job to a folder with a hostile name, beside another job and a file that is not a trace."""
    folder = tmp_path_factory.mktemp("traces") / f"job{ACTING.replace('/', '')}"
    hostile_job().write(folder)
    hostile_job(ranks=1).write(folder.with_name("other"))
    folder.with_name(f"wrong{ACTING}.json").write_text(f"{ACTING} is no trace")
    return folder


@pytest.mark.parametrize("on_terminal", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["terminal", "pipe"])
@pytest.mark.parametrize("command", slow_except(COMMANDS, QUICK))
def test_no_name_controls_a_terminal(command, on_terminal, job, tmp_path, monkeypatch, capsys) -> None:  # noqa: PLR0917
    """Neither stdout nor stderr contains control sequences, except that CSV written to a pipe keeps names exact."""
    if not on_terminal and (command == "sql --format csv" or command.endswith("--json")):
        # CSV written to a pipe keeps names exact, and JSON written to a pipe is the same as on a terminal.
        return
    paths = {
        "job": job,
        "other": job.with_name("other"),
        "out": tmp_path / "out",
        "wrong": job.with_name(f"wrong{ACTING}.json"),
    }
    arguments = [argument.format(**paths) if argument.startswith("{") else argument for argument in COMMANDS[command]]
    code, output = run(monkeypatch, capsys, arguments, on_terminal=on_terminal)
    assert code in {0, 1, 2}
    assert steering(output) == set()
    assert "Traceback" not in output
    assert "a bug in holotrace" not in output


def run(monkeypatch, capsys, arguments: list[str], *, on_terminal: bool) -> tuple[int, str]:
    """Run a command, as if on a terminal without colours; return its exit code and all output."""
    monkeypatch.setattr(sys, "argv", ["holotrace", *arguments])
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: on_terminal)
    code = 0
    try:
        main()
    except SystemExit as ending:
        code = int(ending.code or 0)
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_a_progress_bar_shows_names_as_text() -> None:
    """A progress bar replaces control characters in a file name, so the name cannot move the cursor."""
    stream = io.StringIO()
    bars = bars_on(Console(file=stream, force_terminal=True, width=200, no_color=True))
    with bars:
        TerminalProgress(bars).start(10, f"rank{ACTING}.json")
        bars.refresh()
    assert r"rank\x1b[31m\x9b31m\u202e" in stream.getvalue()
    assert steering(stream.getvalue()) <= {"\x1b", "\r"}


def test_json_keeps_names_exact(job, monkeypatch, capsys) -> None:
    """JSON escapes control characters, and parsers restore them."""
    code, output = run(monkeypatch, capsys, ["kernels", str(job), "--json"], on_terminal=False)
    assert code == 0
    assert f"gemm{ACTING}" in {row["name"] for row in json.loads(output)["per_kernel"]}


@pytest.mark.parametrize("is_raw", [False, True], ids=["escaped", "raw"])
def test_csv_disarms_formulas(is_raw, job, tmp_path, monkeypatch, capsys) -> None:
    """`sql` and `export` put an apostrophe before text that a spreadsheet would run, unless --raw-text is given."""
    options = ["--raw-text"] if is_raw else []
    code, output = run(
        monkeypatch,
        capsys,
        ["sql", str(job), 'SELECT name AS "=n", -1 AS number FROM kernels', "--format", "csv", *options],
        on_terminal=False,
    )
    (heading, number), *rows = list(csv.reader(io.StringIO(output, newline="")))
    assert (code, heading, number) == (0, "=n" if is_raw else "'=n", "number")
    assert {row[1] for row in rows} == {"-1"}
    run(
        monkeypatch,
        capsys,
        ["export", str(job), "--to", "csv", "-o", str(tmp_path / "out"), *options],
        on_terminal=False,
    )
    with (tmp_path / "out" / "rank_0" / "events.csv").open(newline="", encoding="utf-8") as file:
        names = {row["name"] for row in csv.DictReader(file)}
    shown = FORMULA if is_raw else f"'{FORMULA}"
    assert shown in {row[0] for row in rows}
    assert shown in names
