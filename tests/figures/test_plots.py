"""The figures hold the numbers of their results."""

from __future__ import annotations

import json

import plotly.io
import polars as pl
import pytest

from holotrace import figures
from holotrace.analyses.communication_overlap.compute import CommunicationOverlap, communication_overlap
from holotrace.analyses.communication_overlap.figure import plot_communication_overlap
from holotrace.analyses.idle_time.compute import idle_time
from holotrace.analyses.idle_time.figure import plot_idle_time
from holotrace.analyses.kernel_breakdown.compute import kernel_breakdown
from holotrace.analyses.kernel_breakdown.figure import plot_kernel_breakdown
from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.analyses.memory_bandwidth.figure import plot_memory_bandwidth
from holotrace.analyses.queue_length.compute import queue_length
from holotrace.analyses.queue_length.figure import plot_queue_length
from holotrace.analyses.temporal_breakdown.compute import temporal_breakdown
from holotrace.analyses.temporal_breakdown.figure import plot_temporal_breakdown
from holotrace.catalogue import ANALYSES
from holotrace.question import Analysis
from holotrace.testing.builder import TraceBuilder
from holotrace.units import percent_text
from jobs import MARKUP, gpu_job, temporal_of_many


def test_temporal_breakdown_shows_the_shares_of_each_device() -> None:
    """Rank 0 of 110 µs: 50 computing, 20 only communicating, 40 idle; rank 1 computes throughout."""
    figure = plot_temporal_breakdown(temporal_breakdown(gpu_job().build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {
        "computing": pytest.approx([100 * 50 / 110, 100]),
        "other work only": pytest.approx([100 * 20 / 110, 0]),
        "idle": pytest.approx([100 * 40 / 110, 0]),
    }
    assert list(figure.data[0].y) == ["rank 0", "rank 1"]


def test_temporal_breakdown_hovers_are_exact() -> None:
    """The share, the time for reading, and the nanoseconds."""
    figure = plot_temporal_breakdown(temporal_breakdown(gpu_job().build()))
    assert figure.data[2].customdata[0] == "36.4 % · 40 µs (40,000 ns)"


def test_communication_overlap_splits_the_time_into_hidden_and_exposed() -> None:
    """All-reduce 20..60, gemm until 40: 20 µs hidden, 20 µs exposed; rank 1 has a bar of no length."""
    figure = plot_communication_overlap(communication_overlap(gpu_job().build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {"hidden": [20, 0], "exposed": [20, 0]}
    assert figure.layout.xaxis.title.text == "communication time (µs)"
    assert list(figure.data[1].text) == ["50.0 % hidden", f"{percent_text(None)} hidden"]


def test_idle_time_shows_what_each_device_waited_for() -> None:
    """Idle 60..100, launched at 80: 20 µs for the host, 20 µs for the kernel's start."""
    figure = plot_idle_time(idle_time(gpu_job().build()))
    assert {bar.name: bar.x[0] for bar in figure.data} == {
        "the host": 20,
        "the kernel's start": 20,
        "something else": 0,
    }
    assert figure.data[0].customdata[0] == "50.0 % · 20 µs (20,000 ns) in 1 gap"


def test_idle_time_by_stream_can_show_shares() -> None:
    """Stream 7 of rank 0 idles 40..100, launched at 80: two thirds for the host."""
    figure = plot_idle_time(idle_time(gpu_job().build()), by="stream", as_share=True)
    row = list(figure.data[0].y).index("rank 0 · stream 7")
    assert figure.data[0].x[row] == pytest.approx(100 * 40 / 60)


def test_queue_length_shows_how_long_work_waits() -> None:
    """Launched at 0, one begins at 5 and one at 10; the third waits from 15 to 20: empty for 5 of 20 µs."""
    builder = TraceBuilder()
    for launch, start in ((0, 5), (0, 10), (15, 20)):
        builder.kernel("k", start_us=start, duration_us=1, launch_us=launch)
    figure = plot_queue_length(queue_length(builder.build(), full_length=2))
    assert {bar.name: bar.x[0] for bar in figure.data} == {
        "nothing waits": 25,
        "work waits": 50,
        "the queue is full": 25,
    }
    assert figure.data[2].customdata[0] == "25.0 % · 5 µs (5,000 ns); 1.00 wait on average, 2 at most"


def test_memory_bandwidth_shows_the_bytes_of_each_kind_of_copy() -> None:
    """Rank 0 copies 2 KiB at 2 GB/s and sets 1 KiB; rank 1 sets 1 KiB."""
    builder = TraceBuilder()
    given = {"memory bandwidth (GB/s)": 2}
    builder.copy("Memcpy HtoD", byte_count=2_048, start_us=0, duration_us=1.024, args=given)
    for rank in (0, 1):
        builder.rank(rank).memset(byte_count=1_024, start_us=5, duration_us=1, args=given)
    figure = plot_memory_bandwidth(memory_bandwidth(builder.build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {"Memcpy HtoD": [2, 0], "Memset": [1, 1]}
    assert figure.layout.xaxis.title.text == "bytes moved (KiB)"
    assert list(figure.data[0].customdata) == [
        "2 KiB in 1 copy, 1.02 µs (1,024 ns); 2 GB/s on average, 2 GB/s at most",
        "none",
    ]


def test_kernel_breakdown_shows_states_and_kernels() -> None:
    """Disjoint states fill the busy time; kernels are summed over ranks, the longest first."""
    figure = plot_kernel_breakdown(kernel_breakdown(gpu_job().build()))
    states = {bar.name: list(bar.x) for bar in figure.data if bar.xaxis == "x"}
    assert states == {
        "computation": pytest.approx([100 * 30 / 70, 100]),
        "communication": pytest.approx([100 * 20 / 70, 0]),
        "computation + communication": pytest.approx([100 * 20 / 70, 0]),
    }
    kernels = [
        (key, value) for bar in figure.data if bar.xaxis == "x2" for key, value in zip(bar.y, bar.x, strict=True)
    ]
    assert sorted(kernels) == [("0", 140_000), ("1", 40_000), ("2", 10_000)]


def test_kernels_that_look_alike_keep_their_own_bars_and_labels() -> None:
    """Instances of a template whose beginnings are equal show in which argument they differ."""
    names = [f"void at::f<{'x' * 200}, {number}>(int)" for number in range(3)]
    builder = TraceBuilder()
    for number, name in enumerate(names):
        builder.kernel(name, start_us=10 * number, duration_us=5)
    figure = plot_kernel_breakdown(kernel_breakdown(builder.build()))
    axis = figure.layout.yaxis2
    assert axis.ticktext == ("f&lt;…0…&gt;", "f&lt;…1…&gt;", "f&lt;…2…&gt;")
    assert len(set(axis.tickvals)) == len(figure.data[-1].y) == 3


def test_kernel_breakdown_says_how_many_kernels_it_leaves_out() -> None:
    """Of 20 kernels, 15 are drawn, and the share of the rest is told."""
    builder = TraceBuilder()
    for number in range(20):
        builder.kernel(f"k{number}", start_us=10 * number, duration_us=5)
    figure = plot_kernel_breakdown(kernel_breakdown(builder.build()))
    assert [each.text for each in figure.layout.annotations] == [
        "The 15 kernels that take the most time, over all calls and ranks; the other 5 take 25.0 %"
    ]


def test_names_from_a_trace_are_never_markup() -> None:
    """`<script>` in a kernel's name appears as these eight letters, on the axis and in the hover."""
    text = plotly.io.to_json(plot_kernel_breakdown(kernel_breakdown(gpu_job().build())))
    strings = json.dumps(json.loads(text), ensure_ascii=False)
    assert "<script" not in strings
    assert "<b>bold" not in strings
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;b&gt;bold&lt;/b&gt; &#36;x&#36;" in strings
    assert MARKUP not in strings


@pytest.mark.parametrize(("ranks", "devices"), [(1, 1), (8, 1), (16, 8), (128, 1), (4_096, 1)])
def test_figures_work_from_one_rank_to_thousands(ranks: int, devices: int) -> None:
    """Every device has its bar, and the figure stays as high as a page."""
    figure = plot_temporal_breakdown(temporal_of_many(ranks, devices))
    keys = figure.data[0].y if figure.data[0].orientation == "h" else figure.data[0].x
    assert len(set(keys)) == ranks * devices
    assert figure.layout.height <= 700


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_figures_have_a_light_and_a_dark_form(analysis: Analysis) -> None:
    """The theme changes the background and nothing of the data."""
    result = analysis.compute(gpu_job().build())
    light, dark = figures.figure_of(analysis.name, result), figures.figure_of(analysis.name, result, theme="dark")
    assert light.layout.template.layout.paper_bgcolor != dark.layout.template.layout.paper_bgcolor
    assert json.loads(light.to_json())["data"] == json.loads(dark.to_json())["data"]


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_the_title_of_a_figure_is_the_question(analysis: Analysis) -> None:
    """A reader knows what a figure answers before reading it."""
    assert figures.figure_of(analysis.name, analysis.compute(gpu_job().build())).layout.title.text == analysis.question


def test_no_communication_is_said_and_not_drawn() -> None:
    """Empty axes would look like a failure."""
    table = pl.DataFrame(
        {"rank": [0], "communication_ns": [0], "overlap_ns": [0], "exposed_ns": [0], "overlap_fraction": [None]}
    )
    figure = plot_communication_overlap(CommunicationOverlap(table))
    assert figure.layout.annotations[0].text == "No rank communicates."


def test_no_idle_time_is_said_and_not_drawn() -> None:
    """A single kernel leaves no gap."""
    result = idle_time(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build())
    assert plot_idle_time(result).layout.annotations[0].text.startswith("No device is idle")


def test_an_unknown_figure_is_an_attribute_error() -> None:
    """The lazy package behaves like any other."""
    with pytest.raises(AttributeError, match="plot_nothing"):
        figures.plot_nothing  # noqa: B018
