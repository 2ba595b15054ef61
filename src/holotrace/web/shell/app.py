"""The application: navigation and selectors around the requested page."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component
from dash.exceptions import DependencyException
from flask import Flask, Response, has_request_context, request

from holotrace.drawing.theme import SURFACES, template
from holotrace.errors import HolotraceError
from holotrace.web.pages import PAGES, Page
from holotrace.web.pages.runs import register_comparing
from holotrace.web.pages.without_data import WITHOUT_DATA_PART, without_data_part
from holotrace.web.parts.browser_functions import client
from holotrace.web.parts.slow_parts import Parts, part, problem, with_run
from holotrace.web.session.selection import FIRST_VIEW, RUNS_VIEW, Selection
from holotrace.web.session.session import Session
from holotrace.web.shell.callback_bodies import register_body_check
from holotrace.web.shell.navigation import Navigation, PageLink, Section
from holotrace.web.shell.scripts import LeanDash, register_scripts
from holotrace.web.shell.selectors import CHOICES_PART, choices_part, register_selectors, selectors
from holotrace.web.tables.routes import register_tables

MOST_REQUEST_BYTES = 256 << 10
"""Maximum size of a request. It can be small, because requests contain only selections, and it should be small, because
waitress keeps incomplete requests in memory."""

SCHEME_COOKIE = "holotrace-color-scheme"
"""Cookie with the colour scheme that was used last; `assets/shell/scheme.js` sets it."""


def create_app(session: Session, *, requests_prefix: str = "./") -> Dash:
    """Return the application; `create_app(session).server` is its WSGI application.

    The addresses in its pages are relative, so the application works under any path.
    """
    pages = {page.name: page for page in PAGES}
    flask = Flask("holotrace.web", static_folder=None)
    flask.config["MAX_CONTENT_LENGTH"] = MOST_REQUEST_BYTES
    app = LeanDash(
        pages,
        lambda query: with_run(Selection.from_query(query), session).view,
        name="holotrace.web",
        server=False,
        title="holotrace",
        update_title="",
        suppress_callback_exceptions=True,
        serve_locally=True,
        enable_mcp=False,
    )
    app.init_app(flask, requests_pathname_prefix=requests_prefix)
    flask.register_error_handler(DependencyException, lambda _: Response(status=404))  # no such script is registered
    register_scripts(flask)
    register_body_check(app, flask)
    parts = Parts(session, pages, {CHOICES_PART: choices_part, WITHOUT_DATA_PART: without_data_part})
    _register_shell(app, session, parts)
    register_selectors(app)
    parts.register(app)
    register_tables(app, flask, session, pages)
    register_comparing(app)
    _register_theme(app)
    for page in PAGES:
        if page.routes is not None:
            page.routes(flask, session)
    return app


class _Shown(NamedTuple):
    """The content of the three areas of the shell."""

    navigation: list[Component]
    selectors: list[Component]
    page: Component | None


_NOTHING = _Shown([], [], None)


def _register_shell(app: Dash, session: Session, parts: Parts) -> None:
    """Show the requested page; the first page is sent with the shell, and later pages replace it."""

    def layout() -> Component:
        query = _query_of_the_page()
        scheme = _last_scheme()
        return _shell(_NOTHING if query is None else _shown(session, parts, query, scheme), query, scheme)

    app.layout = layout

    @app.callback(
        Output("nav", "children"),
        Output("selectors", "children"),
        Output("page", "children"),
        Input("url", "search"),
        State("theme", "forceColorScheme"),
        prevent_initial_call=True,
    )
    def show_page(query: str | None, scheme: str | None) -> _Shown:
        return _shown(session, parts, query, scheme)


def _query_of_the_page() -> str | None:
    """Return the query in the address of the requesting page; None if the browser or a proxy omits it."""
    if not has_request_context() or not request.referrer:
        return None
    query = request.referrer.partition("?")[2]
    return "?" + query if query else ""


def _last_scheme() -> str:
    return "dark" if has_request_context() and request.cookies.get(SCHEME_COOKIE) == "dark" else "light"


def _shown(session: Session, parts: Parts, query: str | None, scheme: str | None) -> _Shown:
    requested = Selection.from_query(query)
    is_known = requested.view in ("", *parts.pages)
    selection = with_run(requested if is_known else requested.at(FIRST_VIEW), session)
    chosen = [] if selection.view == RUNS_VIEW else selectors(session, selection)
    page = _page(parts.pages[selection.view], session, selection)
    navigation = _navigation(selection)
    parts.put_into(html.Div([*navigation, *chosen, page]), selection, scheme)
    return _Shown(navigation, chosen, page)


def _shell(shown: _Shown, query: str | None, scheme: str) -> Component:
    header = html.Div(
        [
            dmc.ActionIcon("☰", id="sidebar", variant="default", size="lg", **{"aria-label": "pages (b)"}),
            dcc.Link("holotrace", href=f"?view={RUNS_VIEW}", className="holotrace-home", title="all runs"),
            html.Div(shown.selectors, id="selectors", className="holotrace-selectors"),
            dmc.ActionIcon("?", id="help", variant="default", size="lg", **{"aria-label": "keys (?)"}),
            dmc.ActionIcon("◐", id="dark", variant="default", size="lg", **{"aria-label": "light or dark (t)"}),
        ],
        className="holotrace-bar",
    )
    pages = dmc.ScrollArea(html.Div(shown.navigation, id="nav"), type="auto")
    shell = dmc.AppShell(
        [
            dmc.AppShellHeader(header),
            dmc.AppShellNavbar(pages, p="xs", **{"aria-label": "pages"}),
            dmc.AppShellMain(html.Div(shown.page, id="page")),
        ],
        id="shell",
        header={"height": {"base": 104, "md": 58}},
        navbar={"width": 230, "breakpoint": "md", "collapsed": {"mobile": True}},
        padding="md",
    )
    # if `query` is None, the browser reads it from the address of the page and sends it to the server later
    known = {} if query is None else {"search": query}
    stores = [dcc.Location(id="url", refresh="callback-nav", **known), dcc.Store(id="templates", data=_templates())]
    return dmc.MantineProvider([*stores, shell], id="theme", forceColorScheme=scheme)


@cache
def _templates() -> dict[str, Any]:
    """Return the figures' template for each theme; cached, because building one takes longer than building a page."""
    return {theme: template(theme).to_plotly_json() for theme in SURFACES}


def _page(page: Page, session: Session, selection: Selection) -> Component:
    if not session.runs:
        return _no_runs(session)
    try:
        return page.layout(session, selection)
    except HolotraceError as error:
        return problem(error, selection)


def _no_runs(session: Session) -> Component:
    """Return a note for a server without runs, with the searched folders and the file types."""
    return dmc.Alert(
        f"No profiler trace in {', '.join(session.paths)} or its subfolders. Traces are .json, .json.gz or .json.zst files "
        "from torch.profiler, for example from torch.profiler.tensorboard_trace_handler(folder). "
        "Reload this page when there is a trace.",
        title="No trace yet",
    )


def _navigation(selection: Selection) -> list[Component]:
    if selection.run is None:  # all other pages show a run
        runs = [_page_link(page, selection) for page in PAGES if page.name == RUNS_VIEW]
        return [Navigation([{"title": "", "links": runs}])]
    sections: list[Section] = [
        {"title": title, "links": [_page_link(page, selection) for page in listed]}
        for title, listed in groupby(sorted(PAGES, key=_position), key=lambda page: page.section)
    ]
    return [Navigation(sections), part(WITHOUT_DATA_PART, min_height=0)]


def _position(page: Page) -> tuple[int, bool]:
    """Return the sort key of a page; a page with the same title as its section comes first in the section."""
    return [known.section for known in PAGES].index(page.section), page.title != page.section


def _page_link(page: Page, selection: Selection) -> PageLink:
    return {"title": page.title, "href": selection.at(page.name).query(), "isShown": page.name == selection.view}


def _register_theme(app: Dash) -> None:
    """Switch colours in the browser: the scheme of the page, and the templates of the figures."""
    app.clientside_callback(
        client("scheme"),
        Output("theme", "forceColorScheme"),
        Input("dark", "n_clicks"),
        State("theme", "forceColorScheme"),
    )
    app.clientside_callback(
        client("figures"),
        Output({"type": "figure", "name": ALL}, "figure"),
        Input("theme", "forceColorScheme"),
        State({"type": "figure", "name": ALL}, "figure"),
        State("templates", "data"),
    )
