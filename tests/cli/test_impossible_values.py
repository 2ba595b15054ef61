"""Given invalid values in a file, or a broken stdout, a command succeeds or fails with a one-line error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holotrace.catalogue import ANALYSES
from holotrace.cli.app import main
from holotrace.testing.builder import TraceBuilder
from matrices import each_command

IMPOSSIBLE = {"object": {"a": 1}, "list": [1], "too large": 2**63, "too small": -(2**63) - 1, "text": "x"}
KEYS = (
    "id",
    "name",
    "totalGlobalMem",
    "numSms",
    "maxThreadsPerMultiprocessor",
    "computeMajor",
    "computeMinor",
    "warpSize",
)
COMMANDS = ["summary", "check", *(analysis.command for analysis in ANALYSES)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """For each impossible value, write a job in which every property of the devices and of the job has this value."""
    folder = tmp_path_factory.mktemp("jobs")
    for name, value in IMPOSSIBLE.items():
        builder = TraceBuilder().step(1, 0, 100).step(2, 100, 100)
        builder.header(
            deviceProperties=[dict.fromkeys(KEYS, value)],
            distributedInfo={"rank": value, "world_size": value, "backend": value},
            host_name=value,
            traceName=value,
        )
        builder.operator("aten::mm", start_us=5, duration_us=50)
        builder.kernel("gemm", start_us=110, duration_us=20, launch_us=10).write(folder / name)
    return folder


@pytest.mark.parametrize("kind", IMPOSSIBLE)
@each_command(COMMANDS)
def test_impossible_values_in_a_header_break_no_command(command, kind, folder, monkeypatch, capsys) -> None:
    """Impossible header values count as missing; a command that needs one of them fails with a one-line error."""
    monkeypatch.setattr(sys, "argv", ["holotrace", command, str(folder / kind)])
    code = 0
    try:
        main()
    except SystemExit as ending:
        code = int(ending.code or 0)
    captured = capsys.readouterr()
    assert code in {0, 1}
    assert captured.err.count("\n") == code
    assert "a bug in holotrace" not in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(options, unbuffered, folder, tmp_path) -> None:
    """On a full disk, a command fails with a one-line error that says its output is incomplete."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "holotrace", "kernels", str(folder / "object"), *options]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(  # noqa: S603
            command, stdout=full, stderr=subprocess.PIPE, env=environment, text=True, check=False, cwd=tmp_path
        )
    assert (done.returncode, done.stderr) == (
        1,
        "holotrace: stdout cannot be written: No space left on device; the output is incomplete\n",
    )


def test_a_closed_pipe_prints_no_error(folder, tmp_path) -> None:
    """If the reader closes the pipe, as `head` does, a command exits with 1 and prints nothing on stderr."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "holotrace", "kernels", str(folder / "object")]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(  # noqa: S603
        command, stdout=writing, stderr=subprocess.PIPE, env=environment, text=True, check=False, cwd=tmp_path
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
