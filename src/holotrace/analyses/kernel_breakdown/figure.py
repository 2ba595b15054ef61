"""The figure of the kernel breakdown: the kinds of work that run, alone or together, and the longest kernels."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from holotrace.analyses.kernel_breakdown.compute import KernelBreakdown
from holotrace.analyses.kernel_breakdown.question import QUESTION
from holotrace.drawing.colors import KIND_COLORS, ink_on
from holotrace.drawing.named_bars import names_above_bars, names_axis
from holotrace.drawing.names import hover_text, short_labels
from holotrace.drawing.stacked_bars import (
    MARGIN_HEIGHT,
    Heading,
    Part,
    Rows,
    ValueAxis,
    bars_height,
    exact_duration,
    percentages,
    rows_of,
    share_hovers,
    share_labels,
    stacked_bars,
    stacked_layout,
    state_marker,
    style_axes,
)
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted, duration_text, percent_text

TOP_KERNELS = 15
_KERNEL_HEIGHT = 36
_BETWEEN_HEIGHT = 120
_TOP_MARGIN = 130
_IN_LEGEND = 0.01
_LABEL_ROOM = 1.2
_HEADING = Heading(QUESTION.question, "Share of the busy time in which these kinds of work run, alone or together")


def plot_kernel_breakdown(result: KernelBreakdown, *, top: int = TOP_KERNELS, theme: Theme = "light") -> go.Figure:
    """Draw the shares of the kinds of work on each device and, below, the `top` kernels by summed time.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_kernel_breakdown(holotrace.kernel_breakdown(small_job()))
    >>> figure.data[0].name
    'computation'
    """
    if result.per_state.is_empty():
        return empty_figure(_HEADING.question, "No device has any work.", theme)
    devices = result.per_state.select("rank", "device").unique(maintain_order=True)
    kernels = _over_ranks(result.per_kernel)
    shown = kernels.head(top)
    figure = _panels(rows_of(devices), shown, _kernels_title(kernels, shown))
    _add_states(figure, result.per_state, devices)
    _add_kernels(figure, shown)
    layout = {**stacked_layout(_HEADING, theme), "height": figure.layout.height, "hovermode": "closest"}
    return figure.update_layout(layout).update_layout(margin_t=_TOP_MARGIN)


def _panels(rows: Rows, shown: pl.DataFrame, kernels_title: str) -> go.Figure:
    heights = [bars_height(rows), max(2, len(shown)) * _KERNEL_HEIGHT]
    spacing = _BETWEEN_HEIGHT / (sum(heights) + _BETWEEN_HEIGHT)
    figure = make_subplots(rows=2, row_heights=heights, vertical_spacing=spacing, subplot_titles=["", kernels_title])
    figure.update_annotations(x=0, xanchor="left", yshift=6, font={"size": 14})
    return figure.update_layout(height=sum(heights) + _BETWEEN_HEIGHT + MARGIN_HEIGHT)


def _kernels_title(kernels: pl.DataFrame, shown: pl.DataFrame) -> str:
    left_out = len(kernels) - len(shown)
    rest = percent_text(1 - float(shown.get_column("fraction").sum())) if left_out else ""
    if not left_out:
        return "The kernels by time"
    return f"The {len(shown)} kernels that take the most time; the other {left_out:,} take {rest}"


def _add_states(figure: go.Figure, per_state: pl.DataFrame, devices: pl.DataFrame) -> None:
    rows = rows_of(devices)
    parts = [_state(per_state, devices, *state) for state in _states(per_state).iter_rows()]
    figure.add_traces(stacked_bars(rows, parts), rows=1, cols=1)
    style_axes(figure, rows, ValueAxis("share of the busy time", is_share=True), row=1, col=1)


def _states(per_state: pl.DataFrame) -> pl.DataFrame:
    """Return each combination of kinds of work with its share of all busy time, the largest share first."""
    total = max(1, per_state.get_column("total_ns").sum())
    shares = per_state.group_by("state").agg((pl.col("total_ns").sum() / total).alias("share"))
    return shares.sort(["share", "state"], descending=[True, False])


def _state(per_state: pl.DataFrame, devices: pl.DataFrame, state: str, share: float) -> Part:
    of_state = per_state.filter(pl.col("state") == state).drop("state")
    table = devices.join(of_state, on=["rank", "device"], how="left", maintain_order="left")
    durations, fractions = table.get_column("total_ns").fill_null(0), table.get_column("fraction").fill_null(0.0)
    hovers = share_hovers(durations.to_list(), fractions.to_list())
    return Part(
        name=state,
        values=percentages(fractions),
        hovers=[f"{hover}<br>{key}" for key, hover in zip(rows_of(devices).keys, hovers, strict=True)],
        marker=state_marker(state.split(" + ")),
        labels=share_labels(fractions.to_list()),
        in_legend=share >= _IN_LEGEND,
    )


def _over_ranks(per_kernel: pl.DataFrame) -> pl.DataFrame:
    """Return each kernel's time, calls, shortest and longest call, and share of all kernel time, over all ranks."""
    total = max(1, per_kernel.get_column("total_ns").sum())
    joined = per_kernel.group_by("kernel_kind", "name").agg(
        pl.col("total_ns").sum(),
        pl.col("call_count").sum(),
        pl.col("min_ns").min(),
        pl.col("max_ns").max(),
        pl.col("rank").n_unique().alias("rank_count"),
    )
    return joined.with_columns((pl.col("total_ns") / total).alias("fraction")).sort(
        ["total_ns", "name", "kernel_kind"], descending=[True, False, False]
    )


def _add_kernels(figure: go.Figure, shown: pl.DataFrame) -> None:
    keyed = shown.with_row_index("key").with_columns(pl.col("key").cast(pl.String))
    already = {trace.legendgroup for trace in figure.data if trace.showlegend}
    for kind in KIND_COLORS:
        of_kind = keyed.filter(pl.col("kernel_kind") == kind)
        if not of_kind.is_empty():
            figure.add_trace(_kernels_of_kind(of_kind, kind, in_legend=kind not in already), row=2, col=1)
    longest = max(shown.get_column("total_ns").to_list(), default=0) or 1
    figure.update_xaxes(range=[0, _LABEL_ROOM * longest], visible=False, row=2, col=1)
    figure.update_yaxes(**_kernel_axis(keyed), row=2, col=1)
    names_above_bars(figure, "y2", figure.layout.yaxis2)


def _kernels_of_kind(kernels: pl.DataFrame, kind: str, *, in_legend: bool) -> go.Bar:
    return go.Bar(
        x=kernels.get_column("total_ns").to_list(),
        y=kernels.get_column("key").to_list(),
        orientation="h",
        name=kind,
        legendgroup=kind,
        showlegend=in_legend,
        marker={"color": KIND_COLORS[kind], "line": {"width": 0}},
        customdata=[_kernel_hover(row) for row in kernels.iter_rows(named=True)],
        hovertemplate="%{customdata}<extra></extra>",
        text=[
            f"{percent_text(row['fraction'])}, {duration_text(row['total_ns'])}"
            for row in kernels.iter_rows(named=True)
        ],
        textposition="auto",
        insidetextfont={"color": ink_on(KIND_COLORS[kind])},
        textangle=0,
        cliponaxis=False,
        offset=0.02,
        width=0.4,
    )


def _kernel_hover(row: dict[str, Any]) -> str:
    lines = (
        f"<b>{hover_text(row['name'])}</b>",
        f"{row['kernel_kind']}, {percent_text(row['fraction'])} of all kernel time",
        f"sum {exact_duration(row['total_ns'])}",
        f"{counted(row['call_count'], 'call')} on {counted(row['rank_count'], 'rank')}",
        f"mean per call {exact_duration(row['total_ns'] / row['call_count'])}",
        f"shortest {exact_duration(row['min_ns'])}, longest {exact_duration(row['max_ns'])}",
    )
    return "<br>".join(lines)


def _kernel_axis(keyed: pl.DataFrame) -> dict[str, Any]:
    """Return the axis that lists the kernels, with a short and distinct label for each."""
    keys, names = keyed.get_column("key").to_list(), keyed.get_column("name")
    labels = short_labels(names)
    return names_axis(keys, [labels[name] for name in names])
