"""Tests of the memory_timeline figure."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.memory_timeline.compute import MemoryTimeline, memory_timeline
from holotrace.analyses.memory_timeline.figure import MOST_POINTS, plot_memory_timeline
from holotrace.testing.builder import TraceBuilder

GIB = 1 << 30


def result_of(sizes: list[int], reserved: int | None = None) -> MemoryTimeline:
    """Return a result with one device and one event per ms."""
    keys = {"rank": 0, "device_type": "cuda", "device": 0}
    rows = [
        {**keys, "time_ns": 1_000_000 * place, "allocated_bytes": size, "reserved_bytes": reserved}
        for place, size in enumerate(sizes)
    ]
    return MemoryTimeline(pl.DataFrame([{**keys, "peak_bytes": max(sizes)}]), pl.DataFrame(), pl.DataFrame(rows))


def test_each_device_has_a_line() -> None:
    """The line shows GiB over ms, with a dot at the peak."""
    line, peak = plot_memory_timeline(result_of([GIB, 2 * GIB])).data
    assert (list(peak.x), list(peak.y)) == ([1], [2])
    assert (line.name, list(line.x), list(line.y)) == ("rank 0 · cuda 0", [0, 1], [1, 2])


def test_reserved_memory_is_a_dotted_line() -> None:
    """Reserved memory is a dotted line; the lines of reserved and allocated memory share one entry in the legend."""
    allocated, reserved, _ = plot_memory_timeline(result_of([GIB, 2 * GIB], reserved=3 * GIB)).data
    assert (reserved.line.dash, list(reserved.y)) == ("dot", [3, 3])
    assert (allocated.showlegend, reserved.showlegend) == (True, False)


def test_a_peak_is_drawn_however_many_events_there_are() -> None:
    """Of 20,000 events, at most `MOST_POINTS` are drawn, always including the peak."""
    line, _ = plot_memory_timeline(result_of([GIB] * 9_999 + [5 * GIB] + [GIB] * 10_000)).data
    assert len(line.x) <= MOST_POINTS
    assert max(line.y) == 5


def test_devices_come_before_hosts_each_in_a_fitting_unit() -> None:
    """The panel of the GPU, in GiB, is above the panel of the CPU, in MiB; each has a label at its peak."""
    gpu, cpu = result_of([GIB, 2 * GIB]), result_of([1 << 20, 3 << 20])
    host = [frame.with_columns(device_type=pl.lit("cpu"), device=pl.lit(-1)) for frame in (cpu.per_device, cpu.series)]
    both = MemoryTimeline(
        pl.concat([host[0], gpu.per_device], how="diagonal_relaxed"),
        pl.DataFrame(),
        pl.concat([host[1], gpu.series], how="diagonal_relaxed"),
    )
    figure = plot_memory_timeline(both)
    assert [line.name for line in figure.data if line.mode == "lines"] == ["rank 0 · cuda 0", "rank 0 · cpu"]
    assert (figure.layout.yaxis.title.text, figure.layout.yaxis2.title.text) == ("memory (GiB)", "memory (MiB)")
    assert [note.text for note in figure.layout.annotations] == ["peak 2 GiB", "peak 3 MiB"]


def test_without_events_the_figure_says_so() -> None:
    """Without memory events, the figure shows a message."""
    figure = plot_memory_timeline(memory_timeline(TraceBuilder().build()))
    assert figure.layout.annotations[0].text == "No memory events were recorded."
