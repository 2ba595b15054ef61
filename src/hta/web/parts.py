"""Parts of a page that take a while: a placeholder asks for them until they are ready."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import MATCH, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component

from hta.errors import HtaError, MissingDataError
from hta.web.components import findings
from hta.web.page import Page, Part
from hta.web.runs import SPAN_MARK
from hta.web.session import Session
from hta.web.state import Selection

logger = logging.getLogger("hta")

PATIENCE_S = 0.3
POLL_MS = 350
_MOST_POLLS = 20_000


def part(name: str, *, min_height: int = 60) -> Component:
    """Return the place where the part of that name appears, so many pixels high while it is awaited."""
    return html.Div(
        [
            html.Div(html.Div(_waiting(""), style={"minHeight": min_height}), id=_id("part", name)),
            dcc.Interval(id=_id("poll", name), interval=POLL_MS, max_intervals=_MOST_POLLS),
        ]
    )


def register_parts(app: Dash, session: Session, pages: Mapping[str, Page], common: Mapping[str, Part]) -> None:
    """Answer the placeholders of all pages; `common` are the parts that every page has."""

    @app.callback(
        Output(_id("part", MATCH), "children"),
        Output(_id("poll", MATCH), "disabled"),
        Input(_id("poll", MATCH), "n_intervals"),
        State("url", "search"),
        State("theme", "forceColorScheme"),
    )
    def show_part(_: int | None, query: str | None, scheme: str | None) -> tuple[Any, bool]:
        selection = with_run(Selection.from_query(query), session)
        name = str(ctx.outputs_list[0]["id"]["name"])
        make = common.get(name) or (pages[selection.view].parts.get(name) if selection.view in pages else None)
        if make is None:  # of a page that was just left
            return no_update, True
        themed = selection.with_options(theme="dark" if scheme == "dark" else "light")
        stamp = tuple(run.stamp for run in session.runs if run.id == (selection.run or "").partition(SPAN_MARK)[0])
        answer = session.answer((selection.view, name, themed, stamp), partial(make, session, themed))
        return _shown(answer, session, selection)


def with_run(selection: Selection, session: Session) -> Selection:
    """Take the first run where none is named."""
    first = next((run.id for run in session.runs), None)
    return selection if selection.run else replace(selection, run=first)


def problem(error: HtaError, selection: Selection) -> Component:
    """Say what was not recorded and how to record it, or what else stands in the way."""
    if isinstance(error, MissingDataError):
        return _missing([str(error)], selection)
    return _alert("This cannot be shown", [str(error)], selection, "yellow")


def nothing_found(reasons: Sequence[str], selection: Selection) -> Component:
    """Say why the tables of a page are empty, instead of showing them."""
    return _missing(reasons or ["nothing of this kind was found"], selection)


def _missing(reasons: Sequence[str], selection: Selection) -> Component:
    title = "Not in what is selected" if selection.is_narrow else "Not in this recording"
    return _alert(title, reasons, selection, "gray")


def _alert(title: str, reasons: Sequence[str], selection: Selection, color: str) -> Component:
    whole = dcc.Link("look at all ranks, steps and devices", href=selection.widened.query())
    return dmc.Alert([*findings(reasons), *([whole] if selection.is_narrow else [])], title=title, color=color)


def _shown(answer: Future[Component], session: Session, selection: Selection) -> tuple[Component, bool]:
    """Return what to show now, and whether that is all."""
    try:
        return answer.result(PATIENCE_S), True
    except NotYet:
        return _waiting(session.reading.text()), False
    except HtaError as error:
        return problem(error, selection), True
    except Exception:
        logger.exception("a part of a page could not be made")
        return dmc.Alert("This could not be made; the log of the server says why.", title="Error", color="red"), True


def _waiting(text: str) -> Component:
    return dmc.Group([dmc.Loader(size="sm"), dmc.Text(text or "computing", c="dimmed", size="sm")], p="md")


def _id(kind: str, name: object) -> dict[str, object]:
    return {"type": kind, "name": name}
