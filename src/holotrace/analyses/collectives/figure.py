"""The figures of the collectives: waiting and transfer of each kind, and the bandwidth between pairs of ranks."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.collectives.compute import Collectives
from holotrace.analyses.collectives.question import QUESTION
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import hover_text
from holotrace.drawing.stacked_bars import Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import HOST_WAIT, OTHER, SURFACES, Theme, empty_figure, template
from holotrace.units import bandwidth_text, percent_text, size_text

TOP_COLLECTIVES = 20
_HEADING = Heading(
    QUESTION.question,
    "Time in collectives, summed over ranks: waiting until the last rank arrives, then transfer",
)
_PAIRS = Heading("How fast are the links between ranks?", "Median bandwidth of the sends from each rank to each other")
_SQUARE = 640
_MOST_MARKER = 26
_SLOW_TO_FAST = [[0.0, "#f3e3b3"], [0.5, "#5aa9a3"], [1.0, "#1d4e79"]]


def plot_collectives(result: Collectives, *, top: int = TOP_COLLECTIVES, theme: Theme = "light") -> go.Figure:
    """Draw a bar for each of the `top` collectives of equal kind, size and group, divided into waiting and transfer."""
    shown = result.per_collective.head(top)
    if shown.is_empty():
        return empty_figure(_HEADING.question, "No rank has collectives.", theme)
    size, unit = largest_unit(shown["collective_ns"].to_list())
    waits = shown["wait_ns"].fill_null(0)
    hovers = [_hover(row) for row in shown.iter_rows(named=True)]
    parts = [
        Part("waiting for the last rank", [wait / size for wait in waits], hovers, {"color": HOST_WAIT}),
        Part("transfer", [rest / size for rest in shown["collective_ns"] - waits], hovers, {"color": OTHER}),
    ]
    return named_bars(_names(shown), parts, _HEADING, f"time over all ranks ({unit})", theme)


def plot_pairs(result: Collectives, *, theme: Theme = "light") -> go.Figure:
    """Draw a square for each sender (row) and receiver (column), coloured by the bandwidth of its sends."""
    pairs = result.per_pair.drop_nulls("median_bytes_per_s")
    if pairs.is_empty():
        return empty_figure(_PAIRS.question, "No sends of known size between two ranks.", theme)
    ranks = sorted({*pairs["source_rank"], *pairs["destination_rank"]})
    figure = go.Figure(_squares(pairs, len(ranks)))
    axis = {"type": "category", "categoryorder": "array", "categoryarray": [str(rank) for rank in ranks]}
    return figure.update_layout(
        template=template(theme),
        title={"text": _PAIRS.question, "subtitle": {"text": _PAIRS.explanation}},
        height=_SQUARE,
        margin={"t": 104},
        xaxis={**axis, "title": {"text": "receiving rank"}, "range": [-0.5, len(ranks) - 0.5]},
        yaxis={**axis, "title": {"text": "sending rank"}, "range": [len(ranks) - 0.5, -0.5]},
        plot_bgcolor=SURFACES[theme].background,
    )


def _squares(pairs: pl.DataFrame, rank_count: int) -> go.Scatter:
    return go.Scatter(
        x=pairs["destination_rank"].cast(pl.String).to_list(),
        y=pairs["source_rank"].cast(pl.String).to_list(),
        mode="markers",
        marker={
            "symbol": "square",
            "size": max(3, min(_MOST_MARKER, _SQUARE // (2 * rank_count))),
            "color": (pairs["median_bytes_per_s"] / 1e9).to_list(),
            "colorscale": _SLOW_TO_FAST,
            "colorbar": {"title": {"text": "GB/s"}},
            "line": {"width": 0},
        },
        customdata=[_pair_hover(row) for row in pairs.iter_rows(named=True)],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _names(shown: pl.DataFrame) -> list[str]:
    """Name each bar by kind, size and group."""
    rows = shown.select("collective", "message_bytes", "dtype", "process_group").iter_rows()
    return [
        " · ".join(
            filter(None, (collective, None if size is None else f"{size_text(size)} {dtype or ''}".strip(), group))
        )
        for collective, size, dtype, group in rows
    ]


def _hover(row: dict[str, Any]) -> str:
    bandwidth = row["bus_bytes_per_s"]
    lines = [
        hover_text(row["process_group"] or "group unknown"),
        f"{row['instance_count']:,} instances, {exact_duration(row['collective_ns'])} over all ranks",
        f"waiting {percent_text(row['wait_fraction'])}: {row['verdict']}",
        f"median transfer {exact_duration(row['median_transfer_ns'])}",
        f"bus bandwidth {bandwidth_text(bandwidth)}" if bandwidth else "bus bandwidth unknown",
    ]
    return "<br>".join(lines)


def _pair_hover(row: dict[str, Any]) -> str:
    return (
        f"rank {row['source_rank']} to rank {row['destination_rank']}: {bandwidth_text(row['median_bytes_per_s'])}<br>"
        f"{row['instance_count']:,} sends, {size_text(row['bytes'] or 0)}"
    )
