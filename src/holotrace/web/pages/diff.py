"""The page that compares two runs: the changes in one sentence, then the answers to the questions about two traces."""

from __future__ import annotations

from functools import partial

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from holotrace.catalogue import COMPARISONS, analysis
from holotrace.drawing.names import printable
from holotrace.errors import HolotraceError
from holotrace.figures import figure_of
from holotrace.questions.question import Analysis, Result
from holotrace.questions.tables import View
from holotrace.web.pages.changed import changed
from holotrace.web.pages.headline import headline
from holotrace.web.parts.components import (
    answer_block,
    caveats,
    definitions,
    graph,
    labelled,
    python_block,
    title_block,
)
from holotrace.web.parts.page import Page, Table
from holotrace.web.parts.python_code import opening
from holotrace.web.parts.slow_parts import part
from holotrace.web.session.runs import RunInfo
from holotrace.web.session.selection import FIRST_VIEW, Selection
from holotrace.web.session.session import Scope, Session
from holotrace.web.tables.box import table_box

QUESTION = "What changed from one run to the other?"
CONTROL = "control"
"""The option in the address that names the control run; the page's selectors choose the test run."""

_QUESTIONS = tuple(reversed(COMPARISONS))
"""The questions about two traces; the question that aligns the traces comes first."""

_PREFIXES = {"compare_traces": "diff"}
"""The prefix of table names in addresses, for each question whose prefix is not its own name."""


def control_of(session: Session, selection: Selection) -> str:
    """Return the id of the control run.

    By default, it is the run listed before the selected run or, if the selected run is the first, the run after it.
    """
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
        label="control, the run to compare with",
        data=[{"value": run.id, "label": printable(run.name)} for run in session.runs],
        value=control.id,
        allowDeselect=False,
        searchable=True,
        maw=320,
        **{"data-served": f"{CONTROL}={control.id}"},
    )
    swapped = Selection("diff", run=control.id).with_options(**{CONTROL: test.id}).query()
    lines = [
        "import functools",
        "import holotrace",
        "from holotrace.enrich.steps.selections import in_steps, on_devices",
        "",
        *opening("control", control, _control_scope(session, selection)),
        *opening("test", test, selection.scope),
        *(f"{question.name} = holotrace.{question.name}(control, test)" for question in _QUESTIONS),
    ]
    return html.Article(
        [
            title_block("Compare", QUESTION),
            _overviews(control, test),
            dmc.Group([choice, dcc.Link("swap", href=swapped)], align="end"),
            part("changed", min_height=60),
            *(part(question.name, min_height=420) for question in _QUESTIONS),
            definitions(tuple(dict(term for question in _QUESTIONS for term in question.definitions).items())),
            python_block("\n".join(lines)),
        ]
    )


def _overviews(control: RunInfo, test: RunInfo) -> Component:
    """Name both runs, with links to their overviews."""
    return html.P(["test: ", _overview_of(test), ", control: ", _overview_of(control)], className="holotrace-tested")


def _overview_of(run: RunInfo) -> Component:
    """Return the name of a run as a link to its overview."""
    return dcc.Link(printable(run.name), href=Selection(FIRST_VIEW, run=run.id).query())


def _changed(session: Session, selection: Selection) -> Component:
    """Return one sentence about the changes; if the traces cannot be aligned, compare only their headlines."""
    control, test = headline(session, _control_scope(session, selection)), headline(session, selection.scope)
    try:
        operators = _comparison(analysis("compare_operators"), session, selection)
    except HolotraceError:
        operators = None
    return answer_block(changed(control, test, operators))  # type: ignore[arg-type]  # this question returns an OperatorComparison


def _shown(question: Analysis, session: Session, selection: Selection) -> Component:
    result = _comparison(question, session, selection)
    figure = figure_of(question.name, result, theme=selection.option("theme", "light"))
    tables = [table_box(name, table(session, selection), selection) for name, table in _tables_of(question).items()]
    title = dmc.Title(question.title, order=2, size="h3", mt="md")
    said = [answer_block(result.answer), *caveats(result.findings)]
    return html.Section([title, *said, graph(question.name, figure), *tables], **labelled(question.title))


def _comparison(question: Analysis, session: Session, selection: Selection) -> Result:
    control = _control_scope(session, selection)
    key = (question.name, control, session.run(control.run).stamp)
    return session.remembered(selection.scope, key, lambda test: question.compute(session.trace(control), test))


def _control_scope(session: Session, selection: Selection) -> Scope:
    return Scope(control_of(session, selection), selection.ranks, selection.steps, selection.devices)


def _tables_of(question: Analysis) -> dict[str, partial[Table]]:
    prefix = _PREFIXES.get(question.name, question.name)
    return {f"{prefix}.{number}": partial(_table, question, view) for number, view in enumerate(question.views)}


def _table(question: Analysis, view: View, session: Session, selection: Selection) -> Table:
    return Table(view.caption, view.table(_comparison(question, session, selection)), view.telling)


DIFF = Page(
    name="diff",
    title="Compare",
    question=QUESTION,
    section="Files",
    layout=_layout,
    parts={"changed": _changed, **{question.name: partial(_shown, question) for question in _QUESTIONS}},
    tables={name: table for question in _QUESTIONS for name, table in _tables_of(question).items()},
)
