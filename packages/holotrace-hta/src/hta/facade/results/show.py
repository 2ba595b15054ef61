"""Shows and saves figures for methods with `visualize=True`."""

from __future__ import annotations

from holotrace.locations import drafted, is_url, located
from hta.facade.imports.modules_later import go


def show(figure: go.Figure, renderer: str = "") -> None:
    """Show a figure with a plotly renderer; the default renderer is inline in a notebook, and a browser elsewhere."""
    figure.show(renderer=renderer or None)


def save(figure: go.Figure, path: str) -> None:
    """Write a figure to an `.html` file, or to an image if the package kaleido is installed."""
    location = located(path)
    if path.endswith(".html"):
        with drafted(location) as file:
            file.write(figure.to_html().encode())
    elif is_url(path):
        with drafted(location) as file:
            figure.write_image(file, format=location.suffix.removeprefix("."))
    else:
        figure.write_image(path)
