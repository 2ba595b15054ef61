"""Figures with two bars for each name, one for control and one for test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

from holotrace.drawing.colors import CONTROL, TEST
from holotrace.drawing.named_bars import names_above_bars, names_axis
from holotrace.drawing.names import hover_text, label_text, short_labels
from holotrace.drawing.stacked_bars import Heading, exact_duration, largest_unit, stacked_layout
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted

_ROW_HEIGHT = 44
_MARGIN_HEIGHT = 170


@dataclass(frozen=True)
class Side:
    """One of the two traces: its label in the legend, its values, and the hover texts."""

    label: str
    values: Sequence[float]
    hovers: Sequence[str]


def paired_bars(  # noqa: PLR0913 -- bars, names and settings
    names: Sequence[str],
    sides: dict[str, list[int]],
    *,
    by: Literal["duration", "count"],
    heading: Heading,
    theme: Theme = "light",
    labels: Callable[[Sequence[str]], dict[str, str]] = short_labels,
) -> go.Figure:
    """Draw two bars below each name, one per trace; `sides` maps each trace's label to its values, one per name."""
    if not names:
        return empty_figure(heading.question, "Nothing differs.", theme)
    size, title = _scale(sides, by)
    colors = (CONTROL, TEST)
    figure = go.Figure(
        [
            _bars(names, Side(label, [value / size for value in values], _hovers(values, by)), color)
            for (label, values), color in zip(sides.items(), colors, strict=True)
        ]
    )
    figure.update_layout(
        **{**stacked_layout(heading, theme), "barmode": "group"}, height=len(names) * _ROW_HEIGHT + _MARGIN_HEIGHT
    )
    for place, bar in enumerate(figure.data):
        bar.update(offset=0.02 + 0.22 * place, width=0.2)
    figure.update_xaxes(title={"text": title, "standoff": 8}, rangemode="tozero")
    label_of = labels(names)
    figure.update_yaxes(names_axis([str(place) for place in range(len(names))], [label_of[name] for name in names]))
    return names_above_bars(figure, "y", figure.layout.yaxis)


def _scale(sides: dict[str, list[int]], by: Literal["duration", "count"]) -> tuple[int, str]:
    if by == "count":
        return 1, "events"
    size, unit = largest_unit([value for values in sides.values() for value in values])
    return size, f"summed duration ({unit})"


def _hovers(values: Sequence[int], by: Literal["duration", "count"]) -> list[str]:
    return [exact_duration(value) if by == "duration" else f"{counted(value, 'event')}" for value in values]


def _bars(names: Sequence[str], side: Side, color: str) -> go.Bar:
    label = label_text(side.label)
    return go.Bar(
        x=side.values,
        y=[str(position) for position in range(len(names))],
        orientation="h",
        name=label,
        marker={"color": color, "line": {"width": 0}},
        customdata=[f"<b>{hover_text(name)}</b><br>{hover}" for name, hover in zip(names, side.hovers, strict=True)],
        hovertemplate=f"{label}: %{{customdata}}<extra></extra>",
    )
