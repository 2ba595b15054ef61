"""The figure of the distributed view: the parts of each rank's mean step and of its time in collectives."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from holotrace.analyses.distributed.compute import Distributed
from holotrace.analyses.distributed.question import QUESTION
from holotrace.drawing.colors import COMMUNICATION, COMPUTATION, HIDDEN_COMMUNICATION, IDLE, RANK_WAIT, UNKNOWN
from holotrace.drawing.stacked_bars import (
    MARGIN_HEIGHT,
    Heading,
    Part,
    Rows,
    ValueAxis,
    bars_height,
    largest_unit,
    rows_of,
    share_hovers,
    share_labels,
    stacked_bars,
    stacked_layout,
    style_axes,
)
from holotrace.drawing.theme import Theme, empty_figure

_HEADING = Heading(
    QUESTION.question,
    "What each rank does in its mean step; below, the parts of its time in collectives",
)


@dataclass(frozen=True)
class _Panel:
    """A panel of bars.

    `total` is the column with the length of each bar; `parts` contains the name, column and colour of each part.
    """

    title: str
    total: str
    parts: tuple[tuple[str, str, str], ...]


_PANELS = (
    _Panel(
        "time of a step",
        "step_ns",
        (
            ("computing", "computation_only_ns", COMPUTATION),
            ("computing and communicating", "overlap_ns", HIDDEN_COMMUNICATION),
            ("communicating", "exposed_ns", COMMUNICATION),
            ("neither", "neither_ns", IDLE),
        ),
    ),
    _Panel(
        "time in collectives",
        "collective_ns",
        (
            ("data transfer", "transfer_ns", COMMUNICATION),
            ("waiting for other ranks", "synchronising_ns", RANK_WAIT),
            ("unknown: recorded on no other rank", "unmatched_ns", UNKNOWN),
        ),
    ),
)
_WAITING_TITLE = "Time in collectives: waiting for the last rank, then data transfer"
_BETWEEN_HEIGHT = 120
_TOP_MARGIN = 130


def plot_distributed(result: Distributed, *, step: int | None = None, theme: Theme = "light") -> go.Figure:
    """Draw two bars for each rank: its mean step (or the step with the number `step`), and its time in collectives.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_distributed(holotrace.distributed(small_job()))
    >>> figure.data[0].name
    'computing'
    """
    table = _mean_steps(result) if step is None else result.per_step.filter(pl.col("step") == step)
    table = table.drop_nulls("step_ns")
    if table.is_empty():
        reason = "No rank has a step." if step is None else f"No rank has step {step}."
        return empty_figure(_HEADING.question, reason, theme)
    rows, heading = rows_of(table.select("rank")), _heading(step)
    figure = _panels(rows)
    for row, panel in enumerate(_PANELS, start=1):
        _add_panel(figure, rows, table, panel, row)
    layout = {**stacked_layout(heading, theme), "height": figure.layout.height}
    return figure.update_layout(layout).update_layout(margin_t=_TOP_MARGIN)


def _mean_steps(result: Distributed) -> pl.DataFrame:
    """Return `per_rank` with the column names of `per_step`, which lack the prefix `mean_`."""
    return result.per_rank.rename(lambda name: name.removeprefix("mean_"))


def _heading(step: int | None) -> Heading:
    which = "its mean step" if step is None else f"step {step}"
    return Heading(_HEADING.question, _HEADING.explanation.replace("its mean step", which))


def _panels(rows: Rows) -> go.Figure:
    height = bars_height(rows)
    spacing = _BETWEEN_HEIGHT / (2 * height + _BETWEEN_HEIGHT)
    figure = make_subplots(rows=2, vertical_spacing=spacing, subplot_titles=["", _WAITING_TITLE])
    figure.update_annotations(x=0, xanchor="left", yshift=6, font={"size": 14})
    return figure.update_layout(height=2 * height + _BETWEEN_HEIGHT + MARGIN_HEIGHT)


def _add_panel(figure: go.Figure, rows: Rows, table: pl.DataFrame, panel: _Panel, row: int) -> None:
    totals = table.get_column(panel.total).fill_null(0)
    size, unit = largest_unit(totals.to_list())
    drawn = [
        _part(name, color, table.get_column(column).fill_null(0), totals, size) for name, column, color in panel.parts
    ]
    figure.add_traces(stacked_bars(rows, drawn), rows=row, cols=1)
    style_axes(figure, rows, ValueAxis(f"{panel.title} ({unit})", is_share=False), row=row, col=1)


def _part(name: str, color: str, durations: pl.Series, totals: pl.Series, size: int) -> Part:
    pairs = zip(durations.to_list(), totals.to_list(), strict=True)
    fractions = [duration / total if total else None for duration, total in pairs]
    return Part(
        name=name,
        values=[duration / size for duration in durations.to_list()],
        hovers=share_hovers(durations.to_list(), fractions),
        marker={"color": color},
        labels=share_labels(fractions),
        in_legend=bool(durations.sum()),
    )
