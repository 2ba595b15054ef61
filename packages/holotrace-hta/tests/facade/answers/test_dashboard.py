"""The dashboard of a notebook shows the verdict and the figures of all analyses."""

from __future__ import annotations

import sys
from html import escape
from types import ModuleType

import pytest

from holotrace.whole_job.summary import summary
from hta.facade.answers.dashboard import Dashboard
from hta.trace_analysis import TraceAnalysis
from jobs import cpu_job, gpu_job


@pytest.fixture
def shown(monkeypatch) -> list[object]:
    """Collect, in order, everything that a notebook would show."""
    given: list[object] = []
    notebook = ModuleType("IPython.display")
    notebook.display = lambda bundle, *, raw: given.append(bundle if raw else None)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    monkeypatch.setattr("plotly.graph_objects.Figure.show", lambda figure, renderer: given.append((figure, renderer)))
    return given


@pytest.mark.slow
def test_a_dashboard_at_the_end_of_a_cell_shows_the_verdict_and_every_figure(shown, tmp_path) -> None:
    """A dashboard shows the verdict, then a figure for each analysis that succeeded, in plotly's default renderer."""
    gpu_job().write(tmp_path)
    dashboard = TraceAnalysis(trace_dir=str(tmp_path)).dashboard()
    assert not shown
    dashboard._ipython_display_()
    words, *figures = shown
    assert dashboard.summary.verdict in words["text/plain"]
    assert escape(dashboard.summary.verdict) in words["text/html"]
    assert len(figures) == len(dashboard.summary.results)
    assert {renderer for _, renderer in figures} == {None}


@pytest.mark.slow
def test_every_figure_has_a_title_and_units() -> None:
    """Every figure of a dashboard and every numeric axis has a title."""
    for name, figure in Dashboard(summary(gpu_job().build()), "dark").figures.items():
        assert figure.layout.title.text, name
        assert figure.layout.paper_bgcolor is None
        axes = [axis for axis in figure.select_xaxes() if axis.visible is not False and axis.type != "category"]
        assert all(axis.title.text for axis in axes) or not figure.data, name


@pytest.mark.slow
def test_a_job_without_gpu_work_has_a_dashboard(shown) -> None:
    """The dashboard of a job without GPU work says so, and shows the remaining figures."""
    dashboard = Dashboard(summary(cpu_job().build()))
    dashboard._ipython_display_()
    assert "no GPU work was recorded" in shown[0]["text/plain"]
    assert len(shown) == 1 + len(dashboard.figures)


def test_names_from_a_trace_are_text_in_a_notebook(shown) -> None:
    """A dashboard escapes markup and control characters in the verdict and the findings."""
    expected = summary(gpu_job().build())
    bad = Dashboard(type(expected)("a <b>verdict", {}, {}, expected.cpu_side, ("<script>alert(1)</script>\x1b",)))
    bad._ipython_display_()
    assert "<script>" not in shown[0]["text/html"]
    assert "<b>verdict" not in shown[0]["text/html"]
    assert "\x1b" not in shown[0]["text/plain"]


def test_another_renderer_can_be_named(shown) -> None:
    """`show("colab")` shows every figure with that renderer."""
    Dashboard(summary(gpu_job().build())).show("colab")
    assert {renderer for _, renderer in shown} == {"colab"}
