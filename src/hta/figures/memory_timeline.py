"""Figure of the memory timeline: allocated bytes of each device over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import polars as pl

from hta.figures.names import label_text
from hta.figures.stacked_bars import Heading
from hta.figures.theme import COMMUNICATION, COMPUTATION, KERNEL_WAIT, MEMORY, OTHER, Theme, empty_figure, template
from hta.units import size_text

if TYPE_CHECKING:
    from hta.analyses.memory_timeline import MemoryTimeline

MOST_POINTS = 2_000
"""Points of a line; of more events, the highest of each stretch of time is drawn, so that no peak is lost."""

MOST_LINES = 16
_COLORS = (COMPUTATION, COMMUNICATION, MEMORY, OTHER, KERNEL_WAIT)
_GIB = 1 << 30
_HEADING = Heading(
    "How much memory was allocated, and what held it at the peak?",
    "Allocated after each event, from the first memory event on",
)
_KEYS = ("rank", "device_type", "device_id")


def plot_memory_timeline(result: MemoryTimeline, *, theme: Theme = "light") -> go.Figure:
    """Draw a line for each device, those with the highest peaks where there are many."""
    if result.series.is_empty():
        return empty_figure(_HEADING.question, "No memory events were recorded.", theme)
    shown = result.per_device.sort("peak_bytes", descending=True, maintain_order=True).head(MOST_LINES).sort(_KEYS)
    origin = result.series["time_ns"].min()
    lines = [
        _line(row, result.series.filter(**{key: row[key] for key in _KEYS}), origin, _COLORS[place % len(_COLORS)])
        for place, row in enumerate(shown.iter_rows(named=True))
    ]
    return go.Figure(lines, layout=_layout(theme))


def _line(row: dict[str, Any], series: pl.DataFrame, origin: Any, color: str) -> go.Scatter:  # noqa: ANN401 -- polars
    points = _highest(series)
    name = f"rank {row['rank']} · {row['device_type']}" + (f" {row['device_id']}" if row["device_id"] >= 0 else "")
    return go.Scatter(
        x=((points["time_ns"] - origin) / 1_000_000).to_list(),
        y=(points["allocated_bytes"] / _GIB).to_list(),
        mode="lines",
        line={"shape": "hv", "width": 1.5, "color": color},
        name=label_text(name),
        customdata=[size_text(value) for value in points["allocated_bytes"]],
        hovertemplate="%{x:.3f} ms: %{customdata}",
    )


def _highest(series: pl.DataFrame) -> pl.DataFrame:
    """Keep the highest of each stretch of events."""
    if len(series) <= MOST_POINTS:
        return series.select("time_ns", "allocated_bytes")
    length = -(-len(series) // MOST_POINTS)
    stretches = series.group_by(pl.int_range(pl.len()) // length, maintain_order=True)
    highest = pl.col("allocated_bytes").arg_max()
    return stretches.agg(pl.col("time_ns", "allocated_bytes").get(highest)).select("time_ns", "allocated_bytes")


def _layout(theme: Theme) -> dict[str, Any]:
    return {
        "template": template(theme),
        "title": {"text": _HEADING.question, "subtitle": {"text": _HEADING.explanation}, "y": 0.98, "yanchor": "top"},
        "margin": {"l": 16, "r": 24, "t": 104, "b": 48},
        "height": 420,
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        "showlegend": True,
        "xaxis": {"title": {"text": "time (ms)", "standoff": 8}},
        "yaxis": {"title": {"text": "allocated (GiB)", "standoff": 8}, "rangemode": "tozero"},
    }
