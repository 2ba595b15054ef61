"""The figure of parallelism: the exposed communication of each rank, by axis, waiting apart from transfer."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.parallelism.compute import Parallelism
from holotrace.analyses.parallelism.question import QUESTION
from holotrace.drawing.stacked_bars import Heading, Part, ValueAxis, bar_figure, exact_duration, largest_unit, rows_of
from holotrace.drawing.theme import AXIS_COLORS, Theme, empty_figure
from holotrace.enrich.across_ranks.axes import AXES

_HEADING = Heading(
    QUESTION.question, "Communication that no computation hides, by axis; hatched: waiting for other ranks"
)
_KINDS = (("wait_ns", "waiting", {"shape": "/", "size": 6, "solidity": 0.4}), ("transfer_ns", "transfer", {}))


def plot_parallelism(result: Parallelism, *, theme: Theme = "light") -> go.Figure:
    """Draw one bar for each rank: waiting and transfer on each axis."""
    table = result.per_axis
    if not table["exposed_ns"].sum():
        return empty_figure(_HEADING.question, "No rank communicates without computing at the same time.", theme)
    ranks = table.select("rank").unique().sort("rank")
    totals = table.group_by("rank").agg(pl.col("exposed_ns").sum())["exposed_ns"]
    size, unit = largest_unit(totals.to_list())
    shown = [axis for axis in AXES if table.filter(axis=axis)["exposed_ns"].sum()]
    parts = [
        _part(ranks, table.filter(axis=axis), f"{axis}: {word}", column, {"color": AXIS_COLORS[axis], "pattern": hatching}, size)
        for axis in shown
        for column, word, hatching in _KINDS
    ]
    return bar_figure(rows_of(ranks), parts, _HEADING, ValueAxis(f"exposed communication ({unit})", is_share=False), theme)


def _part(  # noqa: PLR0913 -- what a part is made of
    ranks: pl.DataFrame, table: pl.DataFrame, name: str, column: str, marker: dict[str, Any], size: int
) -> Part:
    durations = ranks.join(table.select("rank", column), on="rank", how="left", maintain_order="left")[column].fill_null(0)
    return Part(
        name=name,
        values=[duration / size for duration in durations],
        hovers=[f"{name} {exact_duration(duration)}" for duration in durations],
        marker=marker,
        in_legend=bool(durations.sum()),
    )
