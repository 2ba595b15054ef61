"""Slow parts of a page; a placeholder polls the server until the part is ready."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import MATCH, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component

from holotrace.errors import HolotraceError, MissingDataError
from holotrace.web.parts.components import findings
from holotrace.web.parts.page import Page, Part
from holotrace.web.session.runs import SPAN_MARK
from holotrace.web.session.selection import FIRST_VIEW, RUNS_VIEW, Selection
from holotrace.web.session.session import Session

logger = logging.getLogger("holotrace")

PAGE_PATIENCE_S = 0.1
"""Seconds for which a page waits for its parts; it then appears with placeholders for unfinished parts."""

PATIENCE_S = 0.3
POLL_MS = 350
_MOST_POLLS = 20_000


def part(name: str, *, min_height: int = 60, poll_ms: int = POLL_MS) -> Component:
    """Return a placeholder, at least `min_height` pixels high, that requests the part every `poll_ms` milliseconds."""
    return html.Div(
        [
            html.Div(html.Div(_waiting(""), style={"minHeight": min_height}), id=_id("part", name)),
            dcc.Interval(id=_id("poll", name), interval=poll_ms, max_intervals=_MOST_POLLS),
        ],
        id=_id("place", name),
    )


@dataclass(frozen=True)
class Parts:
    """Computes the slow parts of pages; every page can contain the parts in `common`."""

    session: Session
    pages: Mapping[str, Page]
    common: Mapping[str, Part]

    def put_into(self, page: Component, selection: Selection, scheme: str | None) -> None:
        """Start computing the parts of a page, and fill in the parts that are ready within `PAGE_PATIENCE_S`.

        If the page has a function `cost`, the cheapest part starts first; otherwise, parts start in the order of
        `Page.parts`.
        """
        names = [key["name"] for key in page if isinstance(key, dict) and key["type"] == "place"]
        names.sort(key=self._place_in_order(selection.view))
        answers = {name: self._answer(name, selection, scheme) for name in names}
        deadline = time.monotonic() + PAGE_PATIENCE_S
        for name, answer in answers.items():
            if answer is not None:
                shown, is_all = _shown(answer, self.session, selection, max(0, deadline - time.monotonic()))
                if is_all:
                    page[_id("place", name)].children = shown

    def _place_in_order(self, view: str | None) -> Callable[[str], float]:
        page = self.pages.get(view or "")
        if page is not None and page.cost is not None:
            return partial(page.cost, self.session)
        own = [*page.parts] if page is not None else []
        return lambda name: own.index(name) if name in own else -1

    def register(self, app: Dash) -> None:
        """Add the callback through which the placeholders that `put_into` left empty request their content."""

        @app.callback(
            Output(_id("part", MATCH), "children"),
            Output(_id("poll", MATCH), "disabled"),
            Input(_id("poll", MATCH), "n_intervals"),
            State("url", "search"),
            State("theme", "forceColorScheme"),
        )
        def show_part(_: int | None, query: str | None, scheme: str | None) -> tuple[Any, bool]:
            selection = with_run(Selection.from_query(query), self.session)
            answer = self._answer(str(ctx.outputs_list[0]["id"]["name"]), selection, scheme)
            if answer is None:  # the browser already shows another page
                return no_update, True
            page = self.pages.get(selection.view)
            patience_s = 0 if page is not None and page.is_in_background else PATIENCE_S
            return _shown(answer, self.session, selection, patience_s)

    def _answer(self, name: str, selection: Selection, scheme: str | None) -> Future[Component] | None:
        """Return the future of the part with this name; None if the page has no such part."""
        page = self.pages.get(selection.view)
        make = self.common.get(name) or (page.parts.get(name) if page else None)
        if make is None:
            return None
        themed = selection.with_options(theme="dark" if scheme == "dark" else "light")
        run = (selection.run or "").partition(SPAN_MARK)[0]
        stamp = tuple(info.stamp for info in self.session.runs if run in (info.id, ""))
        work = partial(make, self.session, themed)
        return self.session.answer(
            (selection.view, name, themed, stamp), work, is_in_background=page is not None and page.is_in_background
        )


def with_run(selection: Selection, session: Session) -> Selection:
    """Complete an address.

    The default page is the list of runs if there are several runs, else the overview. The default run on all
    pages except the list of runs is the first run.
    """
    ids = [run.id for run in session.runs]
    view = selection.view or (RUNS_VIEW if len(ids) > 1 and not selection.run else FIRST_VIEW)
    run = selection.run or (None if view == RUNS_VIEW else next(iter(ids), None))
    return replace(selection, view=view, run=run)


def problem(error: HolotraceError, selection: Selection) -> Component:
    """Return a box with an error and its remedy; the box is grey if data were not recorded, and yellow otherwise."""
    if isinstance(error, MissingDataError):
        return _missing([str(error)], selection)
    return _alert("Cannot show this", [str(error)], selection, "yellow")


def nothing_found(reasons: Sequence[str], selection: Selection) -> Component:
    """Return a box that says why the tables of a page are empty."""
    return _missing(reasons or ["no events of this kind"], selection)


def _missing(reasons: Sequence[str], selection: Selection) -> Component:
    title = "Not in the selection" if selection.is_narrow else "Not in this recording"
    return _alert(title, reasons, selection, "gray")


def _alert(title: str, reasons: Sequence[str], selection: Selection, color: str) -> Component:
    whole = dcc.Link("show all ranks, steps and devices", href=selection.widened.query())
    return dmc.Alert([*findings(reasons), *([whole] if selection.is_narrow else [])], title=title, color=color)


def _shown(
    answer: Future[Component], session: Session, selection: Selection, patience_s: float
) -> tuple[Component, bool]:
    """Return the content to show now, and whether it is final."""
    try:
        return answer.result(patience_s), True
    except NotYet:
        return _waiting(session.reading.text()), False
    except HolotraceError as error:
        return problem(error, selection), True
    except Exception:
        logger.exception("cannot make a part of a page")
        return dmc.Alert(
            "The server failed to make this part of the page; the server's log has the details.",
            title="Error",
            color="red",
        ), True


def _waiting(text: str) -> Component:
    return dmc.Group([dmc.Loader(size="sm"), dmc.Text(text or "computing", c="dimmed", size="sm")], p="md")


def _id(kind: str, name: object) -> dict[str, object]:
    return {"type": kind, "name": name}
