"""Tests of `holotrace straggler-cost`, which reads traces or a table of operations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holotrace.analyses.straggler_cost.compute import straggler_cost
from holotrace.cli.group import app
from holotrace.errors import InvalidOperationsError
from holotrace.testing.small_job import small_job
from operations import drawn, pipelined_step


def test_a_table_of_operations_takes_the_place_of_traces(tmp_path: Path) -> None:
    """For a Parquet file, the JSON contains the numbers and the table that `straggler_cost` returns."""
    frame = pipelined_step(2, 3, 2, drawn(1))
    frame.write_parquet(tmp_path / "job.parquet")

    run = CliRunner().invoke(app, ["straggler-cost", str(tmp_path / "job.parquet"), "--json"])

    answer, result = json.loads(run.stdout), straggler_cost(frame)
    assert run.exit_code == 0
    assert answer["ranks"] == [0, 1, 2, 3]
    assert [answer[name] for name in ("slowdown", "worker_share", "stage_share")] == [
        result.slowdown,
        result.worker_share,
        result.stage_share,
    ]
    assert answer["per_worker"] == result.per_worker.to_dicts()


def test_traces_are_answered_as_by_other_questions() -> None:
    """For trace files, the JSON contains the table that `straggler_cost` returns."""
    trace = small_job()
    paths = [rank_trace.source for rank_trace in trace.ranks.values()]

    run = CliRunner().invoke(app, ["straggler-cost", *paths, "--no-cache", "--json"])

    assert json.loads(run.stdout)["per_step"] == straggler_cost(trace).per_step.to_dicts()


def test_a_wrong_table_is_an_error(tmp_path: Path) -> None:
    """The error for a table that lacks columns names the file and the columns."""
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")

    run = CliRunner().invoke(app, ["straggler-cost", str(tmp_path / "other.csv")])

    with pytest.raises(InvalidOperationsError, match=r"other\.csv lacks kind"):
        raise run.exception
