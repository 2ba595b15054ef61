"""The figure of the launches: three panels show how long the costly launches are."""

from __future__ import annotations

from typing import NamedTuple

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from holotrace.analyses.launch_statistics.compute import LaunchStatistics
from holotrace.analyses.launch_statistics.question import QUESTION
from holotrace.drawing.theme import HOST_WAIT, IDLE, KERNEL_WAIT, Theme, empty_figure, template
from holotrace.units import duration_text

_QUESTION = QUESTION.question
_EXPLANATION = "Number of launches, over all ranks, in each class of length"
_HEIGHT = 640


class _Panel(NamedTuple):
    measure: str
    title: str
    color: str


_PANELS = (
    _Panel("short_kernel", "Kernels shorter than their launch: time of the kernel", KERNEL_WAIT),
    _Panel("slow_call", "Launches slower than the cutoff: time of the call", HOST_WAIT),
    _Panel("late_start", "Starts later than the cutoff: time from the call's end to the start", IDLE),
)


def plot_launch_statistics(result: LaunchStatistics, *, theme: Theme = "light") -> go.Figure:
    """Draw three panels of bars: short kernels, slow calls and late starts of all ranks, in classes of length."""
    if result.lengths.is_empty():
        return empty_figure(
            _QUESTION, "No kernel is shorter than its launch, and no launch is beyond the cutoffs.", theme
        )
    figure = make_subplots(rows=len(_PANELS), cols=1, subplot_titles=[panel.title for panel in _PANELS])
    for row, panel in enumerate(_PANELS, start=1):
        figure.add_trace(_bars(result, panel), row=row, col=1)
        figure.update_xaxes(type="category", tickangle=0, row=row, col=1)
        figure.update_yaxes(title={"text": "launches"}, row=row, col=1)
    return figure.update_layout(
        template=template(theme),
        title={"text": _QUESTION, "subtitle": {"text": _EXPLANATION}, "y": 0.98, "yanchor": "top"},
        height=_HEIGHT,
        margin={"l": 16, "r": 24, "t": 104, "b": 48},
        showlegend=False,
        bargap=0.1,
    )


def _bars(result: LaunchStatistics, panel: _Panel) -> go.Bar:
    chosen = result.lengths.filter(pl.col("measure") == panel.measure)
    classes = (
        chosen.group_by("from_ns", "to_ns").agg(pl.col("launch_count").sum(), pl.len().alias("ranks")).sort("from_ns")
    )
    names = [
        f"{duration_text(begin)} to {duration_text(end)}" for begin, end in classes.select("from_ns", "to_ns").rows()
    ]
    return go.Bar(
        x=names,
        y=classes["launch_count"].to_list(),
        customdata=[f"on {ranks:,} rank{'' if ranks == 1 else 's'}" for ranks in classes["ranks"]],
        hovertemplate="%{x}: %{y:,} %{customdata}<extra></extra>",
        marker={"color": panel.color, "line": {"width": 0}},
        name=panel.title,
    )
