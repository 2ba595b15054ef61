"""The cells that a figure of `holotrace.drawing.matrices` shows."""

from __future__ import annotations

from typing import NamedTuple

import plotly.graph_objects as go


class Cell(NamedTuple):
    """A cell: the names of its column and row, and the number that its colour represents."""

    column: str
    row: str
    color: float


def cells_of(figure: go.Figure) -> list[Cell]:
    """Return the cells of a figure's first matrix, in the order in which Plotly stores them."""
    matrix, axis = figure.data[0], figure.layout.yaxis
    name_of = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    middles = [round(base + height / 2) for base, height in zip(matrix.base, matrix.y, strict=True)]
    return [
        Cell(column, name_of[middle], color)
        for column, middle, color in zip(matrix.x, middles, matrix.marker.color, strict=True)
    ]
