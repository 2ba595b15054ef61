"""The figure of straggler cost: a heat map of workers and steps."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.straggler_cost.compute import StragglerCost
from holotrace.analyses.straggler_cost.question import QUESTION
from holotrace.drawing.category_axis import category_axis
from holotrace.drawing.colors import LITTLE_TO_MUCH
from holotrace.drawing.theme import Theme, empty_figure, template

_EXPLANATION = "Slowdown of the ideal step if only one worker keeps its recorded times"
_WIDTH, _TALLEST, _SHORTEST = 720, 700, 300
_AROUND = 190
_MOST_MARKER, _LEAST_MARKER = 40, 3
_LEAST_RANGE = 0.1
"""The colours span at least this range of slowdowns, so that noise looks like noise."""


def plot_straggler_cost(result: StragglerCost, *, theme: Theme = "light") -> go.Figure:
    """Draw a square for each rank (row) and step (column), coloured by the slowdown that this rank alone causes.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_straggler_cost(holotrace.straggler_cost(small_job()))
    >>> figure.layout.title.text
    'How much faster would the job be without stragglers?'
    """
    table = result.per_worker_step.drop_nulls("slowdown")
    if table.is_empty():
        return empty_figure(QUESTION.question, "No rank has operations in a step.", theme)
    ranks, steps = (table[name].unique().sort().to_list() for name in ("rank", "step"))
    height = max(_SHORTEST, min(_TALLEST, _AROUND + _MOST_MARKER * len(ranks)))
    size = min(_MOST_MARKER, (height - _AROUND) / len(ranks), _WIDTH / len(steps))
    figure = go.Figure(_squares(table, max(_LEAST_MARKER, round(0.9 * size))))
    return figure.update_layout(
        template=template(theme),
        title={"text": QUESTION.question, "subtitle": {"text": _EXPLANATION}},
        height=height,
        margin={"t": 104},
        xaxis=category_axis(list(map(str, steps)), "step") | {"range": [-0.5, len(steps) - 0.5]},
        yaxis=category_axis(list(map(str, ranks)), "rank") | {"range": [len(ranks) - 0.5, -0.5]},
    )


def _squares(table: pl.DataFrame, size: int) -> go.Scatter:
    highest = max(table["slowdown"].max() or 1.0, 1.0 + _LEAST_RANGE)
    return go.Scatter(
        x=table["step"].cast(pl.String).to_list(),
        y=table["rank"].cast(pl.String).to_list(),
        mode="markers",
        marker={
            "symbol": "square",
            "size": size,
            "color": table["slowdown"].to_list(),
            "cmin": 1.0,
            "cmax": highest,
            "colorscale": LITTLE_TO_MUCH,
            "colorbar": {"title": {"text": "slowdown"}},
            "line": {"width": 0},
        },
        customdata=[
            f"rank {rank}, step {step}: {slowdown:.3f} times the ideal step"
            for rank, step, slowdown in table.select("rank", "step", "slowdown").iter_rows()
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
