"""The figure of the GPU summary: how well each device is used, over time or on average."""

from __future__ import annotations

from typing import Any, NamedTuple

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.gpu_summary.compute import GpuSummary
from holotrace.analyses.gpu_summary.question import QUESTION
from holotrace.drawing.colors import SERIES, TENSOR_CORES
from holotrace.drawing.names import label_text
from holotrace.drawing.stacked_bars import Heading, largest_unit, row_axis, rows_of, stacked_layout
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import percent_text

_QUESTION = QUESTION.question
_HEIGHT = 440


class _Metric(NamedTuple):
    """A metric, and how its line or markers look."""

    name: str
    column: str
    color: str
    dash: str
    known: str | None = None
    unknown: str | None = None

    def is_in(self, table: pl.DataFrame) -> bool:
        """Return whether the metric is known in at least one row of the table."""
        return bool(table.get_column(self.column).count())

    def texts(self, table: pl.DataFrame) -> list[str]:
        """Return each value as text.

        If some kernels lack the value, the text includes the known or the unknown share of the kernel time.
        """
        known, unknown = ([None] * len(table) if each is None else table[each] for each in (self.known, self.unknown))
        return list(map(_with_known, table.get_column(self.column), known, unknown))


def _with_known(value: float | None, known: float | None, unknown: float | None) -> str:
    if value is not None and unknown:
        return f"at least {percent_text(value)} ({percent_text(unknown)} of the kernel time unknown)"
    is_part = value is not None and known is not None and known < 1
    return percent_text(value) + (f" (known for {percent_text(known)} of the kernel time)" if is_part else "")


_METRICS = (
    _Metric("utilization", "utilization_fraction", SERIES[0], "solid"),
    _Metric("est. SM efficiency", "sm_efficiency_fraction", SERIES[1], "dash", "sm_efficiency_known_fraction"),
    _Metric("est. achieved occupancy", "occupancy_fraction", SERIES[2], "dot", "occupancy_known_fraction"),
    _Metric(
        *("kernel time on tensor cores", "tensor_core_fraction", TENSOR_CORES, "dashdot"),
        unknown="tensor_core_unknown_fraction",
    ),
)


def plot_gpu_summary(result: GpuSummary, *, device: tuple[int, int] | None = None, theme: Theme = "light") -> go.Figure:
    """Draw the metrics of one device over time, or of all devices side by side.

    Args:
        result: the summary.
        device: rank and device to draw over time. The default draws all devices side by side or, if there is only
            one device, this device over time.
        theme: the theme of the page around the figure.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_gpu_summary(holotrace.gpu_summary(small_job()))
    >>> [lines.name for lines in figure.data]
    ['utilization', 'kernel time on tensor cores']
    """
    devices = result.per_device.select("rank", "device").rows()
    if not devices or (device is not None and device not in devices):
        return empty_figure(_QUESTION, "No matching device runs kernels.", theme)
    chosen = devices[0] if device is None and len(devices) == 1 else device
    if chosen is None:
        return _side_by_side(result.per_device, theme)
    rank, number = chosen
    return _over_time(result.series.filter(rank=rank, device=number), f"Rank {rank}, device {number}", theme)


def _over_time(series: pl.DataFrame, told: str, theme: Theme) -> go.Figure:
    start, end = series.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    size, unit = largest_unit([end - start])
    moments = [*series.get_column("start_ns"), end]
    since = [(moment - start) / size for moment in moments]
    figure = go.Figure([_line(series, since, metric) for metric in _METRICS if metric.is_in(series)])
    figure.update_xaxes(title={"text": f"time since the first step began, {unit}"}, ticklabelstandoff=6)
    return _styled(figure, Heading(_QUESTION, f"{told}, from the first step to the end of the last step"), theme)


def _line(series: pl.DataFrame, since: list[float], metric: _Metric) -> go.Scatter:
    parts = pl.concat([series, series[-1:]])  # repeat the last row to draw the last interval up to its end
    return go.Scatter(
        x=since,
        y=(100 * parts.get_column(metric.column)).to_list(),
        name=metric.name,
        mode="lines",
        line={"color": metric.color, "shape": "hv", "width": 2, "dash": metric.dash},
        customdata=metric.texts(parts),
        hovertemplate=f"{metric.name}: %{{customdata}}<extra></extra>",
    )


def _side_by_side(per_device: pl.DataFrame, theme: Theme) -> go.Figure:
    rows = rows_of(per_device)
    names = [label_text(name or "") for name in per_device.get_column("device_name")]
    markers = [_markers(per_device, rows.keys, names, metric) for metric in _METRICS if metric.is_in(per_device)]
    figure = go.Figure(markers).update_xaxes(**row_axis(rows))
    return _styled(figure, Heading(_QUESTION, "Each device, over all of its steps"), theme)


def _markers(per_device: pl.DataFrame, keys: list[str], names: list[str], metric: _Metric) -> go.Scatter:
    return go.Scatter(
        x=keys,
        y=(100 * per_device.get_column(metric.column)).to_list(),
        name=metric.name,
        mode="markers",
        marker={"color": metric.color, "size": 9},
        cliponaxis=False,
        customdata=[f"{text} {device}" for text, device in zip(metric.texts(per_device), names, strict=True)],
        hovertemplate=f"{metric.name}: %{{customdata}}<extra></extra>",
    )


def _styled(figure: go.Figure, heading: Heading, theme: Theme) -> go.Figure:
    layout: dict[str, Any] = {**stacked_layout(heading, theme), "height": _HEIGHT, "hovermode": "x unified"}
    figure.update_layout(layout, showlegend=True)
    return figure.update_yaxes(range=[0, 102], ticksuffix=" %")
