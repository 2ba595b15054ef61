"""The components that pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import dash_mantine_components as dmc
import plotly.graph_objects as go
from dash import dcc, html
from dash.development.base_component import Component

from holotrace.drawing.names import printable

MOST_FINDINGS = 12


def title_block(title: str, question: str) -> Component:
    """Return the title of a page and the question that it answers."""
    return html.Header([dmc.Title(title, order=2), dmc.Text(question, c="dimmed")])


def definitions(terms: Sequence[tuple[str, str]]) -> Component:
    """Return a folded list of terms with their definitions."""
    rows = [part for term, meaning in terms for part in (html.Dt(term), html.Dd(meaning))]
    return html.Details([html.Summary("What the words mean"), html.Dl(rows)], className="holotrace-details")


def python_block(code: str) -> Component:
    """Show Python code that returns the same result, folded, with a button that copies it."""
    copy = dcc.Clipboard(content=code, title="copy", className="holotrace-copy")
    return html.Details(
        [html.Summary("The same in Python"), html.Div([html.Pre(code), copy], className="holotrace-code")],
        className="holotrace-details",
    )


def findings(sentences: Iterable[str]) -> list[Component]:
    """List findings; those after the first `MOST_FINDINGS` are folded."""
    items = [html.Li(printable(sentence)) for sentence in sentences]
    if not items:
        return []
    more = items[MOST_FINDINGS:]
    folded = [html.Details([html.Summary(f"{len(more):,} more"), html.Ul(more)], className="holotrace-details")]
    return [html.Ul(items[:MOST_FINDINGS], className="holotrace-findings"), *(folded if more else [])]


def graph(name: str, figure: go.Figure) -> Component:
    """Show a figure; its colours follow those of the page."""
    height = figure.layout.height or 420
    return dcc.Graph(
        id={"type": "figure", "name": name},
        figure=figure,
        config={"displaylogo": False, "responsive": True},
        style={"height": f"{height}px"},
    )
