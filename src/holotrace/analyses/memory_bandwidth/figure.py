"""The figure of memory bandwidth: how fast each device copied in each direction."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.memory_bandwidth.compute import MemoryBandwidth
from holotrace.analyses.memory_bandwidth.question import QUESTION
from holotrace.drawing.colors import (
    DEVICE_TO_DEVICE,
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    MEMSET,
    PEER_TO_PEER,
    UNKNOWN_COPY,
)
from holotrace.drawing.stacked_bars import MARGIN_HEIGHT, Heading, Part, ValueAxis, bar_figure, exact_duration, rows_of
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import BANDWIDTHS, bandwidth_text, counted, size_text

_HEADING = Heading(
    QUESTION.question,
    "Mean bandwidth of each device while it copies, by direction",
)
_COLORS = {
    "Memcpy HtoD": HOST_TO_DEVICE,
    "Memcpy DtoH": DEVICE_TO_HOST,
    "Memcpy DtoD": DEVICE_TO_DEVICE,
    "Memcpy PtoP": PEER_TO_PEER,
    "Memset": MEMSET,
}
_BAR_HEIGHT = 18
_LABEL_PX = 11


def plot_memory_bandwidth(result: MemoryBandwidth, *, theme: Theme = "light") -> go.Figure:
    """Draw a group of bars for each device with its mean bandwidth for each kind of copy.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_memory_bandwidth(holotrace.memory_bandwidth(small_job()))
    >>> [bars.name for bars in figure.data]
    ['Memcpy HtoD']
    """
    table = result.time_weighted.with_columns(pl.col("mean_bytes_per_s").fill_null(0.0))
    fastest = max(table["mean_bytes_per_s"], default=0.0)
    if not fastest:
        reason = "The size of every copy is unknown." if len(table) else "Nothing is copied."
        return empty_figure(_HEADING.question, reason, theme)
    devices = table.select("rank", "device").unique(maintain_order=True)
    size, unit = next((size, unit) for size, unit in BANDWIDTHS if fastest >= size)
    kinds = table["name"].unique().sort().to_list()
    parts = [_part(devices, table.filter(pl.col("name") == kind), kind, size) for kind in kinds]
    rows, axis = rows_of(devices), ValueAxis(f"mean bandwidth ({unit})", is_share=False)
    figure = bar_figure(rows, parts, _HEADING, axis, theme).update_layout(barmode="group", uniformtext=None)
    if rows.are_lying:
        figure.update_traces(
            textposition="auto", insidetextanchor="start", textfont_size=_LABEL_PX, constraintext="none"
        )
        figure.update_layout(height=max(2, len(devices) * len(kinds)) * _BAR_HEIGHT + len(devices) * 10 + MARGIN_HEIGHT)
    return figure


def _part(devices: pl.DataFrame, moved: pl.DataFrame, kind: str, size: int) -> Part:
    """Return the bars of one kind of copy, with zeros for devices without such copies."""
    on_devices = devices.join(moved, on=["rank", "device"], how="left", maintain_order="left")
    rates = on_devices["mean_bytes_per_s"].to_list()
    return Part(
        name=kind,
        values=[(rate or 0) / size for rate in rates],
        hovers=[_hover(row) for row in on_devices.iter_rows(named=True)],
        marker={"color": _COLORS.get(kind, UNKNOWN_COPY)},
        labels=[bandwidth_text(rate) if rate else "" for rate in rates],
    )


def _hover(row: dict[str, int | None]) -> str:
    if row["copy_count"] is None:
        return "none"
    copies, busy = counted(row["copy_count"], "copy", "copies"), exact_duration(row["busy_ns"] or 0)
    if row["bytes"] is None:
        return f"{copies} of unknown size, {busy}"
    mean, most = bandwidth_text(row["mean_bytes_per_s"] or 0), bandwidth_text(row["max_bytes_per_s"] or 0)
    return f"{size_text(row['bytes'])} in {copies}, {busy}; {mean} on average, {most} at most"
