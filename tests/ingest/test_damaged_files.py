"""The reader reports losses in damaged and hostile files, uses limited memory, and stops at once on a signal."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holotrace
from holotrace.errors import UnreadableTraceError
from holotrace.ingest import kineto
from holotrace.ingest.file_health import file_health
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder
from holotrace.validation import validate
from matrices import slow_except

HEAD = b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1},'
MEMORY_LIMIT = 500 << 20


def opened(path: Path, content: bytes) -> RankTrace:
    """Write a file and open it."""
    path.write_bytes(content)
    return holotrace.open_trace(path, cache=False).ranks[0]


def names(rank_trace: RankTrace) -> list[str]:
    """Return the names of the events in file order."""
    return rank_trace.texts(rank_trace.table("events", ["name"])["name"]).to_list()


def lost(rank_trace: RankTrace) -> dict[str, tuple[str, int, int]]:
    """Return {kind: (severity, events lost, bytes lost)}."""
    return {loss.kind: (loss.severity, loss.events_lost, loss.bytes_lost) for loss in rank_trace.health.findings}


def job(*kernels: str) -> bytes:
    """Return the text of a trace with these kernels."""
    builder = TraceBuilder()
    for index, name in enumerate(kernels):
        builder.kernel(name, start_us=index * 10, duration_us=1)
    return builder.json()


@pytest.mark.parametrize(
    "event",
    [
        '{"ph":"s","id":1,"pid":1,"tid":1,"ts":1,"cat":"ac2g","name":"f","args":{"correlation":1}}',
        '{"ph":"C","pid":1,"tid":1,"ts":12,"name":"c","args":{"device":"0","correlation":"5"}}',
        '{"ph":"X","args":{"stream":7,"device":0},"ph":"s","id":3,"pid":1,"tid":1,"ts":1,"name":"x","cat":"kernel"}',
        '{"ph":"B","pid":1,"tid":1,"ts":1,"name":"b","args":{"External id":7}}',
        '{"ph":"M","pid":1,"tid":1,"ts":1,"name":"m","args":{"stream":7,"name":{}}}',
    ],
)
def test_odd_events_do_not_lose_the_file(tmp_path, event) -> None:
    """An event with unknown args, repeated keys or an unusual phase is kept, and so is every other event."""
    rank_trace = opened(tmp_path / "rank0.json", HEAD + event.encode() + b"]}")
    assert "a" in names(rank_trace)
    assert rank_trace.health.event_count == 2
    assert all(finding.severity != "dropped" for finding in rank_trace.health.findings)


def test_a_stray_bracket_is_skipped(tmp_path) -> None:
    """Events after an extra `]` are read; the health record reports the bracket, and `--strict` fails."""
    content = job("a", "b", "c")
    comma = content.index(b",", content.index(b"}", content.index(b'"a"')))
    rank_trace = opened(tmp_path / "rank0.json", content[:comma] + b"]" + content[comma + 1 :])
    assert names(rank_trace) == ["a", "b", "c"]
    assert lost(rank_trace) == {"stray_bracket": ("repaired", 0, 0)}
    assert ("stray_bracket", "error") in rules(tmp_path / "rank0.json")


def rules(path: Path) -> list[tuple[str, str]]:
    """Return the rules that a file breaks, with the severity of each."""
    return [(violation.rule, violation.severity) for violation in validate(holotrace.open_trace(path, cache=False))]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_concatenated_documents_are_all_read(tmp_path, pack) -> None:
    """If two traces were joined by `cat`, plain or compressed, the events of both are read."""
    rank_trace = opened(tmp_path / "rank0.json", pack(job("a", "b")) + pack(job("c")))
    assert names(rank_trace) == ["a", "b", "c"]
    assert lost(rank_trace) == {"another_document": ("repaired", 0, 0)}
    assert ("another_document", "error") in rules(tmp_path / "rank0.json")


def test_skipped_input_is_counted(tmp_path) -> None:
    """The health record counts the lost event and its bytes; `holotrace check` and `--strict` report them."""
    broken = b'{"ph":"X","name":"b"'
    rank_trace = opened(tmp_path / "rank0.json", HEAD + broken + b',{"ph":"X","name":"c","ts":1,"dur":1}]}')
    assert names(rank_trace) == ["a", "c"]
    assert lost(rank_trace)["broken_event"] == ("dropped", 1, len(broken) + 1)
    assert ("broken_event", "error") in rules(tmp_path / "rank0.json")
    assert file_health(holotrace.open_trace(tmp_path, cache=False))[0].state == "with losses"


@pytest.mark.parametrize(
    "head",
    [
        b'{"schemaVersion: 1,"traceEvents":[',
        b'{"deviceProperties":[{"id":0,"name":"x"],"traceEvents":[',
        b'{"schemaVersion":1,"traceEvent":[',
        b'"schemaVersion":1,"traceEvents":[',
    ],
)
def test_a_damaged_header_loses_no_event(tmp_path, head) -> None:
    """If a file is damaged before the event list, header values are lost, but no events."""
    rank_trace = opened(tmp_path / "rank0.json", head + HEAD.split(b"[")[1].rstrip(b",") + b"]}")
    assert names(rank_trace) == ["a"]
    assert lost(rank_trace)["lost_metadata"][0] == "dropped"


def test_events_at_extreme_times_are_dropped(tmp_path) -> None:
    """Events at ±5e15 µs are dropped, because the time between them would not fit into 64 bits."""
    far = b'{"ph":"X","name":"b","ts":-5000000000000000.0,"dur":5},{"ph":"X","name":"c","ts":5000000000000000.0,"dur":5}]}'
    rank_trace = opened(tmp_path / "rank0.json", HEAD + far)
    assert names(rank_trace) == ["a"]
    assert lost(rank_trace)["time_overflow"] == ("dropped", 2, 107)


def test_durations_of_months_are_dropped(tmp_path) -> None:
    """Events longer than 2**52 ns are dropped so that sums fit into 64 bits; a begin/end pair counts as two events."""
    longest_us = 2**52 // 1000
    written = [
        {"ph": "X", "name": "b", "ts": 1, "dur": longest_us},
        {"ph": "X", "name": "c", "ts": 1, "dur": longest_us + 1},
        {"ph": "B", "name": "d", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "E", "name": "d", "pid": 1, "tid": 1, "ts": longest_us + 2},
    ]
    rank_trace = opened(tmp_path / "rank0.json", json.dumps({"traceEvents": written}).encode())
    assert names(rank_trace) == ["b"]
    assert lost(rank_trace)["time_overflow"][:2] == ("dropped", 3)


def test_a_device_that_is_not_a_number_is_unknown(tmp_path) -> None:
    """If the device of an event is a JSON object, it becomes null, and the event's extra args contain the object."""
    kernel = (
        b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":4,"dur":5,"args":{"device":{"a":1},"stream":7}}]}'
    )
    rank_trace = opened(tmp_path / "rank0.json", HEAD + kernel)
    assert rank_trace.table("events", ["device"])["device"].to_list() == [None, 0]
    assert json.loads(rank_trace.table("extra_args")["json"][0]) == {"device": {"a": 1}}


def test_tables_that_do_not_fit_memory_are_a_clear_error(tmp_path, monkeypatch) -> None:
    """If no cache is used and the tables do not fit into memory, an UnreadableTraceError gives the reader's reason."""
    monkeypatch.setattr(kineto._native, "read_trace", failing)
    with pytest.raises(UnreadableTraceError, match="too many"):
        _ = opened(tmp_path / "rank0.json", job("a")).health


def failing(*_: object) -> None:
    """Raise the error that the reader raises when it cannot write a table."""
    message = "too many events"
    raise kineto._native.SinkError(message)


PEAK = """
import json, resource, sys
from holotrace import _native
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read = _native.read_trace(sys.argv[1], sys.argv[2], int(sys.argv[3]))
findings = json.loads(read["health"])["findings"]
print(json.dumps([(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10, findings]))
"""


def memory_of_reading(path: Path, folder: Path, threads: int) -> tuple[int, list[dict[str, object]]]:
    """Return the bytes of memory that reading a file takes, and the findings."""
    folder.mkdir()
    command = [sys.executable, "-c", PEAK, str(path), str(folder), str(threads)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    finished = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=300)  # noqa: S603
    peak, findings = json.loads(finished.stdout)
    return peak, findings


@pytest.mark.parametrize("threads", slow_except([1, 16], [16]))
def test_a_hole_in_a_file_takes_little_memory(tmp_path, threads) -> None:
    """A trace with 1 GiB of zeros in the middle is read in less than 500 MiB; a finding reports the zeros."""
    path = tmp_path / "rank0.json"
    with path.open("wb") as file:
        file.write(HEAD)
        file.truncate(1 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b'{"ph":"X","name":"b","ts":1,"dur":1}]}')
    peak, findings = memory_of_reading(path, tmp_path / "tables", threads)
    assert peak < MEMORY_LIMIT
    assert [finding["kind"] for finding in findings] == ["zero_bytes"]
    assert findings[0]["bytes_lost"] == (1 << 30) - len(HEAD)


ENDLESS = [b'{"ph":"X","name":"x', b'{"ph":"X","ts":1', b'{"ph":"X","args":{"a":[1,', b" "]


@pytest.mark.parametrize("piece", slow_except(ENDLESS, ENDLESS[:1]))
def test_a_huge_value_takes_little_memory(tmp_path, piece) -> None:
    """Reading a name, a number, a list or a run of spaces that is 100 MiB long takes less than 500 MiB of memory."""
    letter = {b"x": b"x", b",": b"1,", b" ": b" "}.get(piece[-1:], b"1")
    path = tmp_path / "rank0.json"
    path.write_bytes(HEAD + piece + letter * ((100 << 20) // len(letter)) + b'{"ph":"X","name":"b","ts":1,"dur":1}]}')
    peak, findings = memory_of_reading(path, tmp_path / "tables", 16)
    assert peak < MEMORY_LIMIT
    least = 0 if piece == b" " else 50 << 20  # commas between elements do not count as lost bytes
    assert sum(finding["bytes_lost"] for finding in findings) >= least  # type: ignore[misc]


READING = """
import sys
from holotrace import _native
print("begun", flush=True)
_native.read_trace(sys.argv[1], None, 1)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_reader(tmp_path, number) -> None:
    """SIGINT and SIGTERM stop the reader even while it waits for data from a pipe."""
    path = tmp_path / "rank0.json"
    os.mkfifo(path)
    started = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", READING, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with started as process, path.open("wb") as writer:
        writer.write(HEAD)
        writer.flush()
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)
        assert process.wait(timeout=30) != 0


@pytest.mark.slow
def test_a_very_long_name_is_shortened_for_display(tmp_path) -> None:
    """Even with a kernel name of 4 MB, the summary is smaller than 500 kB, and the report is smaller than 12 MiB."""
    TraceBuilder().kernel("k" * (4 << 20), start_us=0, duration_us=5, launch_us=-1).write(tmp_path / "job")
    environment = {
        **os.environ,
        "HOLOTRACE_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    report = tmp_path / "report.html"
    for arguments in (["summary"], ["report", "-o", str(report)]):
        command = [sys.executable, "-m", "holotrace", arguments[0], str(tmp_path / "job"), *arguments[1:]]
        finished = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=300)  # noqa: S603
        assert len(finished.stdout) < 500_000
    assert report.stat().st_size < 12 << 20
