"""Figures fit every window width: legends cover no bars, and long names are shortened."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

import holotrace
from browsing import PATIENCE_MS, serving, visit
from holotrace.web.session.selection import Selection
from reference_data import IN_THE_REPOSITORY

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TRACES = IN_THE_REPOSITORY / "traces"
WIDTHS = (1440, 390, 1440)
LEGENDS_ARE_FREE = """(width) => {
  const plots = [...document.querySelectorAll('.js-plotly-plot')].filter(plot => plot.querySelector('.legend .bg'));
  return window.innerWidth === width && plots.length > 0 && plots.every(plot => {
    const legend = plot.querySelector('.legend .bg').getBoundingClientRect();
    const [bars] = [...plot.querySelectorAll('.nsewdrag')].map(one => one.getBoundingClientRect());
    const [figure] = [...plot.querySelectorAll('.main-svg')].map(one => one.getBoundingClientRect());
    const box = plot.getBoundingClientRect();
    return Math.abs(figure.width - box.width) < 2 &&
      (legend.bottom <= bars.top + 1 || legend.left >= bars.right - 1 || legend.top >= bars.bottom - 1);
  });
}"""
"""Returns whether each figure is as wide as its box, and its legend is above, beside or below the bars."""

NAMES_FIT = """() => [...document.querySelectorAll('.js-plotly-plot')].some(plot => plot.querySelector('.annotation-text')) &&
  [...document.querySelectorAll('.annotation-text')].every(name =>
    name.getBoundingClientRect().right <= name.closest('.js-plotly-plot').getBoundingClientRect().right + 1)"""


TEXTS_ARE_READABLE = """(width) => {
  const boxes = (plot, selector) => [...plot.querySelectorAll(selector)]
    .filter(text => text.textContent.trim() && text.checkVisibility()).map(text => text.getBoundingClientRect()).filter(box => box.height > 0);
  const isOver = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 3;
  const isReadable = plot => {
    const all = boxes(plot, '.main-svg text');
    return Math.abs(plot.querySelector('.main-svg').getBoundingClientRect().width - plot.clientWidth) < 2 &&
      !all.some((one, at) => all.slice(at + 1).some(other => isOver(one, other))) &&
      boxes(plot, '.bartext').every(label => label.height > 9) &&
      ['x', 'x2'].every(axis => boxes(plot, `.${axis}title`).every(title =>
        boxes(plot, `.${axis}tick text`).every(tick => title.top > tick.bottom - 2)));
  };
  const plots = [...document.querySelectorAll('.js-plotly-plot')];
  return window.innerWidth === width && plots.length > 0 && plots.every(isReadable);
}"""
"""Returns whether texts do not overlap, labels of bars are not tiny, and axis titles are below the tick labels."""


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[object, str]]:
    """Serve a job of several ranks on CPUs, and a job whose kernel names have several hundred letters."""
    folder = tmp_path_factory.mktemp("figures")
    for name in ("ddp_gloo_4rank", "two_rank_128", "pipeline_gloo_4rank"):
        shutil.copytree(TRACES / name, folder / name)
    with serving(folder) as session_and_url:
        yield session_and_url


def address(served, name: str, page: str) -> str:
    """Return the address of a page of a run."""
    session, url = served
    return url + Selection(page, run=next(run.id for run in session.runs if run.name == name)).query()


@pytest.mark.parametrize(
    ("name", "page"),
    [("ddp_gloo_4rank", "step_time"), ("ddp_gloo_4rank", "overview"), ("pipeline_gloo_4rank", "parallelism")],
)
def test_a_legend_leaves_the_bars_free_at_every_width(served, browser, name: str, page: str) -> None:
    """When the window becomes wider or narrower, a legend gets fewer or more lines, but never covers bars."""
    with visit(browser, address(served, name, page)) as seen:
        for width in WIDTHS:
            seen.page.set_viewport_size({"width": width, "height": 1000})
            seen.page.wait_for_function(LEGENDS_ARE_FREE, arg=width, timeout=20_000)
            seen.page.wait_for_timeout(500)  # the legend must not move again
            assert seen.page.evaluate(LEGENDS_ARE_FREE, width)
        assert not seen.troubles


@pytest.mark.parametrize("page", ["critical_path", "distributed", "straggler_cost", "wait_causes"])
def test_texts_of_figures_are_readable_at_every_width(served, browser, page: str) -> None:
    """Figures with a colour bar and figures with two panels are readable in narrow and wide windows."""
    with visit(browser, address(served, "ddp_gloo_4rank", page)) as seen:
        for width in WIDTHS:
            seen.page.set_viewport_size({"width": width, "height": 1000})
            seen.page.wait_for_function(TEXTS_ARE_READABLE, arg=width, timeout=20_000)
        assert not seen.troubles


def test_a_legend_of_a_report_leaves_the_bars_free_at_every_width(browser, tmp_path) -> None:
    """A report uses the same script as the web pages, so its legends cover no bars at any width."""
    holotrace.report(holotrace.open_trace(TRACES / "ddp_gloo_4rank"), tmp_path / "report.html")
    with visit(browser, (tmp_path / "report.html").as_uri()) as seen:
        seen.page.evaluate("() => document.querySelectorAll('details.section').forEach(one => { one.open = true; })")
        for width in WIDTHS:
            seen.page.set_viewport_size({"width": width, "height": 1000})
            seen.page.wait_for_function(LEGENDS_ARE_FREE, arg=width, timeout=20_000)
        assert not seen.troubles


def test_names_fit_a_figure_that_is_drawn_later(served, browser) -> None:
    """If plotly.js loads after the page, names above bars are cut on a phone and shown in full in a wide window."""
    with visit(browser, address(served, "two_rank_128", "health")) as seen:
        seen.settle(seen.page.main_frame, "Health")
        seen.page.set_viewport_size({"width": 390, "height": 1000})
        seen.page.goto(address(served, "two_rank_128", "kernels"))
        seen.page.wait_for_function(NAMES_FIT, timeout=PATIENCE_MS)
        names = seen.page.locator(".annotation-text")
        narrow = names.all_text_contents()
        assert any(name.endswith("…") for name in narrow)
        seen.page.set_viewport_size({"width": 1440, "height": 1000})
        seen.page.wait_for_function(
            "(length) => [...document.querySelectorAll('.annotation-text')].some(name => name.textContent.length > length)",
            arg=max(map(len, narrow)),
            timeout=PATIENCE_MS,
        )
        assert seen.page.evaluate(NAMES_FIT)
        assert not seen.troubles


def test_straggler_cost_is_readable_in_the_dark(served, browser) -> None:
    """On a dark page, the figure is dark with light text, even after its width changes."""
    with visit(browser, address(served, "ddp_gloo_4rank", "straggler_cost"), color_scheme="dark") as seen:
        seen.settle(seen.page.main_frame, "Straggler cost")
        for width in WIDTHS:
            seen.page.set_viewport_size({"width": width, "height": 1000})
            seen.page.wait_for_timeout(500)
            colours = seen.page.evaluate(
                """() => { const { paper_bgcolor, font } = document.querySelector('#page .js-plotly-plot')._fullLayout;
                           return [paper_bgcolor, font.color]; }"""
            )
            assert colours == ["#171c23", "#e5e9f0"]
        assert not seen.troubles
