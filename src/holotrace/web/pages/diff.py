"""The page that compares two runs."""

from __future__ import annotations

from functools import partial

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from holotrace.catalogue import analysis
from holotrace.figures import figure_of
from holotrace.questions.question import Result
from holotrace.questions.tables import View
from holotrace.web.parts.components import definitions, findings, graph, python_block, title_block
from holotrace.web.parts.page import Page, Table
from holotrace.web.parts.python_code import opening
from holotrace.web.parts.slow_parts import part
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Scope, Session
from holotrace.web.tables.box import table_box

_COMPARISON = analysis("compare_traces")
CONTROL = "control"
"""The option of the address that names the run to compare with; the selectors choose the test run."""


def control_of(session: Session, selection: Selection) -> str:
    """Return the run to compare with: the requested run, else the previous run in the list, else the next."""
    known = [run.id for run in session.runs]
    requested = selection.option(CONTROL)
    if requested in known or selection.scope.run not in known:
        return requested
    number = known.index(selection.scope.run)
    return known[number - 1] if number else known[min(1, len(known) - 1)]


def _layout(session: Session, selection: Selection) -> Component:
    control = session.run(control_of(session, selection))
    test = session.run(selection.scope.run)
    choice = dmc.Select(
        id={"type": "choice", "name": CONTROL},
        label="control",
        data=[{"value": run.id, "label": run.name} for run in session.runs],
        value=control.id,
        allowDeselect=False,
        searchable=True,
        w=320,
        **{"data-served": f"{CONTROL}={control.id}"},
    )
    code = "\n".join(
        [
            "import functools",
            "import holotrace",
            "from holotrace.enrich.steps.selections import in_steps, on_devices",
            "",
            *opening("control", control, _control_scope(session, selection)),
            *opening("test", test, selection.scope),
            f"result = holotrace.{_COMPARISON.name}(control, test)",
        ]
    )
    return html.Article(
        [
            title_block(_COMPARISON.title, _COMPARISON.question),
            dmc.Group([choice, dmc.Text(["test: ", dmc.Text(test.name, span=True, fw=600)])], align="end"),
            part("changes", min_height=420),
            definitions(_COMPARISON.definitions),
            python_block(code),
        ]
    )


def _shown(session: Session, selection: Selection) -> Component:
    result = _comparison(session, selection)
    figure = figure_of(_COMPARISON.name, result, theme=selection.option("theme", "light"))
    tables = [table_box(name, make(session, selection), selection) for name, make in DIFF.tables.items()]
    return html.Div([*findings(result.findings), graph("diff", figure), *tables])


def _comparison(session: Session, selection: Selection) -> Result:
    control = _control_scope(session, selection)
    key = ("diff", control, session.run(control.run).stamp)
    return session.remembered(selection.scope, key, lambda test: _COMPARISON.compute(session.trace(control), test))


def _control_scope(session: Session, selection: Selection) -> Scope:
    return Scope(control_of(session, selection), selection.ranks, selection.steps, selection.devices)


def _table(view: View, session: Session, selection: Selection) -> Table:
    return Table(view.caption, view.table(_comparison(session, selection)), view.telling)


DIFF = Page(
    name="diff",
    title=_COMPARISON.title,
    question=_COMPARISON.question,
    section=_COMPARISON.section,
    layout=_layout,
    parts={"changes": _shown},
    tables={f"diff.{number}": partial(_table, view) for number, view in enumerate(_COMPARISON.views)},
)
