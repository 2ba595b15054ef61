"""The figure of the launches: histograms of the three kinds of costly launches."""

from __future__ import annotations

import math
from typing import NamedTuple

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from holotrace.analyses.launch_statistics.compute import LaunchStatistics
from holotrace.analyses.launch_statistics.question import QUESTION
from holotrace.drawing.colors import CALL, COMPUTATION, LAUNCH_DELAY
from holotrace.drawing.theme import Theme, empty_figure, template
from holotrace.units import duration_text

_QUESTION = QUESTION.question
_EXPLANATION = "Number of costly launches on all ranks, by kernel length, call length or launch delay"
_HEIGHT = 760
_FEW_TICKS = 5
_ROOM = 1.2


class _Panel(NamedTuple):
    measure: str
    title: str
    length: str
    color: str


_PANELS = (
    _Panel("short_kernel", "Kernels shorter than their launch", "time of the kernel", COMPUTATION),
    _Panel("slow_call", "Launch calls longer than the cutoff", "time of the call", CALL),
    _Panel("late_start", "Launch delays longer than the cutoff", "time from call end to kernel start", LAUNCH_DELAY),
)


def plot_launch_statistics(result: LaunchStatistics, *, theme: Theme = "light") -> go.Figure:
    """Draw three histograms over all ranks: lengths of short kernels, lengths of slow calls, and delays of late starts.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_launch_statistics(holotrace.launch_statistics(small_job()))
    >>> [bars.name for bars in figure.data]
    ['Kernels shorter than their launch', 'Launch calls longer than the cutoff', 'Launch delays longer than the cutoff']
    """
    if result.lengths.is_empty():
        return empty_figure(
            _QUESTION, "No kernel is shorter than its launch, and no call or launch delay exceeds its cutoff.", theme
        )
    titles = [_title(result, panel) for panel in _PANELS]
    figure = make_subplots(rows=len(_PANELS), cols=1, subplot_titles=titles, vertical_spacing=0.16)
    figure.update_annotations(x=0, xanchor="left", font={"size": 14})
    for row, panel in enumerate(_PANELS, start=1):
        figure.add_trace(_bars(result, panel), row=row, col=1)
        figure.update_xaxes(_length_axis(result, panel), row=row, col=1)
        figure.update_yaxes(title={"text": "launches"}, row=row, col=1)
    return figure.update_layout(
        template=template(theme),
        title={"text": _QUESTION, "subtitle": {"text": _EXPLANATION}, "y": 0.98, "yanchor": "top"},
        height=_HEIGHT,
        margin={"l": 16, "r": 24, "t": 104, "b": 48},
        showlegend=False,
    )


def _title(result: LaunchStatistics, panel: _Panel) -> str:
    is_empty = result.lengths.filter(pl.col("measure") == panel.measure).is_empty()
    return f"{panel.title}: none" if is_empty else panel.title


def _length_axis(result: LaunchStatistics, panel: _Panel) -> dict[str, object]:
    """Return a logarithmic axis with ticks at both ends of each bin or, if there are many bins, at each power of ten."""
    chosen = result.lengths.filter(pl.col("measure") == panel.measure)
    ends = sorted({*chosen["from_ns"].clip(1), *chosen["to_ns"]})
    powers = [10**power for power in range(len(str(max(ends, default=1))) + 1)]
    ticks = ends if len(ends) <= _FEW_TICKS else powers
    texts = [duration_text(tick) for tick in ticks]
    title = {"text": panel.length, "standoff": 8}
    room = {"range": [math.log10(ends[0] / _ROOM), math.log10(ends[-1] * _ROOM)]} if ends else {}
    below_zero = {
        "ticklabelstandoff": 6
    }  # otherwise, on a narrow page, the first label touches the 0 of the other axis
    return {
        "type": "log",
        "title": title,
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": texts,
        **below_zero,
        **room,
    }


def _bars(result: LaunchStatistics, panel: _Panel) -> go.Bar:
    chosen = result.lengths.filter(pl.col("measure") == panel.measure)
    sums = chosen.group_by("from_ns", "to_ns").agg(pl.col("launch_count").sum(), pl.len().alias("ranks"))
    classes = sums.sort("from_ns")
    begins, ends = classes["from_ns"].clip(1).to_list(), classes["to_ns"].to_list()
    return go.Bar(
        x=begins,
        y=classes["launch_count"].to_list(),
        offset=0,
        width=[end - begin for begin, end in zip(begins, ends, strict=True)],
        customdata=[_hover(*row) for row in classes.rows()],
        hovertemplate="%{customdata}<extra></extra>",
        marker={"color": panel.color, "line": {"width": 0}},
        name=panel.title,
    )


def _hover(begin: int, end: int, count: int, ranks: int) -> str:
    on = f"on {ranks:,} rank{'' if ranks == 1 else 's'}"
    return f"{duration_text(begin)} to {duration_text(end)}: {count:,} {on}"
