"""The page of an analysis, and the page of a section that shows several: everything comes from the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dash import html
from dash.development.base_component import Component

from hta.catalogue import ANALYSES, Analysis
from hta.tables import View
from hta.web.components import definitions, findings, graph, python_block, table_box, title_block
from hta.web.page import Page, Table
from hta.web.parts import part
from hta.web.python_line import python_of
from hta.web.session import Session
from hta.web.state import Selection


def analysis_pages() -> tuple[Page, ...]:
    """Return one page for each analysis."""
    return tuple(_page_of((each,), each.name, each.title, each.question, each.section) for each in ANALYSES)


def section_page(section: str, question: str) -> Page:
    """Return the page that shows all analyses of a section below one another."""
    chosen = tuple(each for each in ANALYSES if each.section == section)
    return _page_of(chosen, section.lower(), section, question, section)


def _page_of(chosen: Sequence[Analysis], name: str, title: str, question: str, section: str) -> Page:
    return Page(
        name=name,
        title=title,
        question=question,
        section=section,
        layout=partial(_layout, chosen, title, question),
        parts={each.name: partial(_shown, each) for each in chosen},
        tables={table: make for each in chosen for table, make in _tables_of(each).items()},
    )


def _layout(chosen: Sequence[Analysis], title: str, question: str, session: Session, selection: Selection) -> Component:
    if len(chosen) == 1:
        return html.Article([title_block(title, question), *_body(chosen[0], session, selection)])
    stacked = [html.Section([html.H3(each.title), *_body(each, session, selection)]) for each in chosen]
    return html.Article([title_block(title, question), *stacked])


def _body(each: Analysis, session: Session, selection: Selection) -> list[Component]:
    code = python_of(each.python, session.run(selection.scope.run), selection.scope)
    return [part(each.name, min_height=420), definitions(each.definitions), python_block(code)]


def _shown(each: Analysis, session: Session, selection: Selection) -> Component:
    """Return what an analysis noticed, its figure and its tables."""
    result = session.result(selection.scope, each.name)
    figure = each.plot(result, theme=selection.option("theme", "light"))
    options = dict(selection.options)
    tables = [table_box(name, make(session, selection), options) for name, make in _tables_of(each).items()]
    return html.Div([*findings(result.findings), graph(each.name, figure), *tables])


def _tables_of(each: Analysis) -> dict[str, partial[Table]]:
    return {f"{each.name}.{number}": partial(_table, each, view) for number, view in enumerate(each.views)}


def _table(each: Analysis, view: View, session: Session, selection: Selection) -> Table:
    return Table(view.caption, view.table(session.result(selection.scope, each.name)), view.telling)
