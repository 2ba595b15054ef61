"""Showing and keeping figures, as the methods with `visualize=True` do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go


def show(figure: go.Figure, renderer: str = "") -> None:
    """Show a figure as plotly does by default: inline in a notebook, in a browser, or not at all without either."""
    figure.show(renderer=renderer or None)


def save(figure: go.Figure, path: str) -> None:
    """Write a figure: `.html` files need nothing else, images need the package kaleido."""
    if path.endswith(".html"):
        figure.write_html(path)
    else:
        figure.write_image(path)
