"""Small files that decompress to gigabytes are refused before they fill memory or disk."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import holotrace
from holotrace.errors import UnreadableTraceError
from holotrace.ingest import kineto
from holotrace.ingest.file_health import file_health
from holotrace.testing.builder import TraceBuilder

MEMBER_BYTES = 16 << 20
EVENT = b'{"ph":"X","cat":"cpu_op","name":"aten::add","ts":1,"dur":1,"pid":1,"tid":1},'


def write_bomb(path: Path, head: bytes, unit: bytes, members: int) -> Path:
    """Write a gzip file: one member with `head`, then `members` more, each with 16 MiB of repetitions of `unit`."""
    path.write_bytes(gzip.compress(head) + gzip.compress(unit * (MEMBER_BYTES // len(unit))) * members)
    return path


def some_trace(folder: Path) -> Path:
    """Write a small trace."""
    return TraceBuilder().operator("aten::mm", start_us=0, duration_us=10).write(folder)[0]


def test_a_bomb_is_refused_and_leaves_nothing_on_disk(tmp_path) -> None:
    """A file of a few MB that expands to 2 GiB is refused after 256 MiB, and the cache stays empty."""
    bomb = write_bomb(tmp_path / "rank0.json.gz", b'{"traceEvents":[{"ph":"X","name":"', b"a", 128)
    cache = tmp_path / "cache"

    with pytest.raises(
        UnreadableTraceError, match=r"decompresses to more than 256 MiB.*HOLOTRACE_MOST_EXPANSION above 100"
    ):
        holotrace.open_trace(bomb, cache=cache).ranks[0].table("events")

    assert bomb.stat().st_size < 4 << 20
    assert [path for path in cache.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("head", "unit"),
    [(b'{"traceEvents":[', EVENT), (b'{"traceEvents":[{"args":', b'{"a":'), (b'{"other":"', b" "), (b"", b"[")],
    ids=["events", "nested", "before the events", "lists"],
)
def test_a_bomb_of_any_content_is_refused(tmp_path, monkeypatch, head, unit) -> None:
    """A file that expands too far is unreadable or skipped, whatever its content; the folder's other file is read."""
    monkeypatch.setattr(kineto, "_SMALL_BYTES", 1 << 20)
    some_trace(tmp_path)
    write_bomb(tmp_path / "rank-1.json.gz", head, unit, 1)
    trace = holotrace.open_trace(tmp_path, cache=False)
    states = {Path(file.path).name: file.state for file in file_health(trace)}
    skipped = {Path(file.path).name: file.reason for file in trace.skipped}

    assert "clean" in states.values()
    assert states.get("rank-1.json.gz", "skipped") in {"unreadable", "skipped"}
    assert len(states) + len(skipped) == 2


def test_the_health_record_gives_the_reason(tmp_path, monkeypatch) -> None:
    """The error names the file, the limit, and the variable that raises the limit."""
    monkeypatch.setattr(kineto, "_SMALL_BYTES", 1 << 20)
    some_trace(tmp_path)
    write_bomb(tmp_path / "rank-1.json.gz", b'{"traceEvents":[', EVENT, 1)
    [error] = [
        file.error for file in file_health(holotrace.open_trace(tmp_path, cache=False)) if file.state == "unreadable"
    ]

    assert "rank-1.json.gz was not read: it decompresses to more than" in error
    assert "set HOLOTRACE_MOST_EXPANSION above 100" in error


def test_the_limit_can_be_raised(tmp_path, monkeypatch) -> None:
    """HOLOTRACE_MOST_EXPANSION raises the limit; a value that is not a number is ignored."""
    monkeypatch.setattr(kineto, "_SMALL_BYTES", 1 << 20)
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": at, "dur": 1, "pid": 1, "tid": 1} for at in range(2_000)]
    path = tmp_path / "rank0.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events, "padding": " " * (8 << 20)}).encode()))

    monkeypatch.setenv("HOLOTRACE_MOST_EXPANSION", "much")
    assert kineto.most_bytes(path) == 100 * path.stat().st_size
    with pytest.raises(UnreadableTraceError, match="HOLOTRACE_MOST_EXPANSION"):
        holotrace.open_trace(path, cache=False).ranks[0].table("events")
    monkeypatch.setenv("HOLOTRACE_MOST_EXPANSION", "9" * 18)
    assert len(holotrace.open_trace(path, cache=False).ranks[0].table("events")) == 2_000


def test_plain_files_are_read_whatever_their_size(tmp_path, monkeypatch) -> None:
    """A plain file may be larger than the limit, which applies only to compressed files."""
    monkeypatch.setattr(kineto, "_SMALL_BYTES", 10)

    assert len(holotrace.open_trace(some_trace(tmp_path), cache=False).ranks[0].table("events")) == 1
