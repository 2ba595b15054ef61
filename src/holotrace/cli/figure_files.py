"""Figures as files: pages that work offline, and pictures where there is something that draws them."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from holotrace.errors import InvalidOptionError
from holotrace.export.new_file import expect_writable
from holotrace.locations import Location, drafted

if TYPE_CHECKING:
    import plotly.graph_objects as go

PAGES = (".html", ".htm")
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".svg", ".pdf")


def expect_a_page(path: Location, *, overwrite: bool) -> None:
    """Check, before any work, that a page can be written there, and that its name says so.

    Raises:
        InvalidOptionError: the name ends like a file of another kind, or nothing can be written there.
    """
    if path.suffix.lower() not in PAGES:
        message = f"{path} would hold HTML; let its name end in .html"
        raise InvalidOptionError(message)
    expect_writable(path, overwrite=overwrite)


def expect_a_figure_file(path: Location, *, overwrite: bool) -> None:
    """Check, before any work, that a figure can be written there as what its name says.

    Raises:
        InvalidOptionError: figures cannot be such files, what draws them is not installed, or nothing can be written.
    """
    suffix = path.suffix.lower()
    if suffix not in (*PAGES, *PICTURES):
        message = f"{path}: a figure is a page, .html, or a picture, {', '.join(PICTURES)}; let its name end so"
        raise InvalidOptionError(message)
    if suffix in PICTURES and not can_draw():
        message = f"{path}: pictures need kaleido and a Chrome browser: pip install kaleido; or write a page, .html"
        raise InvalidOptionError(message)
    expect_writable(path, overwrite=overwrite)


def can_draw() -> bool:
    """Whether kaleido, with which plotly draws pictures, is installed."""
    return importlib.util.find_spec("kaleido") is not None


def write_figure(figure: go.Figure, path: Location) -> None:
    """Write a figure as a page or a picture, as its name says.

    Raises:
        InvalidOptionError: the picture could not be drawn.
    """
    if path.suffix.lower() in PAGES:
        page = figure.to_html(include_plotlyjs=True, config={"displaylogo": False, "responsive": True})
        content = page.encode()
    else:
        content = _drawn(figure, path)
    with drafted(path) as file:
        file.write(content)


def _drawn(figure: go.Figure, path: Location) -> bytes:
    """Let kaleido draw a figure in a browser; what it raises where there is none differs by its version."""
    try:
        picture: bytes = figure.to_image(format=path.suffix.lower().removeprefix("."))
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        message = f"{path} cannot be drawn ({reason[:200]}); install Chrome for kaleido, or write a page, .html"
        raise InvalidOptionError(message) from error
    return picture
