"""The figure of the temporal breakdown: the shares of computing, other work and idle time of each device."""

from __future__ import annotations

import plotly.graph_objects as go

from holotrace.analyses.temporal_breakdown.compute import TemporalBreakdown
from holotrace.analyses.temporal_breakdown.question import QUESTION
from holotrace.drawing.colors import COMPUTATION, IDLE, NON_COMPUTATION, UNRECORDED
from holotrace.drawing.stacked_bars import (
    Heading,
    Part,
    ValueAxis,
    bar_figure,
    percentages,
    rows_of,
    share_hovers,
    share_labels,
)
from holotrace.drawing.theme import Theme, empty_figure

_HEADING = Heading(
    QUESTION.question,
    "Share of the time from the device's first to its last kernel or copy",
)
_PARTS = (
    ("computing", "computation", COMPUTATION),
    ("other work only", "non_computation", NON_COMPUTATION),
    ("idle", "idle", IDLE),
)
_UNKNOWN = ("unknown", "unknown", UNRECORDED)


def plot_temporal_breakdown(result: TemporalBreakdown, *, theme: Theme = "light") -> go.Figure:
    """Draw a bar for each device with the shares of computing, other work only, and idle time.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_temporal_breakdown(holotrace.temporal_breakdown(small_job()))
    >>> [bars.name for bars in figure.data]
    ['computing', 'other work only', 'idle']
    """
    if result.per_device.is_empty():
        return empty_figure(_HEADING.question, "No device has any work.", theme)
    shown = (*_PARTS, _UNKNOWN) if result.per_device["unknown_ns"].sum() else _PARTS
    parts = [_part(result, name, column, color) for name, column, color in shown]
    return bar_figure(rows_of(result.per_device), parts, _HEADING, ValueAxis("share of the time", is_share=True), theme)


def _part(result: TemporalBreakdown, name: str, column: str, color: str) -> Part:
    fractions = result.per_device.get_column(f"{column}_fraction")
    durations = result.per_device.get_column(f"{column}_ns").to_list()
    return Part(
        name=name,
        values=percentages(fractions),
        hovers=share_hovers(durations, fractions.to_list()),
        marker={"color": color},
        labels=share_labels(fractions.to_list()),
    )
