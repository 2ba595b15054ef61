"""Finds the pages that certainly have no data in this recording; the navigation dims the links to them."""

from __future__ import annotations

from typing import Any

from dash import html
from dash.development.base_component import Component

from holotrace.catalogue import ANALYSES
from holotrace.errors import HolotraceError
from holotrace.questions.question import Analysis
from holotrace.schema import EventKind
from holotrace.store.trace import Trace
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Session

WITHOUT_DATA_PART = "without-data"

MOST_RANKS = 64
"""If a job has more ranks than this, no link is dimmed, because reading all files would take too long."""


def without_data_part(session: Session, selection: Selection) -> Component:
    """Return the names of pages without data for `assets/shell/navigation.js`; no names if the run cannot be opened."""
    try:
        names = session.remembered(selection.scope, WITHOUT_DATA_PART, without_data)
    except HolotraceError:
        names = ()
    attributes: dict[str, Any] = {"data-pages": " ".join(names)}
    return html.Div(id="without-data", hidden=True, **attributes)


def without_data(trace: Trace) -> tuple[str, ...]:
    """Return the names of the pages that certainly have no data."""
    if len(trace.ranks) > MOST_RANKS:
        return ()
    recorded = {kind for rank_trace in trace.ranks.values() for kind in rank_trace.event_counts()}
    return tuple(question.name for question in ANALYSES if _lacks_data(question, trace, recorded))


def _lacks_data(question: Analysis, trace: Trace, recorded: set[EventKind]) -> bool:
    if len(trace.ranks) < question.fewest_ranks or (question.needs and recorded.isdisjoint(question.needs)):
        return True
    has_input = question.input_check
    return has_input is not None and not any(map(has_input, trace.ranks.values()))
