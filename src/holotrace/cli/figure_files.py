"""Write figures as HTML pages that work offline or, with kaleido, as pictures."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from holotrace.errors import InvalidOptionError
from holotrace.export.new_file import PAGES, expect_writable
from holotrace.locations import Location, drafted

if TYPE_CHECKING:
    import plotly.graph_objects as go

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".svg", ".pdf")


def expect_a_figure_file(path: Location, *, overwrite: bool) -> None:
    """Check, before any work, that a figure can be written in the format that the file name's suffix selects.

    Raises:
        InvalidOptionError: the format is not supported, kaleido is missing, or the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in (*PAGES, *PICTURES):
        message = f"{path}: a figure is a page (.html) or a picture ({', '.join(PICTURES)}); use one of these suffixes"
        raise InvalidOptionError(message)
    if suffix in PICTURES and not can_draw():
        message = f"{path} needs kaleido and a Chrome browser: pip install kaleido, or write a page (.html)"
        raise InvalidOptionError(message)
    expect_writable(path, overwrite=overwrite)


def can_draw() -> bool:
    """Return whether kaleido is installed; plotly needs it to draw pictures."""
    return importlib.util.find_spec("kaleido") is not None


def write_figure(figure: go.Figure, path: Location) -> None:
    """Write a figure in the format that the file name's suffix selects.

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
    """Draw a figure with kaleido.

    Kaleido needs a browser. If there is none, kaleido raises an error whose type depends on its version.
    """
    try:
        picture: bytes = figure.to_image(format=path.suffix.lower().removeprefix("."))
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        message = f"{path} cannot be drawn ({reason[:200]}); install Chrome for kaleido, or write a page (.html)"
        raise InvalidOptionError(message) from error
    return picture
