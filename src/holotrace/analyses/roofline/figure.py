"""The figure of the roofline: rate against intensity on logarithmic axes, with the roof of the device."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.roofline.compute import Roofline
from holotrace.analyses.roofline.question import QUESTION
from holotrace.drawing.colors import COMPUTATION, OTHER, ROOF
from holotrace.drawing.colors import MEMORY as MEMORY_COLOR
from holotrace.drawing.names import hover_text
from holotrace.drawing.stacked_bars import exact_duration
from holotrace.drawing.theme import SURFACES, Theme, empty_figure, template
from holotrace.enrich.device.floors import MEMORY
from holotrace.units import bandwidth_text, counted, operations_text, percent_text

MOST_OPERATORS = 200
_QUESTION = QUESTION.question
_COLORS = {"matrix": COMPUTATION, "vector": OTHER, "copy": MEMORY_COLOR}
_LARGEST_DOT, _SMALLEST_DOT = 40, 6
_SIDE = 4.0  # the logarithmic axis extends beyond the outermost dots by this factor
_FEW_DECADES = 2.2


def plot_roofline(result: Roofline, *, theme: Theme = "light") -> go.Figure:
    """Draw the longest operators as dots whose areas show their times, and the roofs of the first rank's device.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_roofline(holotrace.roofline(small_job()))
    >>> figure.layout.title.text
    'How far is each operator from the limits of the device?'
    """
    dots = _dots(result)
    if dots.is_empty():
        return empty_figure(_QUESTION, "No operator has a known number of FLOPs and bytes.", theme)
    figure = go.Figure(layout={"template": template(theme)})
    figure.add_traces([_trace(dots.filter(pl.col("work") == work), work) for work in _COLORS])
    figure.add_traces(_roofs(result, dots, theme))
    figure.update_layout(
        title={"text": _QUESTION, "subtitle": {"text": _explanation(result)}},
        xaxis={"type": "log", "title": {"text": "intensity (FLOP/byte)"}, **_ticks(dots["flops_per_byte"])},
        yaxis={"type": "log", "title": {"text": "rate (TFLOP/s)"}, "exponentformat": "power"},
        margin={"l": 16, "r": 24},
        legend={"orientation": "h", "y": -0.2},
    )
    return figure


def _dots(result: Roofline) -> pl.DataFrame:
    """Return the operators whose intensity and rate are known, the longest first."""
    known = result.per_operator.filter((pl.col("flops_per_byte") > 0) & (pl.col("flops_per_s") > 0))
    longest = known.sort("busy_ns", "operator", "input_shape", descending=[True, False, False]).head(MOST_OPERATORS)
    most = max(1, longest["busy_ns"].max() or 1)
    size = (pl.col("busy_ns") / most).sqrt() * _LARGEST_DOT
    return longest.with_columns(dot=size.clip(_SMALLEST_DOT))


def _ticks(intensities: pl.Series) -> dict[str, int]:
    """Label only powers of ten if the axis is long, because plotly's labels for 2 and 5 would touch on a phone."""
    decades = math.log10(max(intensities) * _SIDE) - math.log10(min(intensities) / _SIDE)
    return {"dtick": 1} if decades > _FEW_DECADES else {}


def _trace(dots: pl.DataFrame, work: str) -> go.Scatter:
    return go.Scatter(
        x=dots["flops_per_byte"].to_list(),
        y=(dots["flops_per_s"] / 1e12).to_list(),
        mode="markers",
        name={"matrix": "products", "vector": "other arithmetic", "copy": "copies"}[work],
        marker={"size": dots["dot"].to_list(), "color": _COLORS[work], "opacity": 0.65},
        hovertext=[_hover(row) for row in dots.iter_rows(named=True)],
        hoverinfo="text",
        showlegend=not dots.is_empty(),
    )


def _hover(row: dict[str, Any]) -> str:
    lines = [
        f"<b>{hover_text(row['operator'] or 'no operator')}</b>, rank {row['rank']}",
        hover_text((row["input_shape"] or "")[:120]),
        f"{counted(row['call_count'], 'call')}, {exact_duration(row['busy_ns'])}",
        f"{operations_text(row['flops_per_s'])}/s, {bandwidth_text(row['moved_bytes_per_s'])}",
        ""
        if row["roofline_fraction"] is None
        else f"{percent_text(row['roofline_fraction'])} of the roof, bound by {row['bound']}",
        hover_text(row["contradiction"] or ""),
    ]
    return "<br>".join(filter(None, lines))


def _roofs(result: Roofline, dots: pl.DataFrame, theme: Theme) -> list[go.Scatter]:
    """Return the roof of each precision in use: a slope at the memory bandwidth, then the flat peak."""
    first = result.peaks.filter(pl.col("rank") == pl.col("rank").min())
    slopes = first.filter(pl.col("resource") == MEMORY)["peak_bytes_per_s"]
    if slopes.is_empty():
        return []
    used = dots.filter(pl.col("work") == "matrix")["precision"].unique()
    flat = first.filter((pl.col("resource") != MEMORY) & pl.col("resource").is_in(used.implode()) & pl.col("is_matrix"))
    low = min(dots["flops_per_byte"].to_list()) / _SIDE
    high = max(dots["flops_per_byte"].to_list()) * _SIDE
    return [
        _roof(f"{resource} peak", slopes[0], peak, (low, high), theme)
        for resource, peak in flat.select("resource", "peak_flops_per_s").iter_rows()
    ] or [_roof("memory", slopes[0], math.inf, (low, high), theme)]


def _roof(name: str, slope: float, peak: float, ends: tuple[float, float], theme: Theme) -> go.Scatter:
    low, high = ends
    ridge = peak / slope
    places = [low, *([ridge] if low < ridge < high else []), high]
    return go.Scatter(
        x=places,
        y=[min(peak, slope * place) / 1e12 for place in places],
        mode="lines",
        name=name,
        line={"color": ROOF if math.isfinite(peak) else SURFACES[theme].muted, "width": 2},
        hoverinfo="name",
    )


def _explanation(result: Roofline) -> str:
    names = result.per_rank["device_name"].drop_nulls().unique().sort().to_list()
    where = ", ".join(hover_text(name) for name in names) if names else "a device that the file does not name"
    is_attained = result.peaks["source"].str.starts_with("attained").any()
    roof = "the best rates in this trace" if is_attained else "dense peaks from the data sheet"
    return f"Each dot is an operator with its input shapes, on {where}; its area shows the time; roof: {roof}"
