"""Figures of collectives: waiting and transfer time by kind, and the bandwidth between pairs of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from holotrace.analyses.collectives.compute import Collectives
from holotrace.analyses.collectives.question import QUESTION
from holotrace.drawing.colors import COMMUNICATION, LATE, RANK_WAIT, SLOW_TO_FAST
from holotrace.drawing.matrices import (
    AROUND_PX,
    cells,
    color_bar,
    color_bar_title,
    column_axis,
    matrix_height,
    matrix_margin,
    row_axis,
)
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import hover_text, label_text
from holotrace.drawing.stacked_bars import Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure, template
from holotrace.units import bandwidth_text, counted, percent_text, size_text

TOP_COLLECTIVES = 20
_HEADING = Heading(
    QUESTION.question,
    "Time in collectives, summed over ranks: waiting until the last rank arrives, then transfer",
)
_PAIRS = Heading(
    "How fast are the links between ranks?",
    "Median bandwidth from each rank to every other rank; red edges mark slow pairs",
)
_MATRICES = {"send": "Sends", "all_to_all": "All-to-alls"}
MOST_CELLS = 10_000
_BETWEEN_PX = 140


def plot_collectives(result: Collectives, *, top: int = TOP_COLLECTIVES, theme: Theme = "light") -> go.Figure:
    """Draw a bar, divided into waiting and transfer, for each of the `top` combinations of kind, size and group.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_collectives(holotrace.collectives(small_job()))
    >>> [bars.name for bars in figure.data]
    ['waiting for the last rank', 'transfer']
    """
    shown = result.per_collective.head(top)
    if shown.is_empty():
        return empty_figure(_HEADING.question, "No rank has collectives.", theme)
    size, unit = largest_unit(shown["collective_ns"].to_list())
    waits = shown["wait_ns"].fill_null(0)
    hovers = [_hover(row) for row in shown.iter_rows(named=True)]
    parts = [
        Part("waiting for the last rank", [wait / size for wait in waits], hovers, {"color": RANK_WAIT}),
        Part("transfer", [rest / size for rest in shown["collective_ns"] - waits], hovers, {"color": COMMUNICATION}),
    ]
    return named_bars(_names(shown), parts, _HEADING, f"time over all ranks ({unit})", theme)


def further_figures(result: Collectives, *, theme: Theme = "light") -> dict[str, go.Figure]:
    """Return the figure of rank pairs; none if no rank sends data of known size to another rank."""
    return {"pairs": plot_pairs(result, theme=theme)} if _with_bandwidth(result).height else {}


def plot_pairs(result: Collectives, *, theme: Theme = "light") -> go.Figure:
    """Draw one matrix for sends and one for all-to-alls, with a cell for each sender (row) and receiver (column).

    The colour of a cell shows the bandwidth, and a red edge marks a slow pair. With more than 10,000 pairs of ranks, the cells
    show pairs of hosts.
    """
    pairs = _with_bandwidth(result)
    if pairs.is_empty():
        return empty_figure(_PAIRS.question, "No transfers of known size between two ranks.", theme)
    shown, what = (pairs, "rank") if len(pairs) <= MOST_CELLS else (_by_host(pairs, result.per_rank), "host")
    matrices = [(kind, shown.filter(collective=kind)) for kind in _MATRICES if kind in shown["collective"]]
    heights = [matrix_height(len(_names_of(matrix))) - AROUND_PX for _, matrix in matrices]
    whole = sum(heights) + _BETWEEN_PX * (len(matrices) - 1)
    spacing = _BETWEEN_PX / whole if len(matrices) > 1 else 0
    figure = make_subplots(rows=len(matrices), row_heights=heights, vertical_spacing=spacing)
    for row, (kind, matrix) in enumerate(matrices, 1):
        _add_matrix(figure, matrix, row, what)
        top = figure.layout[f"yaxis{row if row > 1 else ''}"].domain[1]
        figure.update_layout({_color_axis(row): _colors(top, matrix)})
        figure.add_annotation(color_bar_title(f"{_MATRICES[kind]}: bandwidth (GB/s)", top))
    return figure.update_layout(
        template=template(theme),
        title={"text": _PAIRS.question, "subtitle": {"text": _PAIRS.explanation}},
        height=whole + AROUND_PX,
        margin=matrix_margin(),
        hovermode="closest",
        barmode="overlay",
        showlegend=False,
    )


def _with_bandwidth(result: Collectives) -> pl.DataFrame:
    known = result.per_pair.drop_nulls("median_bytes_per_s").rename(
        {"source_rank": "source", "destination_rank": "destination"}
    )
    return known.with_columns(pl.col("source", "destination").cast(pl.String))


def _by_host(pairs: pl.DataFrame, ranks: pl.DataFrame) -> pl.DataFrame:
    """Combine the pairs of ranks into pairs of hosts, with the median bandwidth and slowdown of the pairs of ranks."""
    hosts = dict(zip(ranks["rank"].cast(pl.String), ranks["host"], strict=True))
    named = pairs.with_columns(pl.col("source", "destination").replace_strict(hosts, default="unknown host"))
    return named.group_by("collective", "source", "destination", maintain_order=True).agg(
        pl.col("instance_count", "bytes").sum(),
        pl.col("median_bytes_per_s", "slowdown").median(),
        pl.col("is_slow").any(),
    )


def _add_matrix(figure: go.Figure, pairs: pl.DataFrame, row: int, what: str) -> None:
    names = {name: label_text(name) for name in _names_of(pairs)}
    figure.add_trace(_cells(pairs, names, row, what), row=row, col=1)
    shown = list(names.values())
    figure.update_xaxes(column_axis(shown, f"receiving {what}"), row=row, col=1)
    figure.update_yaxes(row_axis(shown, f"sending {what}"), row=row, col=1)


def _color_axis(row: int) -> str:
    return "coloraxis" if row == 1 else f"coloraxis{row}"


def _colors(top: float, pairs: pl.DataFrame) -> dict[str, Any]:
    fastest = pairs.select(pl.col("median_bytes_per_s").max()).item() / 1e9
    return {"colorscale": SLOW_TO_FAST, "colorbar": color_bar(top), "cmin": 0, "cmax": fastest}


def _names_of(pairs: pl.DataFrame) -> list[str]:
    """Return the names of all senders and receivers, in order of their numbers."""
    names = {*pairs["source"], *pairs["destination"]}
    return sorted(names, key=lambda name: (int(name) if name.isdecimal() else 0, name))


def _cells(pairs: pl.DataFrame, names: Mapping[str, str], row: int, what: str) -> go.Bar:
    is_slow = pairs["is_slow"].fill_null(value=False)
    marker = {
        "color": (pairs["median_bytes_per_s"] / 1e9).to_list(),
        "coloraxis": _color_axis(row),
        "line": {"width": [3 if slow else 0 for slow in is_slow], "color": LATE},
    }
    columns, rows = ([names[name] for name in pairs[end]] for end in ("destination", "source"))
    hovers = [_pair_hover(pair, what) for pair in pairs.iter_rows(named=True)]
    return cells(columns, rows, list(names.values()), marker=marker, hovers=hovers)


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
        f"{counted(row['instance_count'], 'instance')}, {exact_duration(row['collective_ns'])} over all ranks",
        f"waiting {percent_text(row['wait_fraction'])}: {row['verdict']}",
        f"median transfer {exact_duration(row['median_transfer_ns'])}",
        f"bus bandwidth {bandwidth_text(bandwidth)}" if bandwidth else "bus bandwidth unknown",
    ]
    return "<br>".join(lines)


def _pair_hover(pair: dict[str, Any], what: str) -> str:
    ends = (hover_text(f"{what} {pair[end]}") for end in ("source", "destination"))
    slow = f", {pair['slowdown']:.1f} times as long as elsewhere" if pair["is_slow"] else ""
    return (
        f"{' to '.join(ends)}: {bandwidth_text(pair['median_bytes_per_s'])}{slow}<br>"
        f"{counted(pair['instance_count'], 'transfer')}, {size_text(pair['bytes'] or 0)}"
    )
