"""Builds the page of each analysis from the catalogue's entry for the analysis."""

from __future__ import annotations

from functools import partial

from dash import html
from dash.development.base_component import Component

from holotrace.catalogue import ANALYSES
from holotrace.figures import figure_of, further_figures_of
from holotrace.questions.question import Analysis, Result
from holotrace.questions.tables import View
from holotrace.web.parts.components import answer_block, caveats, definitions, graph, python_block, title_block
from holotrace.web.parts.page import Page, Table
from holotrace.web.parts.python_code import python_of
from holotrace.web.parts.slow_parts import nothing_found, part
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Session
from holotrace.web.tables.box import table_box


def analysis_pages() -> tuple[Page, ...]:
    """Return one page per analysis."""
    return tuple(map(_page_of, ANALYSES))


def _page_of(question: Analysis) -> Page:
    return Page(
        name=question.name,
        title=question.title,
        question=question.question,
        section=question.section,
        layout=partial(_layout, question),
        parts={question.name: partial(_shown, question)},
        tables=_tables_of(question),
    )


def _layout(question: Analysis, session: Session, selection: Selection) -> Component:
    return html.Article([title_block(question.title, question.question), *_body(question, session, selection)])


def _body(question: Analysis, session: Session, selection: Selection) -> list[Component]:
    code = python_of(question.python, session.run(selection.scope.run), selection.scope)
    return [part(question.name, min_height=420), definitions(question.definitions), python_block(code)]


def _shown(question: Analysis, session: Session, selection: Selection) -> Component:
    """Return the answer, caveats, figures and tables of an analysis.

    If all tables are empty, return only the caveats.
    """
    result = session.result(selection.scope, question.name)
    tables = {name: make(session, selection) for name, make in _tables_of(question).items()}
    if all(table.frame.is_empty() for table in tables.values()):
        return nothing_found(result.findings, selection)
    boxes = [table_box(name, table, selection) for name, table in tables.items()]
    said = [answer_block(result.answer), *caveats(result.findings)]
    return html.Div([*said, *_graphs(question, result, selection), *boxes])


def _graphs(question: Analysis, result: Result, selection: Selection) -> list[Component]:
    name, theme = question.name, selection.option("theme", "light")
    further = further_figures_of(name, result, theme=theme)
    main = graph(name, figure_of(name, result, theme=theme), asked=question.question)
    return [main, *(graph(f"{name}-{part}", figure) for part, figure in further.items())]


def _tables_of(question: Analysis) -> dict[str, partial[Table]]:
    return {f"{question.name}.{number}": partial(_table, question, view) for number, view in enumerate(question.views)}


def _table(question: Analysis, view: View, session: Session, selection: Selection) -> Table:
    return Table(view.caption, view.table(session.result(selection.scope, question.name)), view.telling)
