"""The ranks of a job are merged into one file, on one clock."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from holotrace import open_trace
from holotrace.errors import InvalidOptionError, UnreadableTraceError
from holotrace.export.merged.merged_trace import MERGED_NAME, MergedTrace, clock_lines, write_merged_trace
from holotrace.testing import write_job
from holotrace.testing.builder import TraceBuilder

RANKS, HOSTS = 4, 2


def nanoseconds(microseconds: float) -> int:
    """Convert a time in the file, which is in µs, to whole nanoseconds."""
    return round(1_000 * microseconds)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Write a job of two hosts with clocks up to 50 ms apart; return its folder."""
    folder = tmp_path_factory.mktemp("job")
    write_job(folder, ranks=RANKS, ranks_per_host=RANKS // HOSTS, steps=3, clock_offset_us=50_000, clock_drift_ppm=100)
    return folder


@pytest.fixture(scope="module")
def merged(folder) -> MergedTrace:
    """Merge the job into one file."""
    return write_merged_trace(open_trace(folder, cache=False), folder / MERGED_NAME)


@pytest.fixture(scope="module")
def content(merged) -> dict[str, Any]:
    """Return the content of the merged file."""
    return json.loads(gzip.decompress(merged.path.read_bytes()))


def kernels(content: dict[str, Any]) -> Iterator[tuple[tuple[str, int], int, int, int]]:
    """Yield ((group, number), rank, start, end) for the kernel of each collective on each rank.

    Times are in ns since the file's base time.
    """
    for event in content["traceEvents"]:
        args = event.get("args", {})
        if event.get("cat") == "kernel" and "Seq" in args:
            start = nanoseconds(event["ts"])
            key = (f"{args['Process Group Name']} {args['Process Group Ranks']}", args["Seq"])
            yield key, event["pid"] // 1_000, start, start + nanoseconds(event["dur"])


def test_collectives_of_two_hosts_end_together_within_the_half_width(merged, content) -> None:
    """Recorded ends of a collective differ by up to 50 ms; corrected ends differ by at most the clocks' half-width."""
    (half_width,) = {clock.half_width_ns for clock in merged.clocks.values() if clock.half_width_ns}
    ends = defaultdict(list)
    for key, _, _, end in kernels(content):
        ends[key].append(end)
    apart = [max(times) - min(times) for times in ends.values() if len(times) == RANKS]
    assert len(apart) > 10
    assert max(apart) <= half_width
    assert max(apart) < 5_000  # in the simulation, all ranks leave a collective at the same time


def test_no_rank_leaves_a_collective_before_the_last_one_enters(content) -> None:
    """In the file, no rank leaves a collective before the last rank enters it."""
    by_key = defaultdict(list)
    for key, _, start, end in kernels(content):
        by_key[key].append((start, end))
    assert all(max(start for start, _ in calls) <= min(end for _, end in calls) for calls in by_key.values())


def test_processes_are_named_and_sorted_by_rank(content) -> None:
    """Process names begin with the rank and end with the error of its clock, unless this is the reference clock."""
    names = {
        event["pid"]: event["args"]["name"] for event in content["traceEvents"] if event.get("name") == "process_name"
    }
    assert [names[pid].split(" (")[0] for pid in sorted(names)][:3] == ["rank 0 python 4001", "rank 0 GPU 0", "rank 0"]
    assert "rank 1 GPU 1" in names.values()
    assert any(name.startswith("rank 3 GPU 1 (± ") for name in names.values())
    assert {event["pid"] for event in content["traceEvents"]} == set(names)
    assert all(pid // 1_000 == int(name.split()[1]) for pid, name in names.items())


def test_all_events_are_there_once(folder, content) -> None:
    """The file contains each event with a duration exactly once, for every rank."""
    trace = open_trace(folder, cache=False)
    assert len(trace.ranks) == RANKS
    written = sum(event["ph"] == "X" for event in content["traceEvents"])
    expected = 0
    for file in folder.glob("*.pt.trace.json.gz"):
        expected += sum(event["ph"] == "X" for event in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"])
    assert written == expected


def test_flows_of_ranks_are_apart_and_arrows_join_the_ranks_of_a_collective(content) -> None:
    """Launch ids differ between ranks; arrows between ranks begin and end in kernels and never lead back in time."""
    ends = defaultdict(list)
    for event in content["traceEvents"]:
        if event["ph"] in "sf":
            ends[event["cat"], event["id"]].append(event)
    assert all(len({event["pid"] // 1_000 for event in pair}) == 1 for (cat, _), pair in ends.items() if cat == "ac2g")
    arrows = [pair for (cat, _), pair in ends.items() if cat == "across_ranks"]
    spans = defaultdict(list)
    for _, rank, start, end in kernels(content):
        spans[rank].append((start, end))
    world = sum(len(ranks) == RANKS for ranks in _ranks_by_key(content).values())
    within_hosts = sum(len(ranks) == RANKS // HOSTS for ranks in _ranks_by_key(content).values())
    assert len(arrows) == world * (RANKS - 1) + within_hosts * (RANKS // HOSTS - 1)
    for begin, end in arrows:
        assert (begin["ph"], end["ph"]) == ("s", "f")
        assert begin["pid"] // 1_000 != end["pid"] // 1_000
        assert nanoseconds(begin["ts"]) <= nanoseconds(end["ts"])
        for event in (begin, end):
            time = nanoseconds(event["ts"])
            assert any(first <= time < last for first, last in spans[event["pid"] // 1_000])


def _ranks_by_key(content: dict[str, Any]) -> dict[tuple[str, int], set[int]]:
    ranks = defaultdict(set)
    for key, rank, _, _ in kernels(content):
        ranks[key].add(rank)
    return ranks


def test_the_metadata_say_how_each_clock_was_corrected(merged, content) -> None:
    """For each host, the metadata give the clock's offset, drift and half-widths, and list the ranks."""
    clocks = content["metadata"]["clocks"]
    assert clocks["reference_host"] == "node-00"
    reference, other = clocks["hosts"]
    assert (reference["offset_ns"], reference["half_width_ns"], reference["ranks"]) == (0, 0, [0, 1])
    assert other["ranks"] == [2, 3]
    assert set(other) >= {"offset_ns", "half_width_ns", "drift_ppb", "drift_half_width_ppb", "offset_at_ns"}
    assert next(iter(clock_lines(merged))) == "node-00 (ranks 0-1): reference"
    assert len(list(clock_lines(merged))) == HOSTS


def test_slices_keep_their_nesting(content) -> None:
    """An event that begins within another event of its thread also ends within it."""
    rows = defaultdict(list)
    for event in content["traceEvents"]:
        if event["ph"] == "X" and event.get("cat") == "cpu_op":
            start = nanoseconds(event["ts"])
            rows[event["pid"], event["tid"]].append((start, -start - nanoseconds(event["dur"])))
    for spans in rows.values():
        for (_, before), (start, after) in pairwise(sorted(spans)):
            assert start >= -before or -after <= -before


def test_one_rank_keeps_its_times(tmp_path) -> None:
    """A single rank is the reference, so its times are unchanged and its file has no arrows."""
    (path,) = TraceBuilder().kernel("gemm", start_us=1.5, duration_us=5, launch_us=0).write(tmp_path / "job")
    merged = write_merged_trace(open_trace(path, cache=False), tmp_path / "merged.json")
    events = json.loads(merged.path.read_text())["traceEvents"]
    assert [(event["ts"], event["dur"]) for event in events if event.get("name") == "gemm"] == [(1.5, 5)]
    assert list(clock_lines(merged)) == []


def test_the_file_is_not_a_rank_of_the_job(folder, merged) -> None:
    """Opening its folder skips the merged file; writing the file again without `overwrite` is an error."""
    trace = open_trace(folder, cache=False)
    assert [file.reason for file in trace.skipped if MERGED_NAME in file.path] == [
        "not a profiler trace: several ranks merged into one timeline"
    ]
    with pytest.raises(InvalidOptionError, match="already exists"):
        write_merged_trace(trace, merged.path)


def test_a_file_that_changed_is_an_error_and_leaves_nothing(tmp_path) -> None:
    """If a rank's file no longer matches its tables, nothing is written, and an existing target is kept."""
    builder = TraceBuilder().kernel("gemm", start_us=1.5, duration_us=5)
    (path,) = builder.write(tmp_path / "job")
    trace = open_trace(path, cache=False)
    trace.ranks[0].table("events", ["event_index"])
    target = tmp_path / "merged.json.gz"
    target.write_bytes(b"before")
    path.write_bytes(builder.kernel("relu", start_us=9, duration_us=1).json())
    with pytest.raises(UnreadableTraceError, match="has changed since it was opened"):
        write_merged_trace(trace, target, overwrite=True)
    assert target.read_bytes() == b"before"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["job", "merged.json.gz"]
