"""Overlays of the timeline show the critical path, findings and the selected span."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holotrace
from holotrace.analyses.critical_path.compute import critical_path
from holotrace.errors import InvalidOptionError
from holotrace.store.trace import Trace
from holotrace.testing import small_job
from holotrace.testing.builder import TraceBuilder
from holotrace.web.timeline.findings import Finding, diagnosis_findings, idle_findings, waiting_findings
from holotrace.web.timeline.index import timeline_index
from holotrace.web.timeline.path import CLASSES, path_answer, path_overlay
from holotrace.web.timeline.query import Window
from holotrace.web.timeline.span import span_answer
from holotrace.web.timeline.waits import longest_waits
from jobs import gpu_job
from timelines import LANES, Event, index_of, two_threads


def test_a_span_counts_only_the_part_inside() -> None:
    """A span from 60 to 120 µs contains 40 µs of the operator and 60 µs of the kernel, but not the earlier launch."""
    index = timeline_index(two_threads().ranks[0])

    assert span_answer(index, [0, 1, 2], 60_000, 120_000) == {"rows": [[0, 40_000, 1], [2, 60_000, 1]]}
    assert span_answer(index, [1], 0, 10)["rows"] == []


def test_annotations_do_not_make_a_stream_busy() -> None:
    """A stream with a kernel of 10 µs and an annotation of 100 µs is busy for 10 µs."""
    trace = (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=10)
        .gpu_annotation("step", start_us=0, duration_us=100)
        .build()
    )
    index = timeline_index(trace.ranks[0])
    stream = next(at for at, row in enumerate(index.rows) if row.device == 0)

    assert span_answer(index, [stream], 0, 100_000)["rows"] == [[stream, 10_000, 2]]


@given(LANES, st.integers(0, 900), st.integers(1, 900))
def test_a_span_against_every_nanosecond(lanes: list[list[Event]], start: int, length: int) -> None:
    """The busy time of a row counts each covered nanosecond once."""
    answer = span_answer(index_of(lanes), [0], start, start + length)
    inside = [
        range(max(first, start), min(last, start + length)) for lane in lanes for first, last in lane if last > first
    ]
    covered = {time_ns for covering in inside for time_ns in covering}

    assert sum(busy for _, busy, _ in answer["rows"]) == len(covered)


def path_of(trace: Trace, window: Window, **options: object) -> dict:
    """Return the critical path of rank 0 as it is drawn."""
    index = timeline_index(trace.ranks[0])
    return path_answer(index, path_overlay(trace.ranks[0], index, **options), window)


def test_the_path_leads_from_row_to_row() -> None:
    """The path leads through the operator, its launch, the operator again, a gap, and an operator on another thread."""
    answer = path_of(two_threads(), Window(0, 400_000, 400))
    steps, lengths, counts, classes, names, _, rows, depths = answer["along"]

    assert (answer["window"], answer["start"], answer["end"], answer["count"]) == ("whole recording", 0, 350_000, 5)
    assert lengths == [10_000, 5_000, 85_000, 200_000, 50_000]
    assert (steps, counts) == ([0] * 5, [1] * 5)
    assert [CLASSES[number] for number in classes] == ["cpu operator"] * 3 + ["host gap", "cpu operator"]
    assert [answer["names"][number] if number >= 0 else None for number in names] == [
        *("aten::mm", "cudaLaunchKernel", "aten::mm"),
        None,
        "MmBackward0",
    ]
    assert list(zip(rows, depths, strict=True)) == [(0, 0), (0, 1), (0, 0), (-1, -1), (1, 0)]
    assert answer["marks"] == [
        [0, 0, [0, 5_000], [10_000, 85_000]],
        [0, 1, [10_000], [5_000]],
        [1, 0, [300_000], [50_000]],
    ]


def test_the_path_of_a_span_ends_where_the_span_does() -> None:
    """Between 60 and 300 µs, the path consists of 40 µs in an operator and a gap of 200 µs on the host."""
    answer = path_of(two_threads(), Window(0, 400_000, 400), span=(60_000, 300_000))

    assert (answer["start"], answer["end"]) == (60_000, 300_000)
    assert dict(answer["classes"]) == {"host gap": 200_000, "cpu operator": 40_000}


def test_the_path_of_a_step() -> None:
    """The path can cover one or two of three steps; requesting step 9 raises an error."""
    trace = TraceBuilder().step(1, 0, 10).step(2, 10, 10).step(3, 20, 10).build()

    assert path_of(trace, Window(0, 40_000, 40), steps=(1, 1))["window"] == "ProfilerStep#1"
    assert path_of(trace, Window(0, 40_000, 40), steps=(1, 2))["end"] == 20_000
    with pytest.raises(InvalidOptionError, match="no step 9"):
        path_of(trace, Window(0, 40_000, 40), steps=(9, 9))


def test_the_path_equals_that_of_the_analysis() -> None:
    """The times equal those of `holotrace.critical_path`; when zoomed out, each merged segment still counts."""
    trace = gpu_job().build()
    near, far = (path_of(trace, Window(0, 200_000, pixels)) for pixels in (2_000, 1))
    table = critical_path(trace).per_class.filter(pl.col("rank") == 0)
    expected = {name.replace("_", " "): ns for name, ns in table.select("path_class", "total_ns").iter_rows() if ns}

    assert dict(near["classes"]) == dict(far["classes"]) == expected
    assert sum(far["along"][2]) == sum(near["along"][2]) == near["count"]
    assert len(far["along"][0]) < near["count"]


def test_an_idle_gap_says_when_the_next_work_is_launched() -> None:
    """The finding on an idle gap of 40 µs says that the next work is launched 20 µs into the gap; rank 1 has no gap."""
    trace = gpu_job().build()

    assert list(idle_findings(trace.ranks[0])) == [
        Finding("idle", "GPU 0 is idle for 40 µs; the next work is launched 20 µs into the gap", 60_000, 100_000)
    ]
    assert list(idle_findings(trace.ranks[1])) == []
    assert list(idle_findings(TraceBuilder().build().ranks[0])) == []


def test_work_that_was_launched_before_the_gap() -> None:
    """The finding on an idle gap of 50 µs says that the next kernel was launched before the gap."""
    trace = (
        TraceBuilder()
        .kernel("one", start_us=0, duration_us=10)
        .kernel("two", start_us=60, duration_us=10, launch_us=5)
        .build()
    )
    [finding] = idle_findings(trace.ranks[0])

    assert finding.text == "GPU 0 is idle for 50 µs, although the next work was already launched"


def collectives() -> Trace:
    """Return two all-reduces; rank 1 enters the first 60 µs after rank 0, and the second together with rank 0."""
    builder = TraceBuilder()
    for rank, start in ((0, 0), (1, 60)):
        builder.collective("allreduce", start_us=start, duration_us=100 - start, rank=rank)
        builder.collective("allreduce", start_us=200, duration_us=50, rank=rank)
    return builder.build()


def test_a_wait_names_the_last_rank() -> None:
    """One finding says that rank 0 waits 60 µs for rank 1, and another that rank 1 is the last to enter."""
    waits = longest_waits(collectives(), shortest_ns=30_000, most=20)

    assert list(waiting_findings(0, waits)) == [
        Finding("waiting", "waits 60 µs for rank 1 in all_reduce", 0, 60_000, 0)
    ]
    assert list(waiting_findings(1, waits)) == [
        Finding("waiting", "enters all_reduce last: others wait up to 60 µs", 60_000, 60_000, 0)
    ]


def test_a_finding_leads_to_its_first_event() -> None:
    """The finding about the late rank points to the first collective in which other ranks wait for it."""
    known = holotrace.diagnosis(small_job())

    [finding] = diagnosis_findings(1, known)
    assert finding.event_index == known.per_finding.filter(rank=1)["event_index"][0]
    assert finding.start_ns == finding.end_ns == known.per_finding.filter(rank=1)["at_ns"][0]
    assert "200 µs of each step (20.0 %): rank 1 is late" in finding.text
    assert all("late" not in other.text for other in diagnosis_findings(0, known))
