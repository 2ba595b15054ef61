"""The page on which the events themselves are looked at; `assets/timeline.js` draws it."""

from __future__ import annotations

from typing import Any

from dash import html
from dash.development.base_component import Component

from hta.web.components import definitions, title_block
from hta.web.page import Page
from hta.web.session import Session
from hta.web.state import Selection, text_of
from hta.web.timeline.perfetto import perfetto_folder
from hta.web.timeline.routes import add_routes

QUESTION = "What ran when, on which thread and which stream?"

_TERMS = (
    ("row", "a thread of the host or a stream of a device; what was called from inside lies below its caller"),
    ("pale slice", "several events shorter than a pixel, merged; the paler, the less of its time they fill"),
    ("GPU busy", "whether anything runs on the device; where zoomed out, the share of each pixel's time"),
    ("queue", "what was launched on a stream and has not begun"),
    ("launch", "the arrow from the call that launched work to that work"),
    ("forward, backward", "the arrow between an operator and the one that computes its gradient"),
    ("W S", "zoom in and out, as the wheel does; at the place of the pointer"),
    ("A D", "go left and right, as dragging does"),
    ("F", "fit the selected event into view; 0 shows everything"),
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
        "data-perfetto": "here" if perfetto_folder() else "",
    }
    view = html.Div(id="timeline", className="hta-timeline", **asked)
    return html.Article([title_block("Timeline", QUESTION), view, definitions(_TERMS)], className="hta-wide")


TIMELINE = Page(name="timeline", title="Timeline", question=QUESTION, section="", layout=_layout, routes=add_routes)
