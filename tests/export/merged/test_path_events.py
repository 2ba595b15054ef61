"""A merged timeline shows the critical path as a process with one track per rank, and arrows between the tracks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holotrace.analyses.critical_path.compute import critical_path
from holotrace.cli.group import app
from holotrace.errors import InvalidOptionError
from holotrace.export.merged.merged_trace import write_merged_trace
from holotrace.export.merged.path_events import PROCESS_NAME
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder


def job() -> TraceBuilder:
    """Return two ranks of one host; rank 1 computes until 60 µs, both reduce, and rank 0 runs `"q"` until 100 µs."""
    builder = TraceBuilder()
    for rank, busy in ((0, 20), (1, 55)):
        builder.rank(rank).header(host_name="one", distributedInfo={"rank": rank, "world_size": 2})
        builder.step(1, 0, 80)
        builder.kernel("gemm", start_us=5, duration_us=busy, launch_us=1, launch_duration_us=1)
        builder.collective(start_us=5 + busy, duration_us=65 - busy, launch_us=3, launch_duration_us=1, stream=7)
    return builder.rank(0).kernel('"q"', start_us=70, duration_us=30, launch_us=5, launch_duration_us=1)


def merged_events(trace: Trace, target: Path) -> list[dict]:
    """Write the merged trace with its path; return the events of the path's process."""
    write_merged_trace(trace, target, critical_path=critical_path(trace, across_ranks=True))
    events = json.loads(target.read_bytes())["traceEvents"]
    pid = next(event["pid"] for event in events if event.get("args", {}).get("name") == PROCESS_NAME)
    return [event for event in events if event["pid"] == pid]


def test_segments_are_events_on_the_track_of_their_rank(tmp_path) -> None:
    """The segments of the path have the names of the original events and cover the step without gaps."""
    events = merged_events(job().build(), tmp_path / "merged.json")
    segments = [event for event in events if event["ph"] == "X"]
    assert [(event["tid"], event["name"], event["ts"], event["dur"]) for event in segments[-3:]] == [
        (1, "gemm", 5, 55),
        (0, "all_reduce", 60, 10),
        (0, '"q"', 70, 30),
    ]
    assert sum(event["dur"] for event in segments) == 100
    assert segments[-1]["args"] == {"path_class": "computation", "module": None}
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert tracks == {0: "rank 0", 1: "rank 1"}


def test_arrows_lead_from_rank_to_rank(tmp_path) -> None:
    """One arrow leads from the end of rank 1's work to the transfer on rank 0."""
    events = merged_events(job().build(), tmp_path / "merged.json")
    arrows = [(event["ph"], event["tid"], event["ts"]) for event in events if event["ph"] in "sf"]
    assert arrows == [("s", 1, 59.999), ("f", 0, 60)]


def test_the_command_adds_the_path(tmp_path, monkeypatch) -> None:
    """With `--merge`, `--critical-path` adds the path; without `--merge`, the option is refused."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    job().write(tmp_path / "job")
    command = ["export", str(tmp_path / "job"), "--to", "perfetto", "--critical-path", "-o", str(tmp_path / "out")]
    with pytest.raises(InvalidOptionError, match="add --merge"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert CliRunner().invoke(app, [*command, "--merge"], catch_exceptions=False).exit_code == 0
