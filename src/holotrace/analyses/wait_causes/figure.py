"""The figure of the causes of waiting: how long each rank waits because of each other rank."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.wait_causes.compute import WaitCauses
from holotrace.analyses.wait_causes.question import QUESTION
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
from holotrace.drawing.names import hover_text
from holotrace.drawing.stacked_bars import Heading, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure, template
from holotrace.enrich.job_graph.causes.roles import cause_text, main_causes
from holotrace.units import percent_text

MOST_RANKS = 64
_HEADING = Heading(
    QUESTION.question,
    "Time that each rank (column) waits because another rank (row) took longer, directly or indirectly",
)
_NAMED = 3
_UNKNOWN = "unknown"


def plot_wait_causes(result: WaitCauses, *, top: int = MOST_RANKS, theme: Theme = "light") -> go.Figure:
    """Draw a cell for each rank that causes waiting (row) and each rank that waits (column); the colour shows the cost.

    In jobs with more than `top` ranks, the rows are the `top` ranks that cause the most waiting, and the columns are the `top`
    ranks that wait the most.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_wait_causes(holotrace.wait_causes(small_job()))
    >>> figure.layout.title.text
    'Why do ranks wait for each other, and which rank is the cause?'
    """
    pairs = result.per_pair.with_columns(pl.col("cause_rank").cast(pl.String).fill_null(_UNKNOWN))
    if pairs.is_empty():
        return empty_figure(_HEADING.question, "The recordings show no rank that waits for another rank.", theme)
    rows, columns = _largest(pairs, "cause_rank", top), _largest(pairs, "waiting_rank", top)
    shown = pairs.filter(pl.col("cause_rank").is_in(rows), pl.col("waiting_rank").is_in(list(map(int, columns))))
    size, unit = largest_unit(shown["cost_ns"].to_list())
    figure = go.Figure(_cells(shown, rows, size, _reasons(result)))
    return figure.update_layout(
        template=template(theme),
        title={"text": _HEADING.question, "subtitle": {"text": _HEADING.explanation}},
        height=matrix_height(len(rows)),
        margin=matrix_margin(),
        hovermode="closest",
        annotations=[color_bar_title(f"waiting time ({unit})")],
        xaxis=column_axis(columns, "rank that waits"),
        yaxis=row_axis(rows, "rank that causes it"),
    )


def _largest(pairs: pl.DataFrame, column: str, top: int) -> list[str]:
    """Return the `top` ranks with the largest costs, sorted by rank number; the entry for unknown ranks comes last."""
    sums = pairs.group_by(column).agg(pl.col("cost_ns").sum()).sort("cost_ns", column, descending=[True, False])
    names = sums.head(top)[column].cast(pl.String).to_list()
    return sorted(names, key=lambda name: (name == _UNKNOWN, 0 if name == _UNKNOWN else int(name)))


def _cells(shown: pl.DataFrame, rows: list[str], size: int, reasons: dict[str, str]) -> go.Bar:
    costs = (shown["cost_ns"] / size).to_list()
    marker = {
        "color": costs,
        "cmin": 0,
        "cmax": max(costs),
        "colorscale": LITTLE_TO_MUCH,
        "colorbar": color_bar(),
    }
    hovers = [
        f"rank {waiting} waits {exact_duration(cost_ns)} because of rank {cause}<br>{reasons.get(cause, '')}"
        for cause, waiting, cost_ns in shown.select("cause_rank", "waiting_rank", "cost_ns").iter_rows()
    ]
    return cells(
        shown["waiting_rank"].cast(pl.String).to_list(),
        shown["cause_rank"].to_list(),
        rows,
        marker=marker,
        hovers=hovers,
    )


def _reasons(result: WaitCauses) -> dict[str, str]:
    """Return the largest causes of each rank, as text."""
    totals = dict(result.per_rank.select("rank", "cost_ns").iter_rows())
    reasons: dict[str, list[str]] = {}
    for row in main_causes(result.per_cause).iter_rows(named=True):
        rank = row["cause_rank"]
        lines = reasons.setdefault(_UNKNOWN if rank is None else str(rank), [])
        if len(lines) < _NAMED:
            total = totals.get(rank) or row["cost_ns"]
            lines.append(f"{percent_text(row['cost_ns'] / total)} {hover_text(cause_text(row))}")
    return {rank: "<br>".join(lines) for rank, lines in reasons.items()}
