"""The figure of the critical path: the time of each class on each rank, and one path over time."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from holotrace.analyses.critical_path.across_ranks import JobCriticalPath
from holotrace.analyses.critical_path.compute import CriticalPath
from holotrace.analyses.critical_path.question import QUESTION
from holotrace.drawing.colors import PATH_COLORS
from holotrace.drawing.names import hover_text, label_text
from holotrace.drawing.stacked_bars import (
    MARGIN_HEIGHT,
    Heading,
    Part,
    Rows,
    ValueAxis,
    bars_height,
    exact_duration,
    largest_unit,
    percentages,
    rows_of,
    share_hovers,
    share_labels,
    stacked_bars,
    stacked_layout,
    style_axes,
)
from holotrace.drawing.theme import Theme, empty_figure

_HEADING = Heading(QUESTION.question, "Share of the critical path, which is as long as the step")
_NAMES = {"cpu_operator": "CPU operator", "kernel_kernel_delay": "kernel-kernel delay"}
_CLASSES = {name: (_NAMES.get(name, name.replace("_", " ")), color) for name, color in PATH_COLORS.items()}
"""Name and colour of each class, in the order of `PathClass`."""

_JOB_HEADING = Heading("What bounds the step of the job?", "Share of the critical path through all ranks")
_MOST_LANES = 32

_LABEL_PX = 11
_NO_LABEL = "\u00a0"
"""An invisible label for all bars in the lanes. If these bars had no label, plotly.js would not hide the
labels of other bars that are too narrow for them, but shrink these labels to a few pixels."""

_LANE_HEIGHT = 26
_BETWEEN_HEIGHT = 130
_TOP_MARGIN = 130


def plot_critical_path(result: CriticalPath | JobCriticalPath, *, theme: Theme = "light") -> go.Figure:
    """Draw the share of each class in each rank's path and, in lanes below, one path over time.

    The lanes show the path of the rank whose window is the longest. For a path through all ranks, the bars show the
    part of the path on each rank, and the lanes show these parts over time.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_critical_path(holotrace.critical_path(small_job()))
    >>> figure.data[0].name
    'CPU operator'
    """
    if isinstance(result, JobCriticalPath):
        return _plot_job(result, theme)
    if not result.per_rank["duration_ns"].sum():
        return empty_figure(_HEADING.question, "No rank recorded an event with a nonzero duration.", theme)
    rank = result.per_rank.sort("duration_ns", "rank", descending=[True, False]).row(0, named=True)
    path = result.path.filter(rank=rank["rank"])
    shown = {key: named for key, named in _CLASSES.items() if key in set(_occurring(result.per_class))}
    lanes = [key for key in shown if key in set(path["path_class"])]
    rows = rows_of(result.per_rank)
    figure = _panels(rows, len(lanes), f"Rank {rank['rank']}, {label_text(rank['window'])}: the path over time")
    parts = [_part(result.per_class, key, *named) for key, named in shown.items()]
    figure.add_traces(stacked_bars(rows, parts), rows=1, cols=1)
    style_axes(figure, rows, ValueAxis("share of the critical path", is_share=True), row=1, col=1)
    _add_path(figure, path, lanes, rank["start_ns"], rank["duration_ns"])
    layout = {**stacked_layout(_HEADING, theme), "height": figure.layout.height, "hovermode": "closest"}
    return figure.update_layout(layout).update_layout(margin_t=_TOP_MARGIN)


def _plot_job(result: JobCriticalPath, theme: Theme) -> go.Figure:
    step = result.steps.row(0, named=True)
    if not step["duration_ns"]:
        return empty_figure(_JOB_HEADING.question, "No rank recorded an event with a nonzero duration.", theme)
    on_path = result.per_rank.filter(pl.col("total_ns") > 0).sort("total_ns", descending=True).head(_MOST_LANES)
    ranks = on_path.sort("rank")["rank"].to_list()
    per_class = result.per_class.filter(pl.col("rank").is_in(ranks))
    shown = {key: named for key, named in _CLASSES.items() if key in set(_occurring(per_class))}
    rows = rows_of(on_path.sort("rank"))
    figure = _panels(rows, len(ranks), f"{label_text(step['window'])} of the job: the path over time")
    figure.add_traces(
        stacked_bars(rows, [_part(per_class, key, *named) for key, named in shown.items()]), rows=1, cols=1
    )
    style_axes(figure, rows, ValueAxis("share of the critical path", is_share=True), row=1, col=1)
    size, unit = largest_unit([step["duration_ns"]])
    for key in shown:
        figure.add_trace(_job_lane(result.path.filter(path_class=key), key, step["start_ns"], size), row=2, col=1)
    _style_lanes(figure, [f"rank {rank}" for rank in ranks], step["duration_ns"] / size, unit)
    layout = {**stacked_layout(_JOB_HEADING, theme), "height": figure.layout.height, "hovermode": "closest"}
    return figure.update_layout(layout).update_layout(margin_t=_TOP_MARGIN)


def _job_lane(segments: pl.DataFrame, key: str, origin_ns: int, size: int) -> go.Bar:
    """Draw the segments of a class, each in the lane of its rank."""
    return _lane(segments, key, origin_ns, size).update(y=[f"rank {rank}" for rank in segments["rank"]])


def _occurring(per_class: pl.DataFrame) -> pl.Series:
    return per_class.filter(pl.col("total_ns") > 0)["path_class"]


def _part(per_class: pl.DataFrame, key: str, name: str, color: str) -> Part:
    table = per_class.filter(pl.col("path_class") == key).sort("rank")
    fractions = table["fraction"]
    return Part(
        name=name,
        values=percentages(fractions),
        hovers=share_hovers(table["total_ns"].to_list(), fractions.to_list()),
        marker={"color": color},
        labels=share_labels(fractions.to_list()),
    )


def _panels(rows: Rows, lane_count: int, title: str) -> go.Figure:
    heights = [bars_height(rows), max(2, lane_count) * _LANE_HEIGHT]
    spacing = _BETWEEN_HEIGHT / (sum(heights) + _BETWEEN_HEIGHT)
    figure = make_subplots(rows=2, row_heights=heights, vertical_spacing=spacing, subplot_titles=["", title])
    figure.update_annotations(x=0, xanchor="left", yshift=6, font={"size": 14})
    return figure.update_layout(height=sum(heights) + _BETWEEN_HEIGHT + MARGIN_HEIGHT)


def _add_path(figure: go.Figure, path: pl.DataFrame, lanes: list[str], origin_ns: int, window_ns: int) -> None:
    """Draw each segment in the lane of its class."""
    size, unit = largest_unit([window_ns])
    for key in lanes:
        figure.add_trace(_lane(path.filter(pl.col("path_class") == key), key, origin_ns, size), row=2, col=1)
    _style_lanes(figure, [_CLASSES[key][0] for key in lanes], window_ns / size, unit)


def _style_lanes(figure: go.Figure, names: list[str], length: float, unit: str) -> None:
    figure.update_xaxes(title={"text": f"time ({unit})", "standoff": 8}, range=[0, length], row=2, col=1)
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=names,
        autorange="reversed",
        showgrid=False,
        ticklabelstandoff=6,
        row=2,
        col=1,
    )


def _lane(segments: pl.DataFrame, key: str, origin_ns: int, size: int) -> go.Bar:
    name, color = _CLASSES[key]
    starts, durations = segments["start_ns"] - origin_ns, segments["duration_ns"]
    hovers = [
        f"<b>{hover_text(event)}</b><br>{name}, {exact_duration(duration)}"
        for event, duration in zip(segments["name"], durations, strict=True)
    ]
    return go.Bar(
        x=(durations / size).to_list(),
        base=(starts / size).to_list(),
        y=[name] * len(segments),
        orientation="h",
        name=name,
        legendgroup=name,
        showlegend=False,
        marker={"color": color, "line": {"width": 0}},
        customdata=hovers,
        hovertemplate="%{customdata}<extra></extra>",
        text=_NO_LABEL,
        textposition="inside",
        insidetextfont={"size": _LABEL_PX},
    )
