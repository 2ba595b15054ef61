"""Tests of copies of traces in which the critical path is marked."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from holotrace import critical_path_graph, open_trace
from holotrace.enrich.critical_path.event_graph import EdgeType
from holotrace.errors import InvalidOptionError
from holotrace.export.critical_path_overlay import overlaid_path_name, write_critical_path_overlay
from holotrace.testing.builder import TraceBuilder


@pytest.fixture
def source(tmp_path) -> Path:
    """Write a trace with mm (0 to 20 µs), a synchronisation, a gap and relu.

    mm launches gemm (30 to 39.5 µs) on stream 7 and a kernel (8 to 9 µs) on stream 8.
    """
    builder = (
        TraceBuilder(base_time_ns=1_000)
        .annotation("part", start_us=0, duration_us=60)
        .operator("aten::mm", start_us=0.001, duration_us=20)
        .kernel("gemm", start_us=30, duration_us=9.5, launch_us=5)
        .kernel("short", start_us=8, duration_us=1, launch_us=6.5, stream=8)
        .runtime("cudaDeviceSynchronize", start_us=25, duration_us=20, correlation=3)
        .operator("aten::relu", start_us=50, duration_us=5)
    )
    builder.event(ph="i", name="mark", ts=5, pid=1, tid=1, s="t")
    return builder.write(tmp_path / "job")[0]


def copied(source: Path, target: Path, **options) -> list[dict]:
    """Write the copy; return its events with times as Decimals."""
    rank_trace = open_trace(source, cache=False).ranks[0]
    write_critical_path_overlay(rank_trace, critical_path_graph(rank_trace, annotation="part"), target, **options)
    return json.loads(target.read_text(), parse_float=Decimal)["traceEvents"]


def names(events: list[dict], **args) -> list[str]:
    """Return the names of the events that have a duration and these args."""
    shown = [event for event in events if event["ph"] == "X"]
    return [event["name"] for event in shown if args.items() <= event["args"].items()]


PATH = ["aten::mm", "cudaLaunchKernel", "gemm", "cudaDeviceSynchronize", "aten::relu"]


def test_by_default_only_the_path_and_annotations_are_shown(source, tmp_path) -> None:
    """The copy keeps the path and its arrows, all annotations and all instant events, and drops everything else."""
    events = copied(source, tmp_path / "copy.json")

    assert names(events) == ["part", *PATH]
    assert names(events, critical=1) == PATH
    assert [event["name"] for event in events if event["ph"] == "i"] == ["mark"]
    assert {event["cat"] for event in events if event["ph"] in "sf"} == {"critical_path"}


def test_all_events_are_unchanged_except_for_the_mark(source, tmp_path) -> None:
    """With `only_critical=False`, the copy keeps every event and arrow; `critical` marks the events of the path."""
    events = copied(source, tmp_path / "copy.json", only_critical=False)

    before = json.loads(source.read_text(), parse_float=Decimal)["traceEvents"]
    for event in events:
        event.get("args", {}).pop("critical", None)
    assert [event for event in events if event.get("cat") != "critical_path"] == before


def test_arrows_lead_from_event_to_event(source, tmp_path) -> None:
    """Arrows lead from the launch, which ends at 6 µs, to gemm, then to the call that waits for it, then to relu."""
    arrows = [event for event in copied(source, tmp_path / "copy.json") if event["ph"] in "sf"]

    pairs = [
        (begin["tid"], begin["ts"], end["tid"], end["ts"]) for begin, end in zip(arrows[::2], arrows[1::2], strict=True)
    ]
    assert sorted(pairs, key=lambda pair: pair[1]) == [
        (1, Decimal("5.999"), 7, 30),
        (7, Decimal("39.499"), 1, Decimal("44.999")),
        (1, Decimal("44.999"), 1, 50),
    ]
    assert [(event["ph"], event["id"]) for event in arrows] == [
        (phase, number) for number in range(3) for phase in "sf"
    ]
    assert {event["args"]["type"] for event in arrows} == {
        "critical_path_kernel_launch_delay",
        "critical_path_sync_dependency",
        "critical_path_dependency",
    }
    assert [event.get("bp") for event in arrows] == [None, "e"] * 3
    assert all(event["args"]["critical"] for event in arrows)


def test_types_of_arrows_can_be_chosen(source, tmp_path) -> None:
    """`arrows=[EdgeType.LAUNCH]` draws only the arrow from the launch to gemm, with its duration of 24 µs."""
    arrows = [e for e in copied(source, tmp_path / "copy.json", arrows=[EdgeType.LAUNCH]) if e["ph"] in "sf"]
    assert [event["args"]["weight"] for event in arrows] == [24, 24]


def test_all_edges_can_be_drawn(source, tmp_path) -> None:
    """With `all_edges=True`, every edge becomes an arrow of two events; most of these edges are not critical."""
    events = copied(source, tmp_path / "copy.json", only_critical=False, all_edges=True)
    arrows = [event for event in events if event.get("cat") == "critical_path"]
    critical = Counter(event["args"]["critical"] for event in arrows)
    assert critical[True] < critical[False]
    assert set(Counter(event["id"] for event in arrows).values()) == {2}


def test_an_arrow_belongs_to_an_event_that_runs_at_its_time(source, tmp_path) -> None:
    """Each end of an arrow is within an event of its thread (begin <= ts < end), so Perfetto attaches it there."""
    events = copied(source, tmp_path / "copy.json", only_critical=False, all_edges=True)
    ranges = [(e["pid"], e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]
    for arrow in (event for event in events if event.get("cat") == "critical_path"):
        thread, time = (arrow["pid"], arrow["tid"]), arrow["ts"]
        assert any(thread == (pid, tid) and begin <= time < end for pid, tid, begin, end in ranges)


def test_nothing_is_overwritten_unless_requested(source, tmp_path) -> None:
    """An existing target is kept, and an error is raised; `overwrite=True` replaces the target."""
    (tmp_path / "copy.json").write_text("mine")
    with pytest.raises(InvalidOptionError, match="already exists"):
        copied(source, tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_text() == "mine"
    assert copied(source, tmp_path / "copy.json", overwrite=True)


def test_copies_have_names_of_hta() -> None:
    """Copies are named as in HTA, with a number from the second copy on; the copy of a zstd file is a gzip file."""
    assert overlaid_path_name("a/rank0.json.gz") == "overlaid_critical_path_rank0.json.gz"
    assert overlaid_path_name("rank0.json.zst", 2) == "overlaid_critical_path_2_rank0.json.gz"
