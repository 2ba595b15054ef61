"""The figure of trust: the trusted and the doubtful share of each rank's recording."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.trust.compute import Trust
from holotrace.analyses.trust.question import QUESTION
from holotrace.drawing.colors import DOUBTFUL, TRUSTED
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

_HEADING = Heading(QUESTION.question, "Share of the time between each rank's first and last event")


def plot_trust(result: Trust, *, theme: Theme = "light") -> go.Figure:
    """Draw a bar for each rank: the share of the recording in which no rule is broken, and the share in which one is.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_trust(holotrace.trust(small_job()))
    >>> [bars.name for bars in figure.data]
    ['trusted', 'doubtful']
    """
    table = result.per_rank.filter(pl.col("recorded_ns") > 0)
    if table.is_empty():
        return empty_figure(_HEADING.question, "No rank has events with a duration.", theme)
    doubtful = 1 - table["trusted_fraction"]
    parts = [
        _part("trusted", table["trusted_fraction"], table["recorded_ns"] - table["doubtful_ns"], TRUSTED),
        _part("doubtful", doubtful, table["doubtful_ns"], DOUBTFUL),
    ]
    return bar_figure(
        rows_of(table.select("rank")), parts, _HEADING, ValueAxis("share of the recording", is_share=True), theme
    )


def _part(name: str, fractions: pl.Series, durations: pl.Series, color: str) -> Part:
    return Part(
        name=name,
        values=percentages(fractions),
        hovers=share_hovers(durations.to_list(), fractions.to_list()),
        marker={"color": color},
        labels=share_labels(fractions.to_list()),
    )
