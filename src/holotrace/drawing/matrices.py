"""Matrices of coloured cells that fill a figure of any width.

The cells are drawn as bars, for two reasons. The small bundle of plotly.js that pages load cannot draw heat maps.
Markers have a fixed size in pixels, so they would overlap in narrow figures and be far apart in wide ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from holotrace.drawing.category_axis import category_axis

_CELL = 0.92
"""Width of a cell as a fraction of its column's width, and height as a fraction of its row's height."""

_FEWEST_COLUMNS = 8
"""An axis leaves space for at least this many columns; otherwise, a single column would be as wide as the figure."""

_CELL_PX, _LEAST_PX, _MOST_PX = 40, 120, 510

_STANDOFF = 8
_TITLE_SHIFT_PX = 42

AROUND_PX = 190
"""Height of the heading, the colour bar and the names of the columns."""


def matrix_height(row_count: int) -> int:
    """Return the height in pixels of a figure with a matrix of this many rows."""
    return AROUND_PX + max(_LEAST_PX, min(_MOST_PX, _CELL_PX * row_count))


def cells(
    columns: Sequence[str],
    rows: Sequence[str],
    all_rows: Sequence[str],
    *,
    marker: dict[str, Any],
    hovers: Sequence[str],
) -> go.Bar:
    """Return a cell for each pair of a column and a row; `all_rows` names the rows from top to bottom."""
    numbers = {row: number for number, row in enumerate(all_rows)}
    return go.Bar(
        x=list(columns),
        y=[_CELL] * len(rows),
        base=[numbers[row] - _CELL / 2 for row in rows],
        width=_CELL,
        marker={"line": {"width": 0}, **marker},
        customdata=list(hovers),
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )


def column_axis(columns: Sequence[str], title: str) -> dict[str, Any]:
    """Return the settings of the axis that names the columns from left to right."""
    named = category_axis(columns, title)
    width = max(_FEWEST_COLUMNS, len(columns))
    return {**named, "title": {**named["title"], "standoff": _STANDOFF}, "range": [-0.5, width - 0.5]}


def row_axis(rows: Sequence[str], title: str) -> dict[str, Any]:
    """Return the settings of the axis that names the rows from top to bottom."""
    named = category_axis(rows, title)
    numbers = {row: number for number, row in enumerate(rows)}
    return {
        "type": "linear",
        "title": {**named["title"], "standoff": _STANDOFF},
        "tickmode": "array",
        "tickvals": [numbers[row] for row in named["tickvals"]],
        "ticktext": named["ticktext"],
        "ticklabelstandoff": 6,
        "range": [len(rows) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
    }


def color_bar(top: float = 1.0) -> dict[str, Any]:
    """Return a horizontal colour bar above a matrix.

    `top` is the height of the matrix's upper edge as a fraction of the plot's height. The colour bar has no title,
    because a title would trigger a bug in plotly.js 7 that displaces the title of the axis below the matrix.
    """
    return {
        "title": {"text": ""},
        "orientation": "h",
        "thickness": 12,
        "len": 1.0,
        "x": 0.5,
        "xpad": 0,
        "y": top,
        "yanchor": "bottom",
        "nticks": 6,
        "outlinewidth": 0,
    }


def color_bar_title(text: str, top: float = 1.0) -> dict[str, Any]:
    """Return the title of a colour bar (its quantity and unit) as an annotation above the bar."""
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": top, "yanchor": "bottom"}
    return {"text": text, "showarrow": False, "align": "left", "yshift": _TITLE_SHIFT_PX, **place}


def matrix_margin() -> dict[str, int]:
    """Return the margins of a figure with matrices."""
    return {"l": 16, "r": 24, "t": 148, "b": 48}
