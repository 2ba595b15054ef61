"""Tests of the critical path figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.critical_path.compute import CriticalPath, critical_path
from holotrace.analyses.critical_path.figure import _CLASSES, plot_critical_path
from holotrace.enrich.critical_path.event_graph import PathClass
from holotrace.testing import small_job
from holotrace.testing.builder import TraceBuilder
from jobs import MARKUP


def paths_of_two_ranks() -> CriticalPath:
    """Return the paths of two ranks; on rank 1, a kernel takes 50 of 100 µs and an operator takes 20 µs."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=20)
    builder.rank(1).step(1, 0, 100).operator("aten::mm", start_us=0, duration_us=20)
    builder.kernel(f"void {MARKUP}<int>()", start_us=40, duration_us=50, launch_us=10, launch_duration_us=10)
    builder.runtime("cudaDeviceSynchronize", start_us=30, duration_us=60, correlation=5)
    return critical_path(builder.build())


def test_bars_are_the_shares_of_each_rank_above_the_path_over_time() -> None:
    """The upper bars show the percentage of each path class; the lower bars show the segments at their times in µs."""
    figure = plot_critical_path(paths_of_two_ranks())

    bars = {bar.name: list(bar.x) for bar in figure.data if bar.showlegend}
    assert bars == {
        "CPU operator": pytest.approx([100, 20]),
        "host gap": pytest.approx([0, 10]),
        "launch delay": pytest.approx([0, 20]),
        "computation": pytest.approx([0, 50]),
    }
    lanes = {bar.name: (list(bar.base), list(bar.x)) for bar in figure.data if not bar.showlegend}
    assert lanes["computation"] == ([40], [50])
    assert lanes["launch delay"] == ([20], [20])
    assert figure.layout.annotations[-1].text == "Rank 1, ProfilerStep#1: the path over time"
    assert figure.layout.xaxis2.title.text == "time (µs)"


def test_names_are_text_and_never_markup() -> None:
    """A kernel named `<script>` appears escaped in the hover texts."""
    hovers = [text for bar in plot_critical_path(paths_of_two_ranks()).data for text in bar.customdata]
    assert not any("<script>" in text for text in hovers)
    assert any("&lt;script&gt;" in text for text in hovers)


def test_every_class_has_its_name_and_colour() -> None:
    """Each path class has a distinct colour, and the classes are in the order of the enumeration."""
    assert list(_CLASSES) == [path_class.name.lower() for path_class in PathClass]
    assert len({color for _, color in _CLASSES.values()}) == len(PathClass)


def test_a_path_without_length_says_so() -> None:
    """For a path of 0 µs, the figure shows a message instead of axes."""
    result = critical_path(TraceBuilder().operator("aten::mm", start_us=0, duration_us=0).build())
    assert plot_critical_path(result).layout.annotations[0].text == "No rank recorded an event with a nonzero duration."


def test_the_path_through_all_ranks_has_a_bar_and_a_lane_for_each_rank_on_it() -> None:
    """The bars sum to 100 %, and the lanes cover the step."""
    result = critical_path(small_job(), across_ranks=True)
    figure = plot_critical_path(result)
    bars = [trace for trace in figure.data if trace.base is None]
    lanes = [trace for trace in figure.data if trace.base is not None]
    assert sum(sum(value or 0 for value in bar.x) for bar in bars) == pytest.approx(100)
    assert {name for lane in lanes for name in lane.y} == {"rank 0", "rank 1"}
    assert sum(sum(lane.x) for lane in lanes) == pytest.approx(1)
