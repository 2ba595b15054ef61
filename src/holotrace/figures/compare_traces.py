"""Figure of a comparison: the names that changed most, control beside test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import plotly.graph_objects as go

from holotrace.figures.names import hover_text, label_text, short_labels
from holotrace.figures.stacked_bars import Heading, exact_duration, largest_unit, stacked_layout
from holotrace.figures.theme import COMPUTATION, IDLE, Theme, empty_figure

if TYPE_CHECKING:
    from holotrace.comparisons.compare_traces import TraceComparison

MOST_NAMES = 20
_ROW_HEIGHT = 44
_MARGIN_HEIGHT = 170

_HEADINGS = {
    "duration": Heading("What takes more or less time?", "Summed durations, of the names that changed most"),
    "count": Heading("What is called more or less often?", "Number of events, of the names that changed most"),
}


@dataclass(frozen=True)
class Side:
    """One of the two traces: what the legend calls it, its bars, and what their hovers say."""

    label: str
    values: Sequence[float]
    hovers: Sequence[str]


def plot_compare_traces(
    result: TraceComparison, *, by: Literal["duration", "count"] = "duration", theme: Theme = "light"
) -> go.Figure:
    """Draw two bars for each of the names that changed most, by their time or by their count."""
    column, difference = ("ns", "difference_ns") if by == "duration" else ("count", "count_difference")
    changed = result.per_name.filter(result.per_name[difference] != 0)
    shown = changed.sort(changed[difference].abs(), descending=True, maintain_order=True).head(MOST_NAMES)
    sides = {label: shown[f"{label}_{column}"].to_list() for label in ("control", "test")}
    return paired_bars(shown["name"].to_list(), sides, by=by, theme=theme)


def paired_bars(
    names: Sequence[str],
    sides: dict[str, list[int]],
    *,
    by: Literal["duration", "count"],
    theme: Theme = "light",
    heading: Heading | None = None,
) -> go.Figure:
    """Draw the bars of two sides, given as `{label: value of each name}`, one under the other for each name."""
    heading = heading or _HEADINGS[by]
    if not names:
        return empty_figure(heading.question, "Nothing differs.", theme)
    size, title = _scale(sides, by)
    colors = (IDLE, COMPUTATION)
    figure = go.Figure(
        [
            _bars(names, Side(label, [value / size for value in values], _hovers(values, by)), color)
            for (label, values), color in zip(sides.items(), colors, strict=True)
        ]
    )
    figure.update_layout(
        **{**stacked_layout(heading, theme), "barmode": "group"}, height=len(names) * _ROW_HEIGHT + _MARGIN_HEIGHT
    )
    figure.update_xaxes(title={"text": title, "standoff": 8}, rangemode="tozero")
    return figure.update_yaxes(**_name_axis(names))


def _scale(sides: dict[str, list[int]], by: Literal["duration", "count"]) -> tuple[int, str]:
    if by == "count":
        return 1, "events"
    size, unit = largest_unit([value for values in sides.values() for value in values])
    return size, f"summed duration ({unit})"


def _hovers(values: Sequence[int], by: Literal["duration", "count"]) -> list[str]:
    return [exact_duration(value) if by == "duration" else f"{value:,} events" for value in values]


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


def _name_axis(names: Sequence[str]) -> dict[str, object]:
    """Place names by their position, under labels that tell them apart."""
    keys, labels = [str(position) for position in range(len(names))], short_labels(names)
    ticks = {"tickmode": "array", "tickvals": keys, "ticktext": [labels[name] for name in names]}
    return {"type": "category", "showgrid": False, "autorange": "reversed", **ticks}
