"""The figure of straggler cost: a heat map of workers and steps."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.straggler_cost.compute import StragglerCost
from holotrace.analyses.straggler_cost.question import QUESTION
from holotrace.drawing.colors import LITTLE_TO_MUCH
from holotrace.drawing.matrices import (
    cells,
    color_bar,
    color_bar_title,
    column_axis,
    matrix_height,
    matrix_margin,
    row_axis,
)
from holotrace.drawing.theme import Theme, empty_figure, template

_EXPLANATION = "Slowdown of the ideal step if only one worker keeps its recorded times"
_LEAST_RANGE = 0.1
"""The colours span at least this range of slowdowns; otherwise, noise would look like large differences."""


def plot_straggler_cost(result: StragglerCost, *, theme: Theme = "light") -> go.Figure:
    """Draw a cell for each rank (row) and step (column); the colour shows the slowdown that this rank alone causes.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_straggler_cost(holotrace.straggler_cost(small_job()))
    >>> figure.layout.title.text
    'How much faster would the job be without stragglers?'
    """
    table = result.per_worker_step.drop_nulls("slowdown")
    if table.is_empty():
        return empty_figure(QUESTION.question, "No step contains operations.", theme)
    ranks, steps = (list(map(str, table[name].unique().sort())) for name in ("rank", "step"))
    return go.Figure(_cells(table, ranks)).update_layout(
        template=template(theme),
        title={"text": QUESTION.question, "subtitle": {"text": _EXPLANATION}},
        height=matrix_height(len(ranks)),
        margin=matrix_margin(),
        hovermode="closest",
        annotations=[color_bar_title("slowdown (ideal step = 1)")],
        xaxis=column_axis(steps, "step"),
        yaxis=row_axis(ranks, "rank"),
    )


def _cells(table: pl.DataFrame, ranks: list[str]) -> go.Bar:
    highest = max(table["slowdown"].max() or 1.0, 1.0 + _LEAST_RANGE)
    marker = {
        "color": table["slowdown"].to_list(),
        "cmin": 1.0,
        "cmax": highest,
        "colorscale": LITTLE_TO_MUCH,
        "colorbar": color_bar(),
    }
    hovers = [
        f"rank {rank}, step {step}: {slowdown:.3f} times the ideal step"
        for rank, step, slowdown in table.select("rank", "step", "slowdown").iter_rows()
    ]
    steps, rows = (table[name].cast(pl.String).to_list() for name in ("step", "rank"))
    return cells(steps, rows, ranks, marker=marker, hovers=hovers)
