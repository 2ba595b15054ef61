"""The figure of the stragglers: the mean delay of each rank behind the first rank to arrive at a collective."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.stragglers.compute import Stragglers
from holotrace.analyses.stragglers.question import QUESTION
from holotrace.drawing.colors import LATE, MAYBE_LATE, ON_TIME
from holotrace.drawing.stacked_bars import Heading, Part, ValueAxis, bar_figure, exact_duration, largest_unit, rows_of
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted, percent_text

_HEADING = Heading(
    QUESTION.question,
    "Mean delay of each rank, from the first rank's arrival at a collective to this rank's arrival",
)


_IS_LAST = pl.col("is_straggler") & ~pl.col("is_cause")


def plot_stragglers(result: Stragglers, *, theme: Theme = "light") -> go.Figure:
    """Draw a bar with the mean skew of each rank; stragglers have another colour.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_stragglers(holotrace.stragglers(small_job()))
    >>> [bars.name for bars in figure.data]
    ['late: the others wait for it', 'other ranks']
    """
    table = result.per_rank
    if table.is_empty():
        return empty_figure(_HEADING.question, "No collective can be compared between ranks.", theme)
    size, unit = largest_unit(table.get_column("mean_skew_ns").to_list())
    parts = [
        _part(table, "late: the others wait for it", size, LATE, pl.col("is_cause")),
        _part(table, "other ranks", size, ON_TIME, ~pl.col("is_straggler")),
    ]
    if table.select(_IS_LAST.any()).item():
        parts.insert(
            1, _part(table, "last, perhaps because it waited for another rank itself", size, MAYBE_LATE, _IS_LAST)
        )
    axis = ValueAxis(f"mean skew in a collective ({unit})", is_share=False)
    return bar_figure(rows_of(table.select("rank")), parts, _HEADING, axis, theme)


def _part(table: pl.DataFrame, name: str, size: int, color: str, chosen: pl.Expr) -> Part:
    rows = list(table.iter_rows(named=True))
    shown = table.select(chosen).to_series().to_list()
    return Part(
        name=name,
        values=[row["mean_skew_ns"] / size if is_shown else 0 for row, is_shown in zip(rows, shown, strict=True)],
        hovers=[_hover(row) if is_shown else "" for row, is_shown in zip(rows, shown, strict=True)],
        marker={"color": color},
        in_legend=any(shown),
    )


def _hover(row: dict[str, Any]) -> str:
    return (
        f"{exact_duration(row['mean_skew_ns'])} late on average<br>"
        f"last in {row['last_count']:,} of {counted(row['collective_count'], 'collective')}<br>"
        f"waits {exact_duration(row['wait_ns'])}<br>"
        f"the others wait {exact_duration(row['caused_wait_ns'])} for it, {percent_text(row['caused_fraction'])} of all waiting"
    )
