"""Showing and keeping figures, as the methods with `visualize=True` do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holotrace.locations import drafted, is_url, located

if TYPE_CHECKING:
    import plotly.graph_objects as go


def show(figure: go.Figure, renderer: str = "") -> None:
    """Show a figure as plotly does by default: inline in a notebook, in a browser, or not at all without either."""
    figure.show(renderer=renderer or None)


def save(figure: go.Figure, path: str) -> None:
    """Write a figure: `.html` files need nothing else, images need the package kaleido."""
    location = located(path)
    if path.endswith(".html"):
        with drafted(location) as file:
            file.write(figure.to_html().encode())
    elif is_url(path):
        with drafted(location) as file:
            figure.write_image(file, format=location.suffix.removeprefix("."))
    else:
        figure.write_image(path)
