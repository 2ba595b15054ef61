"""Horizontal bars for names from the traced program; names that are equal when shortened keep separate bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from holotrace.drawing.names import short_labels
from holotrace.drawing.stacked_bars import MARGIN_HEIGHT, Heading, Part, stacked_layout
from holotrace.drawing.theme import Theme, ink_on

_BAR_HEIGHT = 36


def named_bars(  # noqa: PLR0913 -- the bars and their names
    names: Sequence[str],
    parts: Sequence[Part],
    heading: Heading,
    axis_title: str,
    theme: Theme,
    *,
    labels: Callable[[Sequence[str]], dict[str, str]] = short_labels,
) -> go.Figure:
    """Draw a bar of stacked parts for each name, under the name as shortened by `labels`."""
    keys = [str(position) for position in range(len(names))]
    label_of = labels(names)
    figure = go.Figure([_bar(keys, part) for part in parts])
    height = max(2, len(keys)) * _BAR_HEIGHT + MARGIN_HEIGHT
    figure.update_layout(**stacked_layout(heading, theme), height=height, hovermode="closest")
    figure.update_xaxes(title={"text": axis_title, "standoff": 8}, rangemode="tozero")
    return figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=keys,
        tickmode="array",
        tickvals=keys,
        ticktext=[label_of[name] for name in names],
        range=[len(keys) - 0.4, -0.6],
        ticklabelposition="inside top",
        showgrid=False,
    )


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
