"""The list of runs: the main numbers and the verdict of each run, and a choice of two runs to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from holotrace.drawing.names import printable
from holotrace.errors import HolotraceError
from holotrace.units import counted, duration_text, percent_text, size_text
from holotrace.web.pages.headline import VERDICT_KEY, Headline, headline
from holotrace.web.parts.browser_functions import client
from holotrace.web.parts.components import caveats, labelled, shown, title_block
from holotrace.web.parts.page import Page, Part
from holotrace.web.parts.slow_parts import part
from holotrace.web.session.runs import RunInfo
from holotrace.web.session.selection import FIRST_VIEW, RUNS_VIEW, Selection
from holotrace.web.session.session import Scope, Session

QUESTION = "Which runs are there, and how do they differ?"

MOST_SUMMARISED = 40
"""Maximum number of runs that the page summarises, the newest first; it lists older runs only by name."""

MOST_BYTES_READ = 256 << 20
"""Maximum size of a run that this page reads; a larger run is summarised only once somebody has opened it."""

_TWO = 2
_PREFIX = "run."
_POLL_MS = 1_000
_KNOWN: dict[str, Any] = {"data-is-known": ""}
"""Attribute of cells that contain a number. Narrow screens show no headings; instead, the style sheet adds a label to
these cells."""

_POLITE: dict[str, Any] = {"aria-live": "polite"}
_UNREAD: dict[str, Any] = {"aria-hidden": "true"}
_HEADINGS = ("", "run", "step", "GPU busy", "ranks", "GPU", "written")


def _layout(session: Session, selection: Selection) -> Component:
    del selection
    runs = sorted(session.runs, key=lambda run: run.written_ns or 0, reverse=True)
    newest, others = runs[:MOST_SUMMARISED], runs[MOST_SUMMARISED:]
    compare = html.P(
        [
            html.Span("Tick a run to compare it with another one.", id="compare-hint", **_POLITE),
            dcc.Link("Compare the two ticked runs", id="compare", href="?view=diff", className="holotrace-hidden"),
        ],
        className="holotrace-comparing",
        hidden=len(runs) < _TWO,
    )
    heading = html.Div(
        [html.Span(text) for text in _HEADINGS],
        className="holotrace-run holotrace-run-heading",
        **_UNREAD,
    )
    listed = html.Ul([_row(run) for run in newest], className="holotrace-runs")
    older = (
        [html.Details([html.Summary(counted(len(others), "older run")), html.Ul(list(map(_named, others)))])]
        if others
        else []
    )
    table = html.Div([heading, listed], className="holotrace-runs-list")
    return html.Article([title_block("Runs", QUESTION), compare, table, *older])


def _row(run: RunInfo) -> Component:
    tick = dmc.Checkbox(id={"type": "tick", "name": run.id}, **labelled(f"compare {printable(run.name)}"))
    name = html.H2([_link(run), " ", _compare_with(run)], className="holotrace-run-name")
    written = html.Span(_written(run), className="holotrace-run-written")
    return html.Li(
        [tick, name, part(f"{_PREFIX}{run.id}", min_height=0, poll_ms=_POLL_MS), written], className="holotrace-run"
    )


def _compare_with(run: RunInfo) -> Component:
    """Return the link that compares a run with the ticked run; it is hidden while no run is ticked."""
    key = {"type": "compare-with", "name": run.id}
    return dcc.Link("compare with the ticked run", id=key, href="?view=diff", className="holotrace-hidden")


def _named(run: RunInfo) -> Component:
    return html.Li([_link(run), f" {_written(run)}"])


def _link(run: RunInfo) -> Component:
    return dcc.Link(printable(run.name), href=Selection(FIRST_VIEW, run=run.id).query())


def _written(run: RunInfo) -> str:
    if run.written_ns is None:
        return "date unknown"
    return datetime.fromtimestamp(run.written_ns / 1e9, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _summary(run_id: str, session: Session, selection: Selection) -> Component:
    """Return the numbers and the verdict of a run, or the reason why they are missing."""
    del selection
    run, scope = session.run(run_id), Scope(run_id)
    if run.file_bytes > MOST_BYTES_READ and not session.has(scope, VERDICT_KEY):
        return _said(f"Not read yet, because it is large ({size_text(run.file_bytes)}); open it to see its verdict.")
    try:
        return _headline(headline(session, scope))
    except HolotraceError as error:
        return _said(str(error))


def _bytes_to_read(session: Session, name: str) -> float:
    """Return the cost of a row of the list: the size of the run's files, so that small runs are read first."""
    return next((run.file_bytes for run in session.runs if name == f"{_PREFIX}{run.id}"), 0)


def _headline(known: Headline) -> Component:
    busy = "" if known.busy_fraction is None else percent_text(known.busy_fraction)
    facts = (
        ("step", "no steps" if known.step_ns is None else duration_text(known.step_ns)),
        ("busy", busy or "no GPU work"),
        ("ranks", f"{known.rank_count:,} rank{'' if known.rank_count == 1 else 's'}"),
        ("gpu", ", ".join(map(printable, known.gpus)) or "GPU not recorded"),
    )
    is_known = {"step": known.step_ns is not None, "busy": bool(busy)}
    cells = [
        html.Span(text, className=f"holotrace-run-{name}", **(_KNOWN if is_known.get(name) else {}))
        for name, text in facts
    ]
    return html.Div([*cells, _said(known.verdict, known.doubts)], className="holotrace-run-facts")


def _said(sentence: str, doubts: tuple[str, ...] = ()) -> Component:
    return html.Div([html.P(shown(sentence)), *caveats(doubts, kind="warning")], className="holotrace-run-verdict")


class _Summaries(Mapping[str, Part]):
    """Maps names to functions that summarise a run. Iteration yields nothing: summaries are requested only by name."""

    def __getitem__(self, name: str) -> Part:
        if not name.startswith(_PREFIX):
            raise KeyError(name)
        return partial(_summary, name.removeprefix(_PREFIX))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def register_comparing(app: Dash) -> None:
    """Update the links that compare runs.

    If one run is ticked, each other run has a link that compares it with the ticked run. If two runs are ticked, the
    page shows a single link, which compares these two.
    """
    app.clientside_callback(
        client("compare"),
        Output("compare", "href"),
        Output("compare", "className"),
        Output("compare-hint", "children"),
        Output({"type": "compare-with", "name": ALL}, "href"),
        Output({"type": "compare-with", "name": ALL}, "className"),
        Input({"type": "tick", "name": ALL}, "checked"),
        State({"type": "tick", "name": ALL}, "id"),
    )


RUNS = Page(
    name=RUNS_VIEW,
    title="Runs",
    question=QUESTION,
    section="",
    layout=_layout,
    parts=_Summaries(),
    is_in_background=True,
    cost=_bytes_to_read,
)
