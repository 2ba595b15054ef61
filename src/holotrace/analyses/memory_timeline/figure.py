"""The figure of the memory timeline: allocated bytes of each device over time."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.memory_timeline.compute import MemoryTimeline
from holotrace.analyses.memory_timeline.question import QUESTION
from holotrace.drawing.names import label_text
from holotrace.drawing.stacked_bars import Heading
from holotrace.drawing.theme import (
    COMMUNICATION,
    COMPUTATION,
    KERNEL_WAIT,
    MEMORY,
    OTHER,
    Theme,
    empty_figure,
    template,
)
from holotrace.units import size_text

MOST_POINTS = 2_000
"""Most points of a line; for more events, it shows the highest point of each stretch, so that it keeps all peaks."""

MOST_LINES = 16
_COLORS = (COMPUTATION, COMMUNICATION, MEMORY, OTHER, KERNEL_WAIT)
_GIB = 1 << 30
_HEADING = Heading(
    QUESTION.question,
    "Allocated memory after each memory event; dotted: memory that the allocator reserved, in use or not",
)
_KEYS = ("rank", "device_type", "device")


def plot_memory_timeline(result: MemoryTimeline, *, theme: Theme = "light") -> go.Figure:
    """Draw a line for each device; of many devices, only those with the highest peaks."""
    if result.series.is_empty():
        return empty_figure(_HEADING.question, "No memory events were recorded.", theme)
    shown = result.per_device.sort("peak_bytes", descending=True, maintain_order=True).head(MOST_LINES).sort(_KEYS)
    origin = result.series["time_ns"].min()
    lines = [
        line
        for place, row in enumerate(shown.iter_rows(named=True))
        for line in _lines(row, _of_device(result.series, row, origin), _COLORS[place % len(_COLORS)])
    ]
    return go.Figure(lines, layout=_layout(theme))


def _of_device(series: pl.DataFrame, row: dict[str, Any], origin: Any) -> pl.DataFrame:  # noqa: ANN401 -- polars
    device = series.filter(**{key: row[key] for key in _KEYS})
    return device.with_columns(((pl.col("time_ns") - origin) / 1_000_000).alias("time_ms"))


def _lines(row: dict[str, Any], series: pl.DataFrame, color: str) -> list[go.Scatter]:
    """Draw the allocated and, if known, the reserved memory; both lines share one entry of the legend."""
    name = f"rank {row['rank']} · {row['device_type']}" + (f" {row['device']}" if row["device"] >= 0 else "")
    lines = [_line(name, series, "allocated_bytes", {"width": 1.5, "color": color})]
    if series["reserved_bytes"].max():
        lines.append(_line(name, series, "reserved_bytes", {"width": 1, "color": color, "dash": "dot"}))
    return lines


def _line(name: str, series: pl.DataFrame, column: str, style: dict[str, Any]) -> go.Scatter:
    points, what = _highest(series, column), column.removesuffix("_bytes")
    return go.Scatter(
        x=points["time_ms"].to_list(),
        y=(points[column] / _GIB).to_list(),
        mode="lines",
        line={"shape": "hv", **style},
        name=label_text(name),
        legendgroup=name,
        showlegend=column == "allocated_bytes",
        customdata=[size_text(value) for value in points[column]],
        hovertemplate=f"%{{x:.3f}} ms: %{{customdata}} {what}",
    )


def _highest(series: pl.DataFrame, column: str) -> pl.DataFrame:
    """Keep the highest value of each stretch of events."""
    known = series.select("time_ms", column).drop_nulls()
    if len(known) <= MOST_POINTS:
        return known
    length = -(-len(known) // MOST_POINTS)
    stretches = known.group_by(pl.int_range(pl.len()) // length, maintain_order=True)
    return stretches.agg(pl.all().get(pl.col(column).arg_max())).select("time_ms", column)


def _layout(theme: Theme) -> dict[str, Any]:
    return {
        "template": template(theme),
        "title": {"text": _HEADING.question, "subtitle": {"text": _HEADING.explanation}, "y": 0.98, "yanchor": "top"},
        "margin": {"l": 16, "r": 24, "t": 104, "b": 48},
        "height": 420,
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        "showlegend": True,
        "xaxis": {"title": {"text": "time (ms)", "standoff": 8}},
        "yaxis": {"title": {"text": "memory (GiB)", "standoff": 8}, "rangemode": "tozero"},
    }
