"""The components that pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import dash_mantine_components as dmc
import plotly.graph_objects as go
from dash import dcc, html
from dash.development.base_component import Component

from holotrace.drawing.detached_heading import detached
from holotrace.drawing.names import printable
from holotrace.units import unbroken
from holotrace.web.parts.later import Later

MOST_FINDINGS = 12
_SHORT_CAVEAT = 160


def shown(sentence: str) -> str:
    """Prepare a sentence for a page: remove control characters, and prevent line breaks between numbers and units."""
    return unbroken(printable(sentence))


def title_block(title: str, question: str) -> Component:
    """Return the title of a page and the question that it answers."""
    return html.Header([dmc.Title(title, order=1, size="h2"), dmc.Text(question, c="dimmed")])


def answer_block(sentence: str) -> Component:
    """Return the answer of a page in one sentence."""
    return html.P(shown(sentence), className="holotrace-answer")


def facts_block(facts: Iterable[tuple[str, str, str]]) -> Component:
    """Return a row of numbers, each with its name and a remark."""
    terms = [html.Div([html.Dt(name), html.Dd([html.B(value), html.Small(remark)])]) for name, value, remark in facts]
    return html.Dl(terms, className="holotrace-facts")


def caveats(sentences: Sequence[str], *, kind: str = "caveat", kinds: str = "") -> list[Component]:
    """Return the caveats, folded under a line that says how many there are; a single short caveat is not folded."""
    if not sentences:
        return []
    count = f"{len(sentences):,} {kind if len(sentences) == 1 else kinds or f'{kind}s'}"
    first = shown(sentences[0])
    if len(sentences) == 1 and len(first) <= _SHORT_CAVEAT:
        return [html.P(f"{count}: {first}", className="holotrace-caveat")]
    return [folded(count, *findings(sentences))]


def folded(summary: str, *children: Component) -> Component:
    """Return content that a click on `summary` unfolds."""
    return html.Details([html.Summary(summary), Later([*children], after="figures")], className="holotrace-details")


def labelled(text: str) -> dict[str, Any]:
    """Return the attribute that names an element for screen readers."""
    return {"aria-label": text}


def definitions(terms: Sequence[tuple[str, str]], *, scrolls: bool = False) -> Component:
    """Return a folded list of terms with definitions; with `scrolls`, keyboard users can focus and scroll it."""
    rows = [part for term, meaning in terms for part in (html.Dt(term), html.Dd(meaning))]
    listed = html.Dl(rows, tabIndex="0" if scrolls else None)
    return folded("What the words mean", listed)


def python_block(code: str) -> Component:
    """Return a folded block of Python code that computes the page's result, with a copy button."""
    copy = dcc.Clipboard(content=code, title="copy", className="holotrace-copy")
    return folded("The same in Python", html.Div([html.Pre(code, tabIndex=0), copy], className="holotrace-code"))


def findings(sentences: Iterable[str]) -> list[Component]:
    """Return a list of findings; all after the first `MOST_FINDINGS` are folded."""
    items = [html.Li(shown(sentence)) for sentence in sentences]
    if not items:
        return []
    more = items[MOST_FINDINGS:]
    rest = [folded(f"{len(more):,} more", html.Ul(more))] if more else []
    return [html.Ul(items[:MOST_FINDINGS], className="holotrace-findings"), *rest]


def graph(name: str, figure: go.Figure, *, asked: str = "") -> Component:
    """Return a figure under its title; omit the title if it equals `asked`, the question at the top of the page."""
    alone = detached(figure)
    title = [] if alone.title == asked else [dmc.Title(alone.title, order=2, size="h4")]
    explanation = [dmc.Text(shown(alone.explanation), c="dimmed", size="sm")] if alone.explanation else []
    drawn = dcc.Graph(
        id={"type": "figure", "name": name},
        figure=alone.figure.to_dict(),  # as a dict, because Dash would convert a Figure again for each visitor
        config={"displaylogo": False, "responsive": True},
    )
    heights = {"--height": f"{alone.height}px", "--narrow-height": f"{alone.narrow_height}px"}
    box = html.Div(drawn, style=heights, className="holotrace-graph")
    return html.Section([*title, *explanation, box], className="holotrace-figure", **labelled(alone.title))
