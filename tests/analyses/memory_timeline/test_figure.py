"""Tests of the memory_timeline figure."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.memory_timeline.compute import MemoryTimeline, memory_timeline
from holotrace.analyses.memory_timeline.figure import MOST_POINTS, plot_memory_timeline
from holotrace.testing.builder import TraceBuilder

GIB = 1 << 30


def result_of(sizes: list[int], reserved: int | None = None) -> MemoryTimeline:
    """Return a made-up result of one device with one event per ms."""
    keys = {"rank": 0, "device_type": "cuda", "device": 0}
    rows = [
        {**keys, "time_ns": 1_000_000 * place, "allocated_bytes": size, "reserved_bytes": reserved}
        for place, size in enumerate(sizes)
    ]
    return MemoryTimeline(pl.DataFrame([{**keys, "peak_bytes": max(sizes)}]), pl.DataFrame(), pl.DataFrame(rows))


def test_each_device_has_a_line() -> None:
    """The line of a device shows GiB over ms."""
    (line,) = plot_memory_timeline(result_of([GIB, 2 * GIB])).data
    assert (line.name, list(line.x), list(line.y)) == ("rank 0 · cuda 0", [0, 1], [1, 2])


def test_reserved_memory_is_a_dotted_line() -> None:
    """Allocated and reserved memory share one entry in the legend."""
    allocated, reserved = plot_memory_timeline(result_of([GIB, 2 * GIB], reserved=3 * GIB)).data
    assert (reserved.line.dash, list(reserved.y)) == ("dot", [3, 3])
    assert (allocated.showlegend, reserved.showlegend) == (True, False)


def test_a_peak_is_drawn_however_many_events_there_are() -> None:
    """Of 20,000 events at most `MOST_POINTS` are drawn, the peak among them."""
    (line,) = plot_memory_timeline(result_of([GIB] * 9_999 + [5 * GIB] + [GIB] * 10_000)).data
    assert len(line.x) <= MOST_POINTS
    assert max(line.y) == 5


def test_without_events_the_figure_says_so() -> None:
    """A trace without memory events gives a figure with a message."""
    figure = plot_memory_timeline(memory_timeline(TraceBuilder().build()))
    assert figure.layout.annotations[0].text == "No memory events were recorded."
