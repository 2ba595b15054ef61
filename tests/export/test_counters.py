"""Copies of traces can have counters of queue length and copy bandwidth."""

from __future__ import annotations

import gzip
import json

import pytest

from holotrace import open_trace
from holotrace.errors import InvalidOptionError
from holotrace.export.counters import TimeSeriesTypes, counter_events
from holotrace.export.trace_with_counters import write_traces_with_counters
from holotrace.testing.builder import TraceBuilder

QUEUE = {"ph": "C", "name": "Queue Length", "id": 7, "pid": 0, "tid": 0}


def job(base_time_ns: int = 0) -> TraceBuilder:
    """Return a job: a kernel launched at 1.5 µs starts at 10 µs; a copy at 0.25 GB/s runs from 20 to 30.001 µs."""
    return (
        TraceBuilder(base_time_ns=base_time_ns)
        .kernel("gemm", start_us=10, duration_us=5, launch_us=1.5)
        .copy("Memcpy HtoD", start_us=20, duration_us=10.001, args={"memory bandwidth (GB/s)": 0.25})
    )


def counters(builder: TraceBuilder, *kinds: TimeSeriesTypes) -> list[dict]:
    """Return the counter events of rank 0."""
    return [json.loads(text) for text in counter_events(builder.build().ranks[0], *kinds)]


@pytest.mark.parametrize("base_time_ns", [0, 1_725_000_000_000_000_000])
def test_counters_are_written_in_the_time_of_the_file(base_time_ns) -> None:
    """Counter times are microseconds from the file's base time, and each counter is in the device's process."""
    assert counters(job(base_time_ns)) == [
        {**QUEUE, "ts": 1.5, "args": {"Queue Length": 1}},
        {**QUEUE, "ts": 10, "args": {"Queue Length": 0}},
        {"ph": "C", "name": "Memcpy HtoD", "pid": 0, "tid": 0, "ts": 20, "args": {"Memcpy BW": 0.25}},
        {"ph": "C", "name": "Memcpy HtoD", "pid": 0, "tid": 0, "ts": 30.001, "args": {"Memcpy BW": 0}},
    ]


def test_one_of_the_counters_can_be_chosen() -> None:
    """`TimeSeriesTypes`, as in HTA, selects the queue length or the copy bandwidth."""
    assert {event["name"] for event in counters(job(), TimeSeriesTypes.QUEUE_LENGTH)} == {"Queue Length"}
    assert {event["name"] for event in counters(job(), TimeSeriesTypes.MEMCPY_BANDWIDTH)} == {"Memcpy HtoD"}


def test_of_simultaneous_changes_the_last_is_written() -> None:
    """One launch of two kernels raises the queue length to 1 and to 2 at the same time; only the value 2 is written."""
    builder = TraceBuilder().runtime("cudaGraphLaunch", start_us=0, duration_us=5, correlation=9)
    for start in (10, 20):
        builder.kernel("k", start_us=start, duration_us=1, correlation=9)
    assert [(event["ts"], event["args"]["Queue Length"]) for event in counters(builder)] == [(0, 2), (10, 1), (20, 0)]


def test_times_before_the_base_and_times_since_1970_are_exact() -> None:
    """Times at or before the base time, such as 0 and -0.250 µs, are exact to the nanosecond."""
    late = TraceBuilder().kernel("k", start_us=1, duration_us=1, launch_us=0).build().ranks[0]
    assert '"ts":0,' in next(counter_events(late))
    early = TraceBuilder().kernel("k", start_us=1, duration_us=1, launch_us=-0.25).build().ranks[0]
    assert '"ts":-0.250,' in next(counter_events(early))


def test_without_device_work_there_are_no_counters() -> None:
    """For a trace without device work, the list of counters is empty."""
    assert counters(TraceBuilder().operator("aten::mm", start_us=0, duration_us=1)) == []


def test_copies_are_beside_the_files_and_skipped_when_the_folder_is_opened(tmp_path) -> None:
    """The copy has the four counter values, and is skipped when the folder is opened."""
    (path,) = job().write(tmp_path)
    trace = open_trace(tmp_path, cache=False)

    (copy,) = write_traces_with_counters(trace).values()

    assert copy.name == path.name.replace(".json", "_with_counters.json")
    again = open_trace(tmp_path, cache=False)
    assert ([rank_trace.source for rank_trace in again.ranks.values()], len(again.skipped)) == ([str(path)], 1)
    (rank_trace,) = open_trace({0: copy}, cache=False).ranks.values()
    assert rank_trace.table("counters")["value"].to_list() == [1.0, 0.0, 0.25, 0.0]
    assert rank_trace.health.is_clean


def test_copies_go_to_any_folder_and_keep_their_compression(tmp_path) -> None:
    """The copy of a .json.gz file is a .json.gz file in the chosen folder, with the chosen suffix in its name."""
    (path,) = job().write(tmp_path / "job")
    packed = tmp_path / "job" / "rank0.pt.trace.json.gz"
    packed.write_bytes(
        gzip.compress(path.read_bytes() if path.suffix == ".json" else gzip.decompress(path.read_bytes()))
    )
    (tmp_path / "out").mkdir()
    written = write_traces_with_counters(open_trace({0: packed}, cache=False), tmp_path / "out", suffix="_more")
    assert written == {0: tmp_path / "out" / "rank0.pt.trace_more.json.gz"}
    assert len(json.loads(gzip.decompress(written[0].read_bytes()))["traceEvents"]) > 4


def test_nothing_is_written_if_one_copy_cannot_be(tmp_path) -> None:
    """If one of two copies exists already, neither is written; `overwrite=True` writes both."""
    paths = job().rank(1).kernel("gemm", start_us=0, duration_us=5).write(tmp_path / "job")
    trace = open_trace(tmp_path / "job", cache=False)
    written = write_traces_with_counters(trace)
    written[0].unlink()
    with pytest.raises(InvalidOptionError, match="already exists"):
        write_traces_with_counters(trace)
    assert sorted(tmp_path.joinpath("job").iterdir()) == sorted([*paths, written[1]])
    assert write_traces_with_counters(trace, overwrite=True) == written


@pytest.mark.parametrize("suffix", ["", "a/b", "/"])
def test_a_suffix_is_part_of_a_name(tmp_path, suffix) -> None:
    """An empty suffix, or one with a slash, raises an error, so a copy never replaces its original."""
    with pytest.raises(InvalidOptionError, match="suffix="):
        write_traces_with_counters(job().build(), tmp_path, suffix=suffix)


def test_two_ranks_with_files_of_the_same_name_do_not_overwrite_each_other(tmp_path) -> None:
    """Files with the same name in two folders are refused, because their copies would have the same path."""
    first, second = (job().write(tmp_path / name)[0] for name in ("a", "b"))
    with pytest.raises(InvalidOptionError, match="ranks 0 and 1 would both be written"):
        write_traces_with_counters(open_trace({0: first, 1: second}, cache=False), tmp_path)
