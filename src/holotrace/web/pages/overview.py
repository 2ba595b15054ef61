"""The first page: the verdict in one sentence, where the time goes, what to do about it, and the devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from holotrace.analyses.diagnosis.compute import Diagnosis
from holotrace.analyses.diagnosis.headline_facts import headline_facts
from holotrace.analyses.source_lines.answer import idle_text
from holotrace.catalogue import analysis
from holotrace.errors import HolotraceError
from holotrace.figures import figure_of
from holotrace.web.pages.found import found_block
from holotrace.web.pages.headline import covers_one_job, doubts, verdict
from holotrace.web.parts.components import (
    caveats,
    definitions,
    facts_block,
    findings,
    graph,
    python_block,
    shown,
    title_block,
)
from holotrace.web.parts.page import Page, Table
from holotrace.web.parts.python_code import python_of
from holotrace.web.parts.slow_parts import part
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Session
from holotrace.web.tables.box import table_box
from holotrace.whole_job.summary import DIAGNOSIS

QUESTION = "What matters in this job?"

_FIGURES = {"time": "temporal_breakdown", "steps": "step_time"}
_ANSWERS: dict[str, Callable[[Any], str]] = {
    "source_lines": idle_text,
    **dict.fromkeys(("kernels", "memory_timeline", "collectives"), attrgetter("answer")),
}
"""For each question under "At a glance", a function that turns the question's result into one sentence."""

_TABLE = "gpu_summary"
_CPU_TABLE, _GPU_TABLE = "overview.cpu_side", "overview.gpus"


def _layout(session: Session, selection: Selection) -> Component:
    code = python_of("holotrace.summary(trace)", session.run(selection.scope.run), selection.scope)
    figures = html.Div([part(name, min_height=220) for name in _FIGURES], className="holotrace-columns")
    parts = [part("verdict", min_height=90), part("advice"), figures, part("answers"), part("gpus")]
    terms = [term for name in (*_FIGURES.values(), _TABLE) for term in analysis(name).definitions]
    return html.Article([title_block("Overview", QUESTION), *parts, definitions(terms), python_block(code)])


def _verdict(session: Session, selection: Selection) -> Component:
    """Return the verdict, preceded by reasons to doubt it."""
    sentence, _ = verdict(session, selection.scope)
    doubted = doubts(session, selection.scope)
    table = _cpu_side(session, selection)
    is_one = covers_one_job(session, selection.scope)
    return html.Div(
        [
            *([dmc.Alert(findings(doubted), title="Before you read on", color="orange", mb="sm")] if doubted else []),
            dmc.Alert(shown(sentence), title="Verdict", className="holotrace-verdict"),
            facts_block(headline_facts(_diagnosed(session, selection)) if is_one else ()),
            *([table_box(_CPU_TABLE, table, selection)] if len(table.frame) else []),
        ]
    )


def _answers(session: Session, selection: Selection) -> Component:
    """Return the answers to the questions in `_ANSWERS`, each with a link to its page; skip questions without data."""
    said = [(name, _answer(name, session, selection)) for name in _ANSWERS]
    items = [html.Li([shown(sentence), " ", _link(name, selection)]) for name, sentence in said if sentence]
    title = dmc.Title("At a glance", order=2, size="h4")
    return _card(title, html.Ul(items, className="holotrace-findings")) if items else html.Div()


def _answer(name: str, session: Session, selection: Selection) -> str:
    """Return the answer of an analysis in one sentence; an empty string if it has no data."""
    try:
        result = session.result(selection.scope, name)
    except HolotraceError:
        return ""
    return "" if result.answer in result.findings else _ANSWERS[name](result)


def _figure(name: str, session: Session, selection: Selection) -> Component:
    """Return the figure of an analysis with a link to its page, or nothing if its input was not recorded."""
    try:
        result = session.result(selection.scope, name)
    except HolotraceError:
        return html.Div()
    figure = figure_of(name, result, theme=selection.option("theme", "light"))
    return _card(graph(name, figure), _link(name, selection))


def _advice(session: Session, selection: Selection) -> Component:
    try:
        known = _diagnosed(session, selection)
    except HolotraceError:
        return html.Div()
    if not covers_one_job(session, selection.scope):
        return html.Div()
    return _card(
        dmc.Title("What costs time, and what to do", order=2, size="h4"),
        found_block(known, selection) if len(known.per_finding) else dmc.Text(shown(known.answer)),
        *caveats(known.findings, kind="check that could not run", kinds="checks that could not run"),
        _link(DIAGNOSIS, selection),
    )


def _gpus(session: Session, selection: Selection) -> Component:
    try:
        table = _use_of_gpus(session, selection)
    except HolotraceError:
        return html.Div()
    return _card(table_box(_GPU_TABLE, table, selection), _link(_TABLE, selection))


def _use_of_gpus(session: Session, selection: Selection) -> Table:
    view = analysis(_TABLE).views[0]
    return Table("GPU summary", view.table(session.result(selection.scope, _TABLE)), view.telling)


def _cpu_side(session: Session, selection: Selection) -> Table:
    return Table("The CPU side of each rank", verdict(session, selection.scope)[1], "mean_step_ns")


def _diagnosed(session: Session, selection: Selection) -> Diagnosis:
    known: Diagnosis = session.result(selection.scope, DIAGNOSIS)  # type: ignore[assignment]
    return known


def _link(name: str, selection: Selection) -> Component:
    return dcc.Link(f"{analysis(name).title} →", href=selection.at(name).query())


def _card(*children: Component) -> Component:
    return dmc.Paper(list(children), withBorder=True, p="sm", radius="md")


OVERVIEW = Page(
    name="overview",
    title="Overview",
    question=QUESTION,
    section="",
    layout=_layout,
    parts={  # figures first, because diagnosing many ranks takes much longer than drawing them
        **{part: partial(_figure, name) for part, name in _FIGURES.items()},
        "verdict": _verdict,
        "gpus": _gpus,
        "answers": _answers,
        "advice": _advice,
    },
    tables={_CPU_TABLE: _cpu_side, _GPU_TABLE: _use_of_gpus},
)
