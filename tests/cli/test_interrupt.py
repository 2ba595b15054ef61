"""Ctrl-C and SIGTERM leave neither partial files nor processes behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")

RANKS = 24


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Path:
    """Create a job that takes seconds to read: many links to one file of 35 MB."""
    folder = tmp_path_factory.mktemp("job")
    event = '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%d,"dur":1,"args":{"stream":7,"x":"%0128d"}}'
    events = ",\n".join(event % (number, number) for number in range(150_000))
    (folder / "rank0.json").write_text('{"traceEvents":[' + events + "]}")
    for rank in range(1, RANKS):
        (folder / f"rank{rank}.json").hardlink_to(folder / "rank0.json")
    return folder


@pytest.mark.parametrize(
    ("workers", "number"),
    [
        ("1", signal.SIGINT),
        pytest.param("1", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("2", signal.SIGINT, marks=pytest.mark.slow),
        ("2", signal.SIGTERM),
    ],
)
def test_an_interrupted_command_leaves_nothing_behind(job, tmp_path, workers, number) -> None:
    """An interrupted command keeps finished cache entries, removes the unfinished one and ends all its processes."""
    environment = {
        **os.environ,
        "HOLOTRACE_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-m", "holotrace", "temporal-breakdown", job, "--workers", workers]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, start_new_session=True)  # noqa: S603
    wait_for_draft(tmp_path / "cache")
    os.killpg(process.pid, number)  # like Ctrl-C in a terminal, which signals all processes of the command
    _, errors = process.communicate(timeout=60)
    wait_for_end_of_group(process.pid)
    assert process.returncode == 128 + number
    assert b"Traceback" not in errors
    assert list((tmp_path / "cache").glob("*/.tmp-*")) == []
    assert len(list((tmp_path / "cache").glob("*/*/manifest.json"))) < RANKS


def wait_for_draft(cache: Path) -> None:
    """Wait until one cache entry is complete and another is being written."""
    deadline = time.monotonic() + 60
    while not (list(cache.glob("*/*/manifest.json")) and list(cache.glob("*/.tmp-*"))):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def wait_for_end_of_group(group: int) -> None:
    """Wait until all processes of the command have ended."""
    deadline = time.monotonic() + 30
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline
        time.sleep(0.02)
