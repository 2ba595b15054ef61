"""The figure of the step time: the categories of each step, or of each rank's mean step."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.step_time.category_names import name_of
from holotrace.analyses.step_time.compute import CATEGORIES, StepTime
from holotrace.analyses.step_time.question import QUESTION
from holotrace.drawing.colors import CALL, COMMUNICATION, COMPUTATION, DATA_LOADING, MEMORY, MEMSET, OPERATOR, UNKNOWN
from holotrace.drawing.stacked_bars import (
    Heading,
    Part,
    Rows,
    ValueAxis,
    bar_figure,
    largest_unit,
    rows_of,
    share_hovers,
    share_labels,
)
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.errors import UnknownRankError

_QUESTION = QUESTION.question
_EXPLANATION = "Time that fits several categories counts toward the leftmost of them"
_COLORS = dict(
    zip(
        CATEGORIES,
        (COMPUTATION, MEMORY, MEMSET, COMMUNICATION, CALL, DATA_LOADING, OPERATOR, UNKNOWN),
        strict=True,
    )
)


def plot_step_time(result: StepTime, *, rank: int | None = None, theme: Theme = "light") -> go.Figure:
    """Draw the steps of one rank or, if there are several ranks and `rank` is None, the mean step of each rank.

    Raises:
        UnknownRankError: the result has no such rank.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_step_time(holotrace.step_time(small_job()))
    >>> [bars.name for bars in figure.data]
    ['kernels', 'copies', 'memsets', 'communication', 'runtime', 'data loader', 'operators', 'other']
    """
    ranks = result.per_step.get_column("rank").unique().to_list()
    if rank is not None and rank not in ranks:
        raise UnknownRankError.from_available(rank, ranks)
    if not ranks:
        return empty_figure(_QUESTION, "No step was recorded.", theme)
    if rank is None and len(ranks) > 1:
        table = result.mean.pivot("category", index="rank", values="mean_ns", maintain_order=True)
        renamed = table.rename({category: f"{category}_part_ns" for category in CATEGORIES})
        return _figure(renamed, rows_of(table), "The mean step of each rank. ", theme)
    steps = result.per_step.filter(pl.col("rank") == (ranks[0] if rank is None else rank))
    return _figure(steps, _rows_of_steps(steps), f"Rank {steps.item(0, 'rank')}. ", theme)


def _figure(table: pl.DataFrame, rows: Rows, told: str, theme: Theme) -> go.Figure:
    total = table.select(pl.sum_horizontal(f"{category}_part_ns" for category in CATEGORIES)).to_series()
    size, unit = largest_unit(total.to_list())
    parts = [_part(table, total, category, size) for category in CATEGORIES]
    axis = ValueAxis(f"time ({unit})", is_share=False)
    return bar_figure(rows, parts, Heading(_QUESTION, told + _EXPLANATION), axis, theme)


def _part(table: pl.DataFrame, total: pl.Series, category: str, size: int) -> Part:
    times = table.get_column(f"{category}_part_ns")
    shares = pl.select(pl.when(total > 0).then(times / total)).to_series().to_list()
    return Part(
        name=name_of(category),
        values=(times / size).to_list(),
        hovers=share_hovers(times.to_list(), shares),
        marker={"color": _COLORS[category]},
        labels=share_labels(shares),
        in_legend=bool(times.sum()),
    )


def _rows_of_steps(steps: pl.DataFrame) -> Rows:
    """Name each step by its number; if several threads or files use the same number, add a second number."""
    place = pl.int_range(pl.len()).over("step")
    suffix = pl.when(place > 0).then(pl.format(" ({})", place + 1)).otherwise(pl.lit(""))
    keys = steps.select(pl.format("{}{}", "step", suffix)).to_series().to_list()
    rows = Rows(keys, "step")
    return Rows([f"step {key}" for key in keys], "") if rows.are_lying else rows
