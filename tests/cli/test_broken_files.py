"""On a broken file, every command succeeds or fails with a one-line error; lost events are reported."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from broken_files import BROKEN, write_broken
from holotrace.catalogue import ANALYSES
from holotrace.cli.app import main
from holotrace.cli.questions import ResultOptions, show
from holotrace.errors import HolotraceError
from holotrace.figures import figure_of
from holotrace.ingest.open_trace import open_trace
from holotrace.questions.question import Analysis
from holotrace.store.trace import Trace
from matrices import slow_except

OF_THE_JOB = {
    **{name: [name, "{job}"] for name in ("summary", "check", "runs", "critical-path", "straggler-cost")},
    "check --strict": ["check", "{job}", "--strict"],
    "report": ["report", "{job}", "-o", "{out}.html"],
    "export csv": ["export", "{job}", "--to", "csv", "-o", "{out}"],
    "export perfetto": ["export", "{job}", "--to", "perfetto", "-o", "{out}"],
    "ingest": ["ingest", "{job}", "-o", "{out}"],
    "sql": ["sql", "{job}", "SELECT * FROM kernels"],
    "sql of operators": ["sql", "{job}", "SELECT * FROM operators", "--format", "json"],
    "diff": ["diff", "{job}", "{sound}"],
    "diff --json": ["diff", "{sound}", "{job}", "--json"],
    "compare-operators": ["compare-operators", "{job}", "{sound}"],
    "critical-path --scale": ["critical-path", "{job}", "--scale", "gemm=0.5"],
}
COMPAT = ("kernels", "operators", "distributed", "step_time", "gpu_summary", "modules")
OF_A_QUESTION = {
    **{analysis.command: [analysis.command, "{job}"] for analysis in ANALYSES},
    **{f"{analysis.command} --json": [analysis.command, "{job}", "--json"] for analysis in ANALYSES},
    **{f"{analysis.command} --figure": [analysis.command, "{job}", "--figure", "{out}.html"] for analysis in ANALYSES},
    **{f"{name} --json": [name, "{job}", "--json"] for name in ("summary", "check", "runs")},
    **{f"{name} --compat": [name.replace("_", "-"), "{job}", "--compat", "torch_tb_profiler"] for name in COMPAT},
    "export parquet": ["export", "{job}", "--to", "parquet", "-o", "{out}"],
    "compare-operators --json": ["compare-operators", "{sound}", "{job}", "--json"],
}
"""Commands that are tested with one file only; with the other files, the tests call the analyses from Python."""

QUICK = "odd_inputs.json"
"""A file with damaged args; tests on all other files are marked as slow."""

EACH_FILE = pytest.mark.parametrize("name", slow_except(BROKEN, [QUICK]))

REPAIRED = ("stray_bracket.json", "stray_bracket.json.gz", "two_documents.json", "two_lists.json")
LOSING = (
    "far_memory.json",
    "far_timeline.json",
    "far_waits.json",
    "damaged_key.json",
    "damaged_device.json",
    "cut_off.json",
    "nested.json.gz",
    "cut_off.json.gz",
)
"""Files in which events or metadata are lost because of the damage."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Write the broken files to a folder; each file is a job."""
    folder = tmp_path_factory.mktemp("broken")
    write_broken(folder)
    return folder


def run(command: list[str], paths: dict[str, Path], monkeypatch, capsys) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code, stdout and stderr."""
    monkeypatch.setattr(
        sys, "argv", ["holotrace", *(argument.format(**paths) if "{" in argument else argument for argument in command)]
    )
    code = 0
    try:
        main()
    except SystemExit as ending:
        code = int(ending.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def failures(commands: dict[str, list[str]], job: Path, out: Path, monkeypatch, capsys) -> dict[str, tuple[int, str]]:
    """Run commands on a job; return the exit code and stderr of each command that ends in an unexpected way.

    A command may succeed, or fail with a one-line error.
    """
    failed = {}
    for number, (name, command) in enumerate(commands.items()):
        paths = {"job": job, "out": out / str(number), "sound": job.with_name("flow_with_args.json")}
        code, printed, errors = run(command, paths, monkeypatch, capsys)
        is_check = name == "check --strict"  # prints errors to stdout and fails
        lines = errors.count("\n")
        if (
            code not in {0, 1}
            or (lines != code and not (is_check and lines == 0))
            or "a bug in holotrace" in errors
            or "Traceback" in printed + errors
        ):
            failed[name] = (code, errors)
    return failed


@EACH_FILE
def test_every_command_answers_or_fails_with_one_line(name, folder, tmp_path, monkeypatch, capsys) -> None:
    """A command given a broken file exits with 0, or with 1 and a one-line error; it never prints a traceback."""
    assert failures(OF_THE_JOB, folder / name, tmp_path, monkeypatch, capsys) == {}


@pytest.mark.slow
def test_every_form_of_an_answer(folder, tmp_path, monkeypatch, capsys) -> None:
    """Every analysis command, also with `--json`, `--figure` or `--compat`, succeeds or prints a one-line error."""
    assert failures(OF_A_QUESTION, folder / QUICK, tmp_path, monkeypatch, capsys) == {}


@EACH_FILE
def test_every_answer_can_be_shown(name, folder, capsys) -> None:
    """For every analysis, either the tables, JSON and figure can be shown, or the error message has only one line."""
    trace = open_trace(folder / name, cache=False)
    for question in ANALYSES:
        for settings in ({}, {"compat": "torch_tb_profiler"}) if question.name in COMPAT else ({},):
            assert "\n" not in shown(question, trace, settings)
    assert capsys.readouterr().err == ""


def shown(question: Analysis, trace: Trace, settings: dict[str, str]) -> str:
    """Run an analysis, print its tables and JSON, and draw its figure; return the error message, if any."""
    try:
        result = question.compute(trace, **settings)
    except HolotraceError as error:
        return str(error)
    show(question, result, ResultOptions(), {})
    show(question, result, ResultOptions(as_json=True), {})
    figure_of(question.name, result).to_json()
    return ""


@pytest.mark.parametrize("name", LOSING)
def test_the_summary_begins_with_the_loss(name, folder, monkeypatch, capsys) -> None:
    """If events were lost, `holotrace check --strict` fails, and the first line of the summary reports the loss."""
    code, checked, _ = run(["check", "{job}", "--strict"], {"job": folder / name}, monkeypatch, capsys)
    _, summary, errors = run(["summary", "{job}"], {"job": folder / name}, monkeypatch, capsys)
    first = (errors + summary).splitlines()[0]
    assert (code, errors) == (1, "")
    assert re.search(r"lost\b", checked)
    assert first.startswith(("Rank 0's file is cut off after ", "The file could be read only in part (rank 0): "))


@pytest.mark.parametrize("name", REPAIRED)
def test_a_repair_that_may_be_wrong_fails_the_check(name, folder, monkeypatch, capsys) -> None:
    """`check --strict` fails for a repair that loses no event, because the repair is a guess."""
    code, checked, _ = run(["check", "{job}", "--strict"], {"job": folder / name}, monkeypatch, capsys)
    assert code == 1
    assert "repaired while reading the file; nothing is lost" in checked
