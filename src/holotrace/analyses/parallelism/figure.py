"""The figure of parallelism: the exposed communication of each rank, by axis, divided into waiting and transfer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.parallelism.answer import ALL_HIDDEN
from holotrace.analyses.parallelism.compute import Parallelism
from holotrace.analyses.parallelism.question import QUESTION
from holotrace.drawing.colors import AXIS_COLORS
from holotrace.drawing.stacked_bars import Heading, Part, ValueAxis, bar_figure, exact_duration, largest_unit, rows_of
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.enrich.across_ranks.axes import AXES

_HEADING = Heading(
    QUESTION.question,
    "Communication that no computation hides, by axis; hatched: waiting for other ranks; dotted: unknown",
)
_KINDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("wait_ns", "waiting", {"shape": "/", "size": 6, "solidity": 0.4}),
    ("transfer_ns", "transfer", {}),
    ("unmatched_ns", "recorded on no other rank", {"shape": ".", "size": 6, "solidity": 0.3}),
)


def plot_parallelism(result: Parallelism, *, theme: Theme = "light") -> go.Figure:
    """Draw a bar for each rank, divided into waiting and transfer on each axis.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_parallelism(holotrace.parallelism(small_job()))
    >>> [bars.name for bars in figure.data]
    ['unknown: waiting', 'unknown: transfer', 'unknown: recorded on no other rank']
    """
    table = result.per_axis
    if not table["exposed_ns"].sum():
        return empty_figure(_HEADING.question, ALL_HIDDEN, theme)
    ranks = table.select("rank").unique().sort("rank")
    totals = table.group_by("rank").agg(pl.col("exposed_ns").sum())["exposed_ns"]
    size, unit = largest_unit(totals.to_list())
    shown = [axis for axis in AXES if table.filter(axis=axis)["exposed_ns"].sum()]
    parts = [part for axis in shown for part in _parts(ranks, table.filter(axis=axis), axis, size)]
    values = ValueAxis(f"exposed communication ({unit})", is_share=False)
    return bar_figure(rows_of(ranks), parts, _HEADING, values, theme)


def _parts(ranks: pl.DataFrame, of_axis: pl.DataFrame, axis: str, size: int) -> Iterator[Part]:
    """Yield the waiting, transfer and unmatched times on one axis; all are 0 for ranks without this axis."""
    times = ranks.join(of_axis, on="rank", how="left", maintain_order="left")
    for column, word, hatching in _KINDS:
        durations = times[column].fill_null(0)
        yield Part(
            name=f"{axis}: {word}",
            values=[duration / size for duration in durations],
            hovers=[f"{axis}: {word} {exact_duration(duration)}" for duration in durations],
            marker={"color": AXIS_COLORS[axis], "pattern": hatching},
            in_legend=bool(durations.sum()),
        )
