"""Tests of properties that all figures share."""

from __future__ import annotations

import json

import plotly.io
import pytest

from holotrace import figures
from holotrace.analyses.kernel_breakdown.compute import kernel_breakdown
from holotrace.analyses.kernel_breakdown.figure import plot_kernel_breakdown
from holotrace.analyses.temporal_breakdown.figure import plot_temporal_breakdown
from holotrace.catalogue import ANALYSES
from holotrace.questions.question import Analysis
from jobs import MARKUP, built_gpu_job, temporal_of_many


def test_names_from_a_trace_are_never_markup() -> None:
    """`<script>` in a kernel's name is shown as escaped text."""
    text = plotly.io.to_json(plot_kernel_breakdown(kernel_breakdown(built_gpu_job())))
    strings = json.dumps(json.loads(text), ensure_ascii=False)
    assert "<script" not in strings
    assert "<b>bold" not in strings
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;b&gt;bold&lt;/b&gt; &#36;x&#36;" in strings
    assert MARKUP not in strings


@pytest.mark.parametrize(("ranks", "devices"), [(1, 1), (8, 1), (16, 8), (128, 1), (4_096, 1)])
def test_figures_work_from_one_rank_to_thousands(ranks: int, devices: int) -> None:
    """For 1 to 4,096 ranks, every device has a bar, and the figure is at most 700 pixels high."""
    figure = plot_temporal_breakdown(temporal_of_many(ranks, devices))
    keys = figure.data[0].y if figure.data[0].orientation == "h" else figure.data[0].x
    assert len(set(keys)) == ranks * devices
    assert figure.layout.height <= 700


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_figures_have_a_light_and_a_dark_form(analysis: Analysis) -> None:
    """The dark theme changes a figure's background, but not its data."""
    result = analysis.compute(built_gpu_job())
    light, dark = figures.figure_of(analysis.name, result), figures.figure_of(analysis.name, result, theme="dark")
    assert light.layout.template.layout.paper_bgcolor != dark.layout.template.layout.paper_bgcolor
    assert json.loads(light.to_json())["data"] == json.loads(dark.to_json())["data"]


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_the_title_of_a_figure_is_the_question(analysis: Analysis) -> None:
    """The title of each figure is the question of its analysis."""
    assert figures.figure_of(analysis.name, analysis.compute(built_gpu_job())).layout.title.text == analysis.question


def test_an_unknown_figure_is_an_attribute_error() -> None:
    """`figures.plot_nothing` raises an AttributeError, although the package loads its names on first use."""
    with pytest.raises(AttributeError, match="plot_nothing"):
        figures.plot_nothing  # noqa: B018
