"""Stacked bars, one for each device or stream; they are readable for one row and for thousands.

Up to `LYING_ROWS` rows are drawn as horizontal bars with labels. If there are more rows, they are drawn as
thin vertical bars close together, and the axis names every n-th row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import plotly.graph_objects as go
import polars as pl

from holotrace.drawing.category_axis import category_axis
from holotrace.drawing.colors import KIND_COLORS, ink_on
from holotrace.drawing.theme import Theme, template
from holotrace.units import duration_text, percent_text

LYING_ROWS = 40
MOST_BARS = 16
"""Maximum number of rows in a figure that shows only the largest ones."""

MARGIN_HEIGHT = 170
_GAPPED_ROWS = 64
_LABELLED_SHARE = 0.05
_ROW_HEIGHT, _DENSE_ROW_HEIGHT, _FEW_ROWS = 30, 22, 16
_UPRIGHT_HEIGHT = 420

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


@dataclass(frozen=True)
class Part:
    """One part of every bar: its name and colour, and its value and hover text in each row."""

    name: str
    values: Sequence[float]
    hovers: Sequence[str]
    marker: dict[str, Any]
    labels: Sequence[str] = field(default_factory=tuple)
    in_legend: bool = True


@dataclass(frozen=True)
class Heading:
    """The question that a figure answers, and how to read the figure."""

    question: str
    explanation: str


@dataclass(frozen=True)
class ValueAxis:
    """The axis of the values; it ranges from 0 to 100 % if the values are shares."""

    title: str
    is_share: bool

    def settings(self) -> dict[str, Any]:
        """Return the settings of plotly's axis."""
        shares = {"range": [0, 100], "ticksuffix": " %"} if self.is_share else {"rangemode": "tozero"}
        return {"title": {"text": self.title, "standoff": 8}, **shares}


@dataclass(frozen=True)
class Rows:
    """The rows that the bars show: unique keys, and the title of their axis."""

    keys: list[str]
    title: str

    @property
    def are_lying(self) -> bool:
        """Whether the rows are few enough for horizontal bars."""
        return len(self.keys) <= LYING_ROWS


def rows_of(table: pl.DataFrame) -> Rows:
    """Name each row by its rank, its device if any rank has several, and its stream if the table has streams."""
    names = [name for name in ("rank", "device", "stream") if name in table.columns]
    shown = [name for name in names if name != "device" or _has_several_devices(table)]
    if len(table) > LYING_ROWS:
        return Rows([" · ".join(map(str, row)) for row in table.select(shown).iter_rows()], " · ".join(shown))
    keys = [" · ".join(f"{n} {v}" for n, v in row.items()) for row in table.select(shown).iter_rows(named=True)]
    return Rows(keys, "")


def stacked_bars(rows: Rows, parts: Sequence[Part]) -> list[go.Bar]:
    """Return one bar trace for each part."""
    return [_bar(rows, part) for part in parts]


def bar_figure(rows: Rows, parts: Sequence[Part], heading: Heading, values: ValueAxis, theme: Theme) -> go.Figure:
    """Draw stacked bars under a heading."""
    figure = go.Figure(stacked_bars(rows, parts))
    figure.update_layout(**stacked_layout(heading, theme), height=bars_height(rows) + MARGIN_HEIGHT)
    style_axes(figure, rows, values)
    return figure


def stacked_layout(heading: Heading, theme: Theme) -> dict[str, Any]:
    """Return the settings shared by all figures of stacked bars."""
    return {
        "template": template(theme),
        "title": {"text": heading.question, "subtitle": {"text": heading.explanation}, "y": 0.98, "yanchor": "top"},
        "barmode": "stack",
        "uniformtext": {"minsize": 10, "mode": "hide"},
        "margin": {"l": 16, "r": 24, "t": 104, "b": 48},
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    }


def bars_height(rows: Rows) -> int:
    """Return the height of the bars alone, in pixels."""
    if not rows.are_lying:
        return _UPRIGHT_HEIGHT - MARGIN_HEIGHT
    return max(2, len(rows.keys)) * (_ROW_HEIGHT if len(rows.keys) <= _FEW_ROWS else _DENSE_ROW_HEIGHT)


def style_axes(figure: go.Figure, rows: Rows, values: ValueAxis, **where: int) -> None:
    """Name the axes, label only some rows if there are many, and let the hover show all parts of a bar."""
    if rows.are_lying:
        figure.update_xaxes(**values.settings(), **where)
        figure.update_yaxes(**row_axis(rows), autorange="reversed", **where)
        figure.update_layout(hovermode="y unified", bargap=0.25)
    else:
        figure.update_yaxes(**values.settings(), **where).update_xaxes(**row_axis(rows), **where)
        figure.update_layout(hovermode="x unified", bargap=0.15 if len(rows.keys) <= _GAPPED_ROWS else 0)


def row_axis(rows: Rows) -> dict[str, Any]:
    """Return the settings of the axis with the names of the rows, or with some of the names if there are many rows."""
    return {**category_axis(rows.keys, rows.title), "ticklabelstandoff": 6}


def largest_unit(values_ns: Sequence[float]) -> tuple[int, str]:
    """Return the unit of an axis: the largest unit in which the longest duration is at least 1."""
    longest = max(values_ns, default=0)
    return next(((size, unit) for size, unit in _UNITS if longest >= size), _UNITS[-1])


def exact_duration(duration_ns: float) -> str:
    """Format a duration, first rounded and then in nanoseconds: `6.42 ms (6,419,000 ns)`."""
    return f"{duration_text(duration_ns)} ({duration_ns:,.0f} ns)"


def share_hovers(durations_ns: Sequence[int], fractions: Sequence[float | None]) -> list[str]:
    """Format durations with their shares: `49.3 % · 6.42 ms (6,419,000 ns)`."""
    pairs = zip(durations_ns, fractions, strict=True)
    return [f"{percent_text(fraction)} · {exact_duration(duration)}" for duration, fraction in pairs]


def share_labels(fractions: Sequence[float | None]) -> list[str]:
    """Format shares as labels inside bars; the label of a narrow part is empty."""
    return [f"{100 * fraction:.0f} %" if fraction and fraction >= _LABELLED_SHARE else "" for fraction in fractions]


def percentages(fractions: pl.Series) -> list[float]:
    """Convert fractions to percentages; unknown fractions become 0."""
    return [100 * value for value in fractions.fill_null(0.0).to_list()]


def state_marker(kinds: Sequence[str]) -> dict[str, Any]:
    """Return the fill of a state's bar: the colour of its kind of work, or hatching if several kinds run at once."""
    colors = [KIND_COLORS[kind] for kind in kinds]
    if len(colors) == 1:
        return {"color": colors[0]}
    shape: Literal["/", "x"] = "/" if len(colors) == 2 else "x"  # noqa: PLR2004 -- two kinds, or more
    return {"color": colors[0], "pattern": {"shape": shape, "fgcolor": colors[1], "bgcolor": colors[0], "size": 7}}


def _has_several_devices(table: pl.DataFrame) -> bool:
    return table.group_by("rank").agg(pl.col("device").n_unique()).get_column("device").max() != 1


def _bar(rows: Rows, part: Part) -> go.Bar:
    positions = {"x": part.values, "y": rows.keys} if rows.are_lying else {"x": rows.keys, "y": part.values}
    return go.Bar(
        **positions,
        name=part.name,
        legendgroup=part.name,
        orientation="h" if rows.are_lying else "v",
        marker={"line": {"width": 0}, **part.marker},
        customdata=part.hovers,
        hovertemplate=f"{part.name}: %{{customdata}}<extra></extra>",
        text=part.labels if part.labels and rows.are_lying else None,
        textposition="inside",
        insidetextanchor="middle",
        insidetextfont={"color": ink_on(part.marker["color"])},
        textangle=0,
        showlegend=part.in_legend,
    )
