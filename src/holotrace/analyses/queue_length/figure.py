"""The figure of the queues: how long each queue was empty, had waiting work, and was full."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.queue_length.compute import QueueLength
from holotrace.analyses.queue_length.question import QUESTION
from holotrace.drawing.colors import QUEUE_EMPTY, QUEUE_FULL, QUEUED
from holotrace.drawing.stacked_bars import (
    Heading,
    Part,
    ValueAxis,
    bar_figure,
    exact_duration,
    percentages,
    rows_of,
    share_labels,
)
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import percent_text

_HEADING = Heading(
    QUESTION.question,
    "State of each stream's queue, as a share of the time from the first launch to the last start of work",
)
_PARTS = (
    ("nothing waits", "empty", QUEUE_EMPTY),
    ("work waits", "waiting", QUEUED),
    ("the queue is full", "full", QUEUE_FULL),
)


def plot_queue_length(result: QueueLength, *, theme: Theme = "light") -> go.Figure:
    """Draw a bar for each stream with the shares of time in which its queue was empty, had waiting work, or was full.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_queue_length(holotrace.queue_length(small_job()))
    >>> [bars.name for bars in figure.data]
    ['nothing waits', 'work waits', 'the queue is full']
    """
    table = result.time_weighted.filter(pl.col("window_ns") > 0)
    if table.is_empty():
        return empty_figure(_HEADING.question, "No work has a known launch.", theme)
    waiting, full = pl.col("waiting_fraction"), pl.col("full_fraction")
    shares = table.with_columns((1 - waiting).alias("empty"), (waiting - full).alias("waiting"), full.alias("full"))
    parts = [_part(shares, name, key, color) for name, key, color in _PARTS]
    return bar_figure(rows_of(table), parts, _HEADING, ValueAxis("share of the time", is_share=True), theme)


def _part(table: pl.DataFrame, name: str, key: str, color: str) -> Part:
    fractions = table.get_column(key)
    rows = table.select(key, "window_ns", "mean_length", "max_length").iter_rows()
    hovers = [
        f"{percent_text(share)} · {exact_duration(share * window)}; {mean:.2f} queued on average, {most:,} at most"
        for share, window, mean, most in rows
    ]
    return Part(name, percentages(fractions), hovers, {"color": color}, share_labels(fractions.to_list()))
