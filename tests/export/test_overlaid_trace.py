"""`write_overlaid_trace` copies a trace and marks the events of kernel sequences in the copy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holotrace import open_trace
from holotrace.errors import InvalidOptionError
from holotrace.export.overlaid_trace import MARK, free_overlaid_path, overlaid_name, write_overlaid_trace
from holotrace.testing.builder import TraceBuilder

FREQUENT, RARE = {"op|a|b|c": 2}, {"op|c|c|c": 1}


@pytest.fixture
def source(tmp_path) -> Path:
    """Write a trace in which `op` launches a, b, c twice and c, c, c once, and `other` launches nothing."""
    builder = TraceBuilder().operator("other", start_us=0, duration_us=10, args={"Sequence number": 5})
    for begin, kernels in ((100, "abc"), (200, "ccc"), (300, "abc")):
        builder.operator("op", start_us=begin, duration_us=10, args={"External id": begin})
        for index, kernel in enumerate(kernels):
            builder.kernel(kernel, start_us=begin + 20 + 3 * index, duration_us=2, launch_us=begin + index)
    return builder.write(tmp_path / "job")[0]


def copied(source, target, **options):
    """Write the copy; return its events with a duration."""
    write_overlaid_trace(open_trace(source, cache=False).ranks[0], target, **options)
    return [event for event in json.loads(target.read_text())["traceEvents"] if event["ph"] == "X"]


def test_calls_launches_and_kernels_are_marked(source, tmp_path) -> None:
    """The copy marks the seven events of each `op` call; everything else is unchanged."""
    rows = copied(source, tmp_path / "copy.json", compress_others=False)

    before = [event for event in json.loads(source.read_text())["traceEvents"] if event["ph"] == "X"]
    marks = [event["args"].pop(MARK, None) for event in rows]
    assert marks == [None, *7 * [FREQUENT], *7 * [RARE], *7 * [FREQUENT]]
    assert rows == before


def test_long_sequences_are_marked_with_their_beginning(tmp_path) -> None:
    """Labels are shortened, because labels with thousands of kernel names would fill the disk."""
    builder = TraceBuilder().operator("op", start_us=0, duration_us=10)
    for index in range(3):
        builder.kernel("k" * 600, start_us=20 + index, duration_us=1, launch_us=index)
    (source,) = builder.write(tmp_path / "job")

    (label,) = copied(source, tmp_path / "copy.json")[0]["args"][MARK]

    assert label == f"op|{'k' * 600}|{'k' * 396} ... (sequence 1, 3 kernels)"


def test_only_the_most_frequent_are_marked_and_others_shortened(source, tmp_path) -> None:
    """With `top_count=1`, numbers replace names of unmarked events; the profiler span's args map numbers to names."""
    rows = copied(source, tmp_path / "copy.json", top_count=1)

    *rows, span = rows
    unmarked = [event for event in rows if MARK not in event["args"]]
    assert [event["args"] for event in unmarked] == 8 * [{}]
    assert span["name"] == "PyTorch Profiler"
    assert [span["args"][event["name"]] for event in unmarked] == ["other", "op", *3 * ["cudaLaunchKernel", "c"]]
    assert [event["name"] for event in rows if MARK in event["args"]][:3] == ["op", "cudaLaunchKernel", "a"]


def test_a_span_of_the_profiler_explains_the_numbers(tmp_path) -> None:
    """The copy has numbers instead of event names; the args of the file's profiler span map the numbers to names."""
    builder = TraceBuilder().operator("other", start_us=0, duration_us=10)
    builder.event(ph="X", cat="Trace", name="PyTorch Profiler (0)", pid="Spans", tid="PyTorch Profiler", ts=0, dur=50)
    (source,) = builder.write(tmp_path / "job")

    rows = copied(source, tmp_path / "copy.json")

    assert [event["name"] for event in rows if event["pid"] == "Spans"] == ["PyTorch Profiler (0)"]
    assert rows[1]["args"][rows[0]["name"]] == "other"


def test_a_copy_is_skipped_when_the_folder_is_opened(source) -> None:
    """When the folder is opened, the copy is skipped instead of being read as a rank."""
    target = free_overlaid_path(str(source), source.parent)
    copied(source, target)

    trace = open_trace(source.parent, cache=False)
    assert list(trace.ranks) == [0]
    assert [Path(skipped.path).name for skipped in trace.skipped] == [target.name]


def test_copies_get_unused_names(tmp_path) -> None:
    """If a copy already exists, the next copy gets a number; a zstd file is copied to a gzip file."""
    assert free_overlaid_path("a/rank0.json.gz", tmp_path) == tmp_path / "overlaid_rank0.json.gz"
    (tmp_path / "overlaid_rank0.json.gz").touch()
    assert free_overlaid_path("a/rank0.json.gz", tmp_path) == tmp_path / "overlaid_2_rank0.json.gz"
    assert overlaid_name("rank0.json.zst") == "overlaid_rank0.json.gz"


def test_nothing_is_overwritten_unless_requested(source, tmp_path) -> None:
    """An existing target is kept, and an error is raised; `overwrite=True` replaces the target."""
    target = tmp_path / "copy.json"
    target.write_text("mine")
    with pytest.raises(InvalidOptionError, match="already exists"):
        copied(source, target)
    assert target.read_text() == "mine"
    assert copied(source, target, overwrite=True)


def test_a_missing_folder_is_an_error(tmp_path) -> None:
    """A target in a missing folder raises an error before any event is read."""
    with pytest.raises(InvalidOptionError, match="is not a folder"):
        free_overlaid_path("rank0.json", tmp_path / "nowhere")
