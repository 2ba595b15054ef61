"""The figure of the memory timeline: the allocated bytes of each device over time, and of the host in a panel below."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from holotrace.analyses.memory_timeline.compute import MemoryTimeline
from holotrace.analyses.memory_timeline.question import QUESTION
from holotrace.drawing.colors import SERIES
from holotrace.drawing.names import label_text
from holotrace.drawing.stacked_bars import Heading, stacked_layout
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import SIZES, size_text

MOST_POINTS = 2_000
"""Maximum number of points in a line.

If there are more events, the line shows only the highest value of every few consecutive events, to keep its peaks.
"""

MOST_LINES = 16
"""Maximum number of lines in a panel; with more devices, the panel shows those with the highest peaks."""

_HEADING = Heading(
    QUESTION.question,
    "Allocated memory after each memory event; dots: peaks; dotted lines: memory that the allocator reserved",
)
_KEYS = ("rank", "device_type", "device")
_PANEL_HEIGHT, _AROUND = 300, 170


def plot_memory_timeline(result: MemoryTimeline, *, theme: Theme = "light") -> go.Figure:
    """Draw a line with a marked peak for each device; host memory has a separate panel below.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1}
    >>> args = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Addr": 16, "Total Allocated": 512}
    >>> trace = TraceBuilder().event(ts=3, args=args, **place).build()
    >>> figure = holotrace.figures.plot_memory_timeline(holotrace.memory_timeline(trace))
    >>> figure.data[0].name
    'rank 0 · cuda 0'
    """
    if result.series.is_empty():
        return empty_figure(_HEADING.question, "No memory events were recorded.", theme)
    is_host = pl.col("device_type") == "cpu"
    panels = [panel for panel in (result.per_device.filter(~is_host), result.per_device.filter(is_host)) if len(panel)]
    figure = make_subplots(rows=len(panels), shared_xaxes=True, vertical_spacing=0.08)
    for row, panel in enumerate(panels, start=1):
        _add_panel(figure, result.series, _highest_peaks(panel), row)
    height = _PANEL_HEIGHT * len(panels) + _AROUND
    figure.update_layout({**stacked_layout(_HEADING, theme), "height": height, "hovermode": "closest"})
    return figure.update_xaxes(title={"text": "time since the first memory event (ms)"}, row=len(panels), col=1)


def _highest_peaks(devices: pl.DataFrame) -> pl.DataFrame:
    return devices.sort("peak_bytes", descending=True, maintain_order=True).head(MOST_LINES).sort(_KEYS)


def _add_panel(figure: go.Figure, series: pl.DataFrame, devices: pl.DataFrame, row: int) -> None:
    """Add the lines of the devices, in the largest unit that fits their highest value, and label the highest peak."""
    origin = series["time_ns"].min()
    lines = [_of_device(series, device, origin) for device in devices.iter_rows(named=True)]
    highest = max(
        line.select(pl.max_horizontal("allocated_bytes", "reserved_bytes").max()).item() or 0 for line in lines
    )
    unit = next(((size, name) for size, name in SIZES if highest >= size), (1, "B"))
    for place, (device, line) in enumerate(zip(devices.iter_rows(named=True), lines, strict=True)):
        color = SERIES[(place + len(SERIES) // 2 * (row - 1)) % len(SERIES)]
        figure.add_traces(_lines(device, line, color, unit[0]), rows=row, cols=1)
    figure.update_yaxes(title={"text": f"memory ({unit[1]})"}, rangemode="tozero", ticklabelstandoff=6, row=row, col=1)
    _label_highest(figure, lines, unit[0], row)


def _label_highest(figure: go.Figure, lines: list[pl.DataFrame], size: int, row: int) -> None:
    peaks = [_peak(line) for line in lines]
    at, peak = max(peaks, key=lambda at_and_peak: at_and_peak[1])
    figure.add_annotation(
        x=at,
        y=peak / size,
        text=f"peak {size_text(peak)}",
        showarrow=False,
        yshift=12,
        yanchor="bottom",
        row=row,
        col=1,
    )
    figure.update_yaxes(range=[0, 1.2 * max(_top(line) for line in lines) / size], row=row, col=1)


def _top(line: pl.DataFrame) -> int:
    return int(line.select(pl.max_horizontal("allocated_bytes", "reserved_bytes").max()).item() or 1)


def _peak(line: pl.DataFrame) -> tuple[float, int]:
    """Return the time of the peak of allocated memory in ms, and the size of this peak in bytes."""
    place = line["allocated_bytes"].arg_max() or 0
    return float(line["time_ms"][place]), int(line["allocated_bytes"][place])


def _of_device(series: pl.DataFrame, row: dict[str, Any], origin: Any) -> pl.DataFrame:  # noqa: ANN401 -- polars
    device = series.filter(**{key: row[key] for key in _KEYS})
    return device.with_columns(((pl.col("time_ns") - origin) / 1_000_000).alias("time_ms"))


def _lines(row: dict[str, Any], series: pl.DataFrame, color: str, size: int) -> list[go.Scatter]:
    """Draw allocated memory with a mark at its peak and, if known, reserved memory, all under one legend entry."""
    name = f"rank {row['rank']} · {row['device_type']}" + (f" {row['device']}" if row["device"] >= 0 else "")
    lines = [_line(name, series, "allocated_bytes", {"width": 1.5, "color": color}, size)]
    if series["reserved_bytes"].max():
        lines.append(_line(name, series, "reserved_bytes", {"width": 1, "color": color, "dash": "dot"}, size))
    return [*lines, _mark(name, *_peak(series), color, size)]


def _mark(name: str, at: float, peak: int, color: str, size: int) -> go.Scatter:  # the peak of a line
    return go.Scatter(
        x=[at],
        y=[peak / size],
        mode="markers",
        marker={"color": color, "size": 9},
        name=label_text(name),
        legendgroup=name,
        showlegend=False,
        customdata=[size_text(peak)],
        hovertemplate="%{x:.3f} ms: peak of %{customdata}",
    )


def _line(name: str, series: pl.DataFrame, column: str, style: dict[str, Any], size: int) -> go.Scatter:
    points, what = _highest(series, column), column.removesuffix("_bytes")
    return go.Scatter(
        x=points["time_ms"].to_list(),
        y=(points[column] / size).to_list(),
        mode="lines",
        line={"shape": "hv", **style},
        name=label_text(name),
        legendgroup=name,
        showlegend=column == "allocated_bytes",
        customdata=[size_text(value) for value in points[column]],
        hovertemplate=f"%{{x:.3f}} ms: %{{customdata}} {what}",
    )


def _highest(series: pl.DataFrame, column: str) -> pl.DataFrame:
    """Limit the number of points: keep only the highest value of every few consecutive events."""
    known = series.select("time_ms", column).drop_nulls()
    if len(known) <= MOST_POINTS:
        return known
    length = -(-len(known) // MOST_POINTS)
    stretches = known.group_by(pl.int_range(pl.len()) // length, maintain_order=True)
    return stretches.agg(pl.all().get(pl.col(column).arg_max())).select("time_ms", column)
