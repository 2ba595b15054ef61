"""The page on which the events themselves are looked at; the files in `assets/timeline/` draw it."""

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

QUESTION = "What ran when, on which thread and which stream?"

_TERMS = (
    ("row", "a thread of the host or a stream of a device; what was called from inside lies below its caller"),
    ("pale slice", "several events shorter than a pixel, merged; the paler, the less of its time they fill"),
    ("GPU busy", "whether anything runs on the device; where zoomed out, the share of each pixel's time"),
    ("queue", "what was launched on a stream and has not begun"),
    ("launch", "the arrow from the call that launched work to that work"),
    ("forward, backward", "the arrow between an operator and the one that computes its gradient"),
    (
        "critical path",
        "what bounds a step, the span selected, or the steps chosen above, from its beginning to its end",
    ),
    ("findings", "where to look: idle devices, waiting in collectives, and the events behind the advice"),
    ("W S", "zoom in and out at the place of the pointer, as the wheel with Ctrl does"),
    ("A D", "go left and right, as dragging does, or the wheel with shift"),
    (
        "drag on the ruler, or with shift",
        "select a span of time: its length, and what takes it; M takes the selected event's",
    ),
    ("F", "fit what is selected into view; 0 shows everything"),
    ("Enter, Shift Enter", "in the search: the next and the previous event found; / goes to the search"),
    ("Escape", "select nothing"),
)


def _layout(session: Session, selection: Selection) -> Component:
    del session
    asked: dict[str, Any] = {
        "data-run": selection.run or "",
        "data-ranks": text_of(selection.ranks or ()),
        "data-steps": text_of(selection.steps or ()),
        "data-devices": text_of(selection.devices or ()),
        "data-find": selection.option("find"),
        "data-event": selection.option("event"),
        "data-at": selection.option("at"),
        "data-show": selection.option("show"),
        "data-perfetto": "here" if perfetto_folder() else "",
    }
    view = html.Div(id="timeline", className="holotrace-timeline", **asked)
    return html.Article([title_block("Timeline", QUESTION), view, definitions(_TERMS)], className="holotrace-wide")


TIMELINE = Page(
    name="timeline",
    title="Timeline",
    question=QUESTION,
    section="",
    layout=_layout,
    module="timeline/start.js",
    routes=add_routes,
)
