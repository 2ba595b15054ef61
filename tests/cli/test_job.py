"""The number of worker processes, the executors, and how commands treat ranks that fail."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holotrace.cli.group import app
from holotrace.cli.job import Execution
from holotrace.errors import InvalidOptionError
from holotrace.execution.retrying import RetryingExecutor
from holotrace.ingest.open_trace import open_trace
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from holotrace.whole_job import workers as module
from holotrace.whole_job.workers import worthwhile_workers


@pytest.fixture
def job(tmp_path) -> Path:
    """Write a job with four small ranks."""
    write_job(tmp_path / "job", ranks=4, steps=1, layers=1)
    return tmp_path / "job"


def test_small_jobs_stay_in_this_process(job, monkeypatch) -> None:
    """A small job gets no workers, because one process reads it faster; a large one gets as many as fit into memory."""
    monkeypatch.setattr(module, "default_worker_count", lambda needed: 8 if needed < 500_000_000 else 2)
    trace = open_trace(job)
    assert worthwhile_workers([trace]) == 1
    assert worthwhile_workers([trace] * 4) == 1
    assert worthwhile_workers([trace] * 12) == 3
    assert worthwhile_workers([trace] * 100) == 8
    assert worthwhile_workers([open_trace([path]) for path in job.glob("*.gz")][:1]) == 1
    grow(next(iter(job.glob("*.gz"))), 25 << 20)
    assert worthwhile_workers([trace]) == 3
    grow(next(iter(job.glob("*.gz"))), 50 << 20)
    assert worthwhile_workers([trace]) == 2
    assert worthwhile_workers([trace.select([1])]) == 1


def grow(path: Path, size: int) -> None:
    """Make a file larger without writing content."""
    os.truncate(path, size)


def test_bytes_of_plain_json_count_less_than_compressed_ones(tmp_path) -> None:
    """Three plain files of 20 MB need no workers, because 16 bytes of plain JSON count as one byte of gzip."""
    for rank in range(3):
        (tmp_path / f"rank{rank}.json").write_text('{"traceEvents": []}')
    trace = open_trace(tmp_path)
    for path in tmp_path.glob("*.json"):
        grow(path, 20 << 20)
    assert worthwhile_workers([trace]) == 1


def test_a_given_number_of_workers_is_used(job) -> None:
    """`workers=1` runs in this process, `workers=2` in worker processes."""
    trace = open_trace(job)
    assert isinstance(Execution(workers=1)._executor([trace]), nullcontext)
    with Execution(workers=2)._executor([trace]) as executor:
        assert isinstance(executor, RetryingExecutor)


def test_two_executors_are_refused(job) -> None:
    """The error for `--workers` together with `--dask` names both options."""
    result = CliRunner().invoke(app, ["summary", str(job), "--workers", "2", "--dask", "tcp://127.0.0.1:1"])
    assert isinstance(result.exception, InvalidOptionError)
    assert str(result.exception).startswith("--workers and --dask cannot be combined")


@pytest.mark.parametrize("option", ["--dask=tcp://127.0.0.1:1", "--ray=127.0.0.1:1", "--mpi"])
def test_a_missing_package_is_named_with_its_extra(job, option, monkeypatch) -> None:
    """If the package of an executor is missing, the error says which extra to install."""
    for name in ("distributed", "ray", "mpi4py.futures"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    result = CliRunner().invoke(app, ["summary", str(job), option])
    assert isinstance(result.exception, InvalidOptionError)
    extra = option.strip("-").partition("=")[0]
    assert str(result.exception).endswith(f"is not installed: pip install 'holotrace[{extra}]'")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_failing_rank_is_skipped_or_ends_the_command(job, workers, caplog) -> None:
    """By default a failing rank is skipped with a warning; `--on-error fail` stops the command."""
    (job / "rank7.json").write_text('[{"no": "event"}]', encoding="utf-8")
    command = ["temporal-breakdown", str(job), "--json", "--workers", workers]
    answer = json.loads(CliRunner().invoke(app, command).stdout)
    assert answer["ranks"] == [0, 1, 2, 3]
    assert answer["findings"][0].startswith(f"skipped: {job / 'rank7.json'} is not a profiler trace")
    assert "skipped: " in caplog.text
    assert "rank7.json" in caplog.text
    failed = CliRunner().invoke(app, [*command, "--on-error", "fail"])
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "rank7.json is not a profiler trace" in str(failed.exception)


def test_ranks_can_be_sampled(job) -> None:
    """`--ranks` takes single ranks, ranges, and every n-th rank of a range."""
    answer = json.loads(
        CliRunner().invoke(app, ["temporal-breakdown", str(job), "--json", "--ranks", "0-3:3,1"]).stdout
    )
    assert answer["ranks"] == [0, 1, 3]


def test_commands_take_captures(tmp_path) -> None:
    """With `--capture`, CUDA graph kernels belong to operators.

    `compare-operators` accepts a separate capture file for each of its two traces.
    """
    replay = TraceBuilder().runtime("hipGraphLaunch", start_us=0, duration_us=1, correlation=5)
    (trace,) = replay.kernel("gemm", start_us=9, duration_us=1, correlation=5).write(tmp_path / "replay")
    captured = TraceBuilder().operator("aten::mm", start_us=0, duration_us=9)
    captured.runtime("hipLaunchKernel", start_us=1, duration_us=2, args={"kernel": "gemm"})
    (capture,) = captured.write(tmp_path / "capture")

    with_capture = CliRunner().invoke(app, ["operators", str(trace), "--capture", str(capture)])
    both = ["compare-operators", str(trace), str(trace), "--test-capture", str(capture)]
    assert "aten::mm" in with_capture.stdout
    assert "aten::mm" not in CliRunner().invoke(app, ["operators", str(trace)]).stdout
    assert "aten::mm" in CliRunner().invoke(app, both).stdout
