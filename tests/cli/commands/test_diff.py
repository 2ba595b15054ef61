"""`holotrace diff`: tables, JSON, options and errors."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from holotrace.cli.group import app
from holotrace.testing.builder import TraceBuilder


@pytest.fixture
def pair(tmp_path, monkeypatch) -> tuple[str, str]:
    """Write two traces: gemm takes 10 µs in `control` and 40 µs in `test`."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    for name, duration in (("control", 10), ("test", 40)):
        TraceBuilder().step(1, 0, 50).kernel("gemm", start_us=1, duration_us=duration).write(tmp_path / name)
    return str(tmp_path / "control"), str(tmp_path / "test")


def run(*arguments: str) -> str:
    """Run `holotrace diff`; return its stdout."""
    result = CliRunner().invoke(app, ["diff", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_diff_prints_its_question_and_the_difference(pair) -> None:
    """The output starts with the question and shows that gemm differs by 30 µs."""
    output = run(*pair)
    assert output.startswith("What changed from control to test?")
    assert "30 µs" in output


def test_diff_prints_json(pair) -> None:
    """The JSON gives the difference of gemm as 30,000 ns."""
    answer = json.loads(run(*pair, "--json", "--device", "gpu", "--workers", "2"))
    assert list(answer) == ["comparison", "per_name", "sides", "findings"]
    assert [row["difference_ns"] for row in answer["per_name"]] == [30_000]


def test_each_trace_has_its_own_ranks_and_steps(pair) -> None:
    """The control and the test trace have separate options for ranks and steps."""
    options = ("--control-ranks", "0", "--test-ranks", "0", "--control-steps", "1", "--test-steps", "1")
    answer = json.loads(run(*pair, *options, "--json", "--no-cache"))
    assert [side["step_count"] for side in answer["sides"]] == [1, 1]


def test_diff_writes_its_figure(pair, tmp_path) -> None:
    """The figure is an HTML page that works offline."""
    run(*pair, "--figure", str(tmp_path / "diff.html"))
    assert "plotly.js" in (tmp_path / "diff.html").read_text(encoding="utf-8")


def test_a_step_that_does_not_exist_is_an_error(pair) -> None:
    """The error for step 9 lists the steps of the trace."""
    result = CliRunner().invoke(app, ["diff", *pair, "--test-steps", "9"])
    assert "there is no step 9 in this trace; its steps are: 1" in str(result.exception)
