"""Horizontal bars for names from the traced program; names with the same short form keep separate bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go

from holotrace.drawing.colors import ink_on
from holotrace.drawing.names import short_labels
from holotrace.drawing.stacked_bars import MARGIN_HEIGHT, Heading, Part, stacked_layout
from holotrace.drawing.theme import Theme

_BAR_HEIGHT = 36


def named_bars(  # noqa: PLR0913 -- bars, names and settings
    names: Sequence[str],
    parts: Sequence[Part],
    heading: Heading,
    axis_title: str,
    theme: Theme,
    *,
    labels: Callable[[Sequence[str]], dict[str, str]] = short_labels,
) -> go.Figure:
    """Draw a bar of stacked parts for each name, and write the label of the name above the bar."""
    keys = [str(position) for position in range(len(names))]
    label_of = labels(names)
    figure = go.Figure([_bar(keys, part) for part in parts])
    height = max(2, len(keys)) * _BAR_HEIGHT + MARGIN_HEIGHT
    figure.update_layout(**stacked_layout(heading, theme), height=height, hovermode="closest")
    figure.update_xaxes(title={"text": axis_title, "standoff": 8}, rangemode="tozero")
    figure.update_yaxes(names_axis(keys, [label_of[name] for name in names]))
    return names_above_bars(figure, "y", figure.layout.yaxis)


def names_axis(keys: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Return an axis with a row for each key, from top to bottom; `names_above_bars` writes the labels."""
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": keys,
        "tickmode": "array",
        "tickvals": keys,
        "ticktext": labels,
        "range": [len(keys) - 0.4, -0.6],
        "showticklabels": False,
        "showgrid": False,
    }


def names_above_bars(figure: go.Figure, axis: str, rows: go.layout.YAxis) -> go.Figure:
    """Write the label of each row above its bar, left-aligned.

    Tick labels inside the plot (`ticklabelposition="inside top"`) would cover the ticks of the other axis.
    """
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": axis, "yanchor": "bottom", "xshift": 1, "yshift": -1}
    labels = [
        {"text": text, "y": key, "showarrow": False, "align": "left", **place}
        for key, text in zip(rows.tickvals, rows.ticktext, strict=True)
    ]
    return figure.update_layout(annotations=[*figure.layout.annotations, *labels])


def _bar(keys: Sequence[str], part: Part) -> go.Bar:
    return go.Bar(
        x=part.values,
        y=keys,
        orientation="h",
        name=part.name,
        marker={"line": {"width": 0}, **part.marker},
        customdata=part.hovers,
        hovertemplate="%{customdata}<extra></extra>",
        text=part.labels or None,
        textposition="inside",
        insidetextanchor="middle",
        insidetextfont={"color": ink_on(part.marker["color"])},
        textangle=0,
        showlegend=part.in_legend,
        offset=0.02,
        width=0.4,
    )
