"""The figure of the copies: how much each device copied, in which direction, and how fast."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.memory_bandwidth.compute import MemoryBandwidth
from holotrace.analyses.memory_bandwidth.question import QUESTION
from holotrace.drawing.stacked_bars import Heading, Part, ValueAxis, bar_figure, exact_duration, rows_of
from holotrace.drawing.theme import (
    COMMUNICATION,
    COMPUTATION,
    HOST_WAIT,
    IDLE,
    KERNEL_WAIT,
    MEMORY,
    OTHER,
    Theme,
    empty_figure,
)
from holotrace.units import bandwidth_text, size_text

_HEADING = Heading(
    QUESTION.question,
    "Bytes that each device copied or set, by direction; hover for bandwidths",
)
_COLORS = {
    "Memcpy HtoD": COMMUNICATION,
    "Memcpy DtoH": COMPUTATION,
    "Memcpy DtoD": MEMORY,
    "Memcpy PtoP": HOST_WAIT,
    "Memset": KERNEL_WAIT,
    "Memcpy Unknown": IDLE,
}
_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def plot_memory_bandwidth(result: MemoryBandwidth, *, theme: Theme = "light") -> go.Figure:
    """Draw one bar for each device: the bytes it moved, by kind of copy."""
    table = result.time_weighted.with_columns(pl.col("bytes").fill_null(0))
    if not table.get_column("bytes").sum():
        reason = "The size of every copy is unknown." if len(table) else "Nothing is copied."
        return empty_figure(_HEADING.question, reason, theme)
    devices = table.group_by("rank", "device", maintain_order=True).agg(pl.col("bytes").sum())
    most = devices.get_column("bytes").max()
    size, unit = next((size, unit) for size, unit in _UNITS if isinstance(most, int) and most >= size)
    kinds = table.get_column("name").unique().sort().to_list()
    parts = [_part(devices, table.filter(pl.col("name") == kind), kind, size) for kind in kinds]
    axis = ValueAxis(f"bytes moved ({unit})", is_share=False)
    return bar_figure(rows_of(devices), parts, _HEADING, axis, theme)


def _part(devices: pl.DataFrame, moved: pl.DataFrame, kind: str, size: int) -> Part:
    """Return the bars of one kind of copy, with zeros for devices without such copies."""
    on_devices = devices.select("rank", "device").join(moved, on=["rank", "device"], how="left", maintain_order="left")
    rows = on_devices.iter_rows(named=True)
    values = [(count or 0) / size for count in on_devices.get_column("bytes")]
    return Part(kind, values, [_hover(row) for row in rows], {"color": _COLORS.get(kind, OTHER)})


def _hover(row: dict[str, int]) -> str:
    if row["copy_count"] is None:
        return "none"
    mean, most = bandwidth_text(row["mean_bytes_per_s"]), bandwidth_text(row["max_bytes_per_s"])
    copies = f"{row['copy_count']:,} cop{'y' if row['copy_count'] == 1 else 'ies'}"
    return f"{size_text(row['bytes'])} in {copies}, {exact_duration(row['busy_ns'])}; {mean} on average, {most} at most"
