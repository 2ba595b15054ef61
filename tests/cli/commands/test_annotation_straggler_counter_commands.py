"""Options of the commands for annotations and stragglers."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from holotrace.cli.group import app
from holotrace.testing.builder import TraceBuilder


@pytest.fixture
def job(tmp_path, monkeypatch) -> str:
    """Write two steps of two ranks; rank 1 is late in step 1, rank 0 in step 2."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    builder = TraceBuilder()
    for rank, durations in enumerate([(30, 5), (10, 45)]):
        builder.rank(rank)
        for step, duration in enumerate(durations, start=1):
            builder.step(step, 100 * step, 100).annotation("part", start_us=100 * step, duration_us=90)
            builder.collective(start_us=100 * step + 20, duration_us=duration)
    builder.write(tmp_path / "job")
    return str(tmp_path / "job")


def rows(*arguments: str) -> dict:
    """Run a command that succeeds; return its JSON."""
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_steps_option_selects_steps(job) -> None:
    """`--steps 2` ignores the collective of step 1."""
    assert [row["last_count"] for row in rows("stragglers", job, "--steps", "2")["per_rank"]] == [1, 0]


def test_annotations_can_replace_steps(job) -> None:
    """With `--annotation part`, `--steps 0` selects the first range of each rank."""
    result = rows("stragglers", job, "--annotation", "part", "--steps", "0")
    assert [(row["step"], row["last_count"]) for row in result["per_step"]] == [(0, 0), (0, 1)]


def test_patterns_choose_annotations_and_steps_are_merged(job) -> None:
    """`--allow` can be given several times; `--merge-steps` joins both steps into one row."""
    result = rows("user-annotations", job, "--allow", "^Prof", "--allow", "x", "--merge-steps", "--ranks", "0")
    assert [(row["side"], row["name"], row["call_count"]) for row in result["per_annotation"]] == [
        ("cpu", "ProfilerStep", 2)
    ]
