"""The figure of the idle time: what each device or stream waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.idle_time.compute import IdleTime
from holotrace.analyses.idle_time.question import QUESTION
from holotrace.drawing.colors import HOST_WAIT, LAUNCH_DELAY, UNKNOWN, UNRECORDED
from holotrace.drawing.stacked_bars import (
    Heading,
    Part,
    ValueAxis,
    bar_figure,
    largest_unit,
    percentages,
    rows_of,
    share_hovers,
    share_labels,
)
from holotrace.drawing.theme import Theme, empty_figure

_HEADINGS = {
    "device": Heading(
        QUESTION.question,
        "Time in which no stream of the device runs work; each part shows what the next work waited for",
    ),
    "stream": Heading(
        "What were the idle streams waiting for?",
        "Time in which the stream runs no work; each part shows what the next work waited for",
    ),
}
_CATEGORIES = (
    ("the host", "host_wait", HOST_WAIT),
    ("the kernel's start", "kernel_wait", LAUNCH_DELAY),
    ("something else", "other", UNKNOWN),
)
_UNKNOWN = ("unknown", "unknown", UNRECORDED)


def plot_idle_time(
    result: IdleTime, *, by: Literal["device", "stream"] = "device", as_share: bool = False, theme: Theme = "light"
) -> go.Figure:
    """Draw a bar with the idle time of each device or stream by reason, as durations or as shares.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_idle_time(holotrace.idle_time(small_job()))
    >>> [bars.name for bars in figure.data]
    ['the host', "the kernel's start", 'something else']
    """
    table = result.per_device if by == "device" else result.per_stream
    heading = _HEADINGS[by]
    if not table.get_column("idle_ns").sum():
        return empty_figure(heading.question, f"No {by} is idle between its first and its last work.", theme)
    keys = [name for name in ("rank", "device", "stream") if name in table.columns]
    totals = table.group_by(keys, maintain_order=True).agg(pl.col("idle_ns").sum())
    size, unit = largest_unit(totals.get_column("idle_ns").to_list())
    shown = (*_CATEGORIES, _UNKNOWN) if (table["category"] == "unknown").any() else _CATEGORIES
    parts = [_part(_of_category(table, keys, category[1]), category, size, as_share=as_share) for category in shown]
    values = (
        ValueAxis("share of the idle time", is_share=True)
        if as_share
        else ValueAxis(f"idle time ({unit})", is_share=False)
    )
    return bar_figure(rows_of(totals), parts, heading, values, theme)


def _of_category(table: pl.DataFrame, keys: Sequence[str], category: str) -> pl.DataFrame:
    """Return one row for each bar, with the bar's idle time in this category; 0 if there is none."""
    chosen = table.filter(pl.col("category") == category)
    bars = table.select(keys).unique(maintain_order=True)
    return bars.join(chosen, on=keys, how="left", maintain_order="left").with_columns(
        pl.col("idle_ns", "gap_count").fill_null(0)
    )


def _part(rows: pl.DataFrame, category: tuple[str, str, str], size: int, *, as_share: bool) -> Part:
    name, _, color = category
    durations, fractions = rows.get_column("idle_ns").to_list(), rows.get_column("fraction")
    counts = rows.get_column("gap_count").to_list()
    hovers = share_hovers(durations, fractions.to_list())
    return Part(
        name=name,
        values=percentages(fractions) if as_share else [duration / size for duration in durations],
        hovers=[
            f"{hover} in {count:,} gap{'' if count == 1 else 's'}" for hover, count in zip(hovers, counts, strict=True)
        ],
        marker={"color": color},
        labels=share_labels(fractions.to_list()),
    )
