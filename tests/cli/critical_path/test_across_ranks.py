"""`holotrace critical-path --across-ranks`: one path through all ranks, and predictions for the job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holotrace.cli.group import app
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder


@pytest.fixture
def job(tmp_path, monkeypatch) -> Path:
    """Write two ranks of one host; before their collective, rank 1 computes for 50 µs and rank 0 for 20 µs."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    builder = TraceBuilder()
    for rank, busy in ((0, 20), (1, 50)):
        builder.rank(rank).header(host_name="one", distributedInfo={"rank": rank, "world_size": 2})
        builder.step(1, 0, 80)
        builder.kernel("gemm", start_us=5, duration_us=busy, launch_us=1, launch_duration_us=1)
        builder.collective(start_us=5 + busy, duration_us=60 - busy, launch_us=3, launch_duration_us=1, stream=7)
    builder.write(tmp_path / "job")
    return tmp_path / "job"


def run(*arguments: object) -> str:
    """Run `holotrace critical-path --across-ranks`; return its stdout."""
    command = ["critical-path", "--across-ranks", *map(str, arguments)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_tables_show_the_path_through_all_ranks(job) -> None:
    """The tables show the path of the job and how much a replay without changes differs from the measured step."""
    text = run(job, "--like-peers", 1)
    question, answer = text.splitlines()[:2]
    assert question == "What bounds the step?"
    assert answer.startswith("100.0 % of the job's critical path (ProfilerStep#1, 80 µs) is on rank 0")
    assert "Each rank: its time on the path through all ranks" in text
    assert "Where the path crosses to another rank" in text or "rank" in text
    assert "With these changes:" in text
    assert "a replay without changes differs from the measured step by 0.0 %" in text


def test_json_holds_the_tables_and_the_prediction(job) -> None:
    """The JSON contains the step of 80 µs, both ranks and a prediction; a replay without changes also takes 80 µs."""
    answer = json.loads(run(job, "--json", "--scale", "gemm=0.5"))
    assert answer["steps"][0]["duration_ns"] == 80_000
    assert answer["ranks"] == [0, 1]
    assert answer["what_if"]["measured_ns"] == answer["what_if"]["replayed_ns"] == 80_000


def test_a_change_that_selects_nothing_is_a_finding(job) -> None:
    """If a change matches nothing, the path is still shown, and a finding says that nothing was predicted."""
    findings = json.loads(run(job, "--json", "--remove", "nothing has this name"))["findings"]
    assert any("selects nothing on any rank" in finding for finding in findings)


def test_time_ranges_count_from_the_first_event_of_the_job(job) -> None:
    """`--time-range-ms` selects a window, which the tables call `time range`."""
    steps = json.loads(run(job, "--json", "--time-range-ms", "0.01-0.05"))["steps"]
    assert steps[0]["window"] == "time range"


def test_files_of_single_ranks_are_refused(job, tmp_path) -> None:
    """With `--across-ranks`, `--overlay` and `--save` are refused, because they write the paths of single ranks."""
    with pytest.raises(InvalidOptionError, match="leave out --across-ranks"):
        run(job, "--overlay", tmp_path / "copies")


def test_changes_of_jobs_need_all_ranks(job) -> None:
    """Options that need `--across-ranks` are refused without it."""
    result = CliRunner().invoke(app, ["critical-path", str(job), "--faster-link", "2"])
    assert result.exit_code == 2
