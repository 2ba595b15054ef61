"""Separate a figure from its heading: an HTML heading wraps on narrow screens, and screen readers can read it."""

from __future__ import annotations

from html import unescape
from textwrap import wrap
from typing import NamedTuple

import plotly.graph_objects as go

_HEADING_HEIGHT = 68
"""Height of the title and its explanation in a figure."""

_SMALLEST_MARGIN = 36
_PLOTLYS_MARGIN, _PLOTLYS_HEIGHT = 100, 450
_LEGEND_ROW = 20
_NARROW = 44
"""Number of characters that fit on a line on a phone."""


class Detached(NamedTuple):
    """A figure without its heading.

    title          the question that the figure answers
    explanation    how to read the figure; may be empty
    figure         the figure without heading, as high as the element around it
    height         height of the figure in pixels
    narrow_height  height of the figure on a screen so narrow that each legend entry needs its own line
    """

    title: str
    explanation: str
    figure: go.Figure
    height: int
    narrow_height: int


def detached(figure: go.Figure) -> Detached:
    """Take the heading out of a figure; this modifies the figure."""
    layout = figure.layout
    title, explanation = unescape(layout.title.text or ""), unescape(layout.title.subtitle.text or "")
    margin = _PLOTLYS_MARGIN if layout.margin.t is None else layout.margin.t
    smaller = max(_SMALLEST_MARGIN, margin - _HEADING_HEIGHT)
    height = int(layout.height or _PLOTLYS_HEIGHT) - (margin - smaller)
    if not figure.data:
        figure.for_each_annotation(_wrap)
    figure.update_layout(title=None, height=None, margin_t=smaller)
    return Detached(title, explanation, figure, height, height + _LEGEND_ROW * _legend_entries(figure))


def _wrap(reason: go.layout.Annotation) -> None:
    """Wrap the reason why a figure is empty."""
    reason.text = "<br>".join(wrap(reason.text, _NARROW, break_long_words=False))


def _legend_entries(figure: go.Figure) -> int:
    """Return the number of legend entries after the first."""
    is_shown = figure.layout.showlegend is not False and len(figure.data) > 1
    listed = [trace for trace in figure.data if "showlegend" in trace and trace.showlegend is not False]
    named = {trace.legendgroup or trace.name for trace in listed}
    return max(0, len(named) - 1) if is_shown else 0
