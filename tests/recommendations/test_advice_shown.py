"""The command and HTA's class show advice; the summary and the report show the diagnosis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holotrace.cli.group import app
from holotrace.testing.builder import TraceBuilder
from hta.trace_analysis import TraceAnalysis

SENTENCE = "30.0 % of the mean step (30 µs) of rank 0 is spent waiting for the data loader"


@pytest.fixture(scope="module")
def slow_loading(tmp_path_factory) -> Path:
    """Return a folder with a rank that waits 30 of 100 µs for its data loader."""
    folder = tmp_path_factory.mktemp("advice")
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    builder = TraceBuilder().step(1, 0, 100).annotation(name, start_us=0, duration_us=30)
    builder.operator("aten::relu", start_us=40, duration_us=50).write(folder)
    return folder


def run(*arguments: str) -> str:
    """Run a command that must succeed, and return its output."""
    result = CliRunner().invoke(app, [*arguments, "--no-cache"])
    assert result.exit_code == 0, result.output
    return result.stdout


def on_one_line(text: str) -> str:
    """Return the text on one line; a narrow terminal breaks lines."""
    return " ".join(text.split())


def test_the_command_prints_advice_numbers_and_events(slow_loading: Path) -> None:
    """`holotrace advice` prints the advice, the command that shows more, and the events behind it."""
    printed = on_one_line(run("advice", str(slow_loading)))
    assert SENTENCE in printed
    assert "worth at most 30.0 %; holotrace step-time" in printed
    assert "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" in printed


def test_the_command_takes_other_thresholds(slow_loading: Path) -> None:
    """With `--threshold loading=0.5`, a wait of 30 % gives no advice."""
    assert "None of the rules that could be checked applies." in run(
        "advice", str(slow_loading), "--threshold", "loading=0.5"
    )
    content = json.loads(run("advice", str(slow_loading), "--threshold", "loading=0.5", "--json"))
    assert list(content) == ["ranks", "recommendations", "evidence", "events", "findings"]
    assert content["recommendations"] == []


@pytest.mark.parametrize("threshold", ["loading", "load=0.5", "loading=much", "loading=5"])
def test_a_wrong_threshold_is_named(slow_loading: Path, threshold: str) -> None:
    """An unknown threshold, or one without a fraction, is an error that quotes it."""
    result = CliRunner().invoke(app, ["advice", str(slow_loading), "--threshold", threshold])
    assert result.exit_code != 0
    assert threshold in str(result.exception)


def test_the_summary_begins_with_what_costs_time(slow_loading: Path) -> None:
    """The verdict, its first words, names data loading and what it costs; the line below says what to do."""
    printed = on_one_line(run("summary", str(slow_loading)))[:400]
    assert "30 µs of each step (30.0 %): training waits for data loading" in printed
    assert "num_workers" in printed


def test_the_report_begins_with_what_costs_time(slow_loading: Path, tmp_path: Path) -> None:
    """The report shows the findings and what to do about them before the questions, with a link to the diagnosis."""
    run("report", str(slow_loading), "--output", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "training waits for data loading" in page
    assert '<a href="#diagnosis">' in page
    assert page.index("What costs time, and what to do") < page.index('id="step_time"')


def test_the_class_returns_a_frame(slow_loading: Path) -> None:
    """`get_recommendations` returns a row with the rule and the advice."""
    frame = TraceAnalysis(trace_dir=str(slow_loading)).get_recommendations()
    assert frame["rule"].tolist() == ["data_loading"]
    assert frame["advice"][0].startswith(SENTENCE)
