"""Draws the figure of each question from a recording that has the data for it."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

import plotly
from browser import ROOT, THEMES, picture_path, write_picture

import holotrace
from holotrace.catalogue import ANALYSES, COMPARISONS, analysis
from holotrace.figures import figure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import plotly.graph_objects as go
    from playwright.sync_api import Browser, Page

DLRM = "tests/reference/traces/dlrm_8rank"
TWO_RANKS = "tests/reference/traces/two_rank_128"
GLOO = "examples/ddp_gloo_4rank"
CUPTI = "tests/reference/traces/cupti"

RECORDING = {
    "compiled_regions": "examples/gpu/traces/training-compiled",
    "cupti_counters": CUPTI,
    "inference": "examples/gpu/traces/generation",
    "kernels": TWO_RANKS,
    "memory_timeline": GLOO,
    "modules": GLOO,
    "operator_memory": GLOO,
    "operators": GLOO,
    "roofline": "examples/gpu/traces/training",
    "source_lines": "examples/gpu/traces/training",
    "step_time": TWO_RANKS,
    "parallelism": "tests/reference/traces/pipeline_gloo_4rank",
    "straggler_cost": "tests/reference/traces/pipeline_gloo_4rank",
    "stragglers": GLOO,
    "wait_causes": "tests/reference/traces/pipeline_gloo_4rank",
}
"""Recordings for questions that the DLRM recording has no data for, or whose figure is clearer with another recording."""

WIDTH = 900
_DEFAULT_HEIGHT = 450


def recording(question: str) -> str:
    """Return the folder of the recording from which a question's figure is drawn."""
    return RECORDING.get(question, DLRM)


def write_pictures(browser: Browser, names: Collection[str] = ()) -> None:
    """Write a light and a dark picture of each named question's figure; without names, draw all questions."""
    page = browser.new_page(viewport={"width": WIDTH, "height": _DEFAULT_HEIGHT})
    page.set_content("<body style='margin:0'><div id='figure'></div></body>")
    page.add_script_tag(content=plotly.offline.get_plotlyjs())
    for name, plot in _figures(names):
        for theme in THEMES:
            _draw(page, plot(theme=theme))
            write_picture(page, picture_path("questions", name, theme))
    page.close()


def _figures(names: Collection[str]) -> Iterator[tuple[str, Callable[..., go.Figure]]]:
    for question in map(analysis, names) if names else (*ANALYSES, *COMPARISONS):
        traces = _control_and_test() if question in COMPARISONS else (_opened(recording(question.name)),)
        result = question.compute(*traces)
        yield question.name, partial(figure_of, question.name, result)


@cache
def _opened(folder: str) -> holotrace.Trace:
    return holotrace.open_trace(ROOT / folder, cache=False)


def _control_and_test() -> tuple[holotrace.Trace, holotrace.Trace]:
    """Return a normal rank and the rank that is slow on purpose."""
    job = _opened(GLOO)
    return job.select([0]), job.select([3])


def _draw(page: Page, figure: go.Figure) -> None:
    height = figure.layout.height or _DEFAULT_HEIGHT
    figure.update_layout(width=WIDTH, height=height)
    page.set_viewport_size({"width": WIDTH, "height": int(height)})
    script = "json => { const {data, layout} = JSON.parse(json); return Plotly.newPlot('figure', data, layout, {staticPlot: true}); }"
    page.evaluate(script, figure.to_json())
