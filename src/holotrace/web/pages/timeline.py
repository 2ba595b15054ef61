"""The page that shows single events; `assets/timeline/` draws it."""

from __future__ import annotations

from typing import Any

from dash import html
from dash.development.base_component import Component

from holotrace.web.parts.components import definitions, title_block
from holotrace.web.parts.page import Page
from holotrace.web.session.selection import Selection, text_of
from holotrace.web.session.session import Session
from holotrace.web.timeline.perfetto import perfetto_folder
from holotrace.web.timeline.routes import add_routes

QUESTION = "What ran when, on which thread or stream?"

_TERMS = (
    ("row", "a thread of the host or a stream of a device; a call is drawn below its caller"),
    ("pale slice", "several events, each shorter than a pixel; the larger the gaps between them, the paler the slice"),
    ("GPU busy", "whether the device is busy; when zoomed out, the fraction of each pixel's time in which it is busy"),
    ("queue", "number of kernels, copies and memsets that were launched on a stream but have not started"),
    (
        "node-01 ± 12 µs",
        "host of a rank, and the error (±) of its clock; a host without ± is the one whose clock the time axis uses",
    ),
    ("launch", "arrow from a launch call to the work that it launched"),
    ("forward, backward", "arrow between an operator and the operator that computes its gradient"),
    (
        "critical path",
        "events that determine the length of a step, of the selected span, or of the steps selected in the top bar",
    ),
    ("findings", "idle devices, waits in collectives, and the events to which advice refers"),
)


_OPTIONS = ("find", "event", "at", "show", "window", "top", "flags", "panel", "rows", "sql")
"""Keys in the query string that describe the view; `assets/timeline/start.js` lists the same keys."""


def _layout(session: Session, selection: Selection) -> Component:
    del session
    attributes: dict[str, Any] = {
        "data-run": selection.run or "",
        "data-ranks": text_of(selection.ranks or ()),
        "data-steps": text_of(selection.steps or ()),
        "data-devices": text_of(selection.devices or ()),
        **{f"data-{option}": selection.option(option) for option in _OPTIONS},
        "data-perfetto": "here" if perfetto_folder() else "",
    }
    view = html.Div(id="timeline", className="holotrace-timeline", **attributes)
    title = html.Div(
        [title_block("Timeline", QUESTION), definitions(_TERMS, scrolls=True)], className="holotrace-timeline-title"
    )
    return html.Article([title, view], className="holotrace-timeline-page")


TIMELINE = Page(
    name="timeline",
    title="Timeline",
    question=QUESTION,
    section="",
    layout=_layout,
    module="timeline/start.js",
    routes=add_routes,
)
