"""A heading can be shown beside its figure instead of in it."""

from __future__ import annotations

import plotly.graph_objects as go

from holotrace.drawing.detached_heading import detached
from holotrace.drawing.stacked_bars import Heading, Part, ValueAxis, bar_figure, rows_of
from jobs import temporal_of_many


def test_a_heading_leaves_its_figure() -> None:
    """Without its heading, a figure has no title or fixed height, and is 68 px shorter (28 px on phones)."""
    rows = rows_of(temporal_of_many(2, 1).per_device)
    parts = [Part(name, [1.0, 1.0], ["", ""], {"color": "#2f7fc1"}) for name in ("a", "b", "c")]
    drawn = bar_figure(rows, parts, Heading("What?", "on &lt;b&gt;"), ValueAxis("time", is_share=False), "light")
    whole = drawn.layout.height

    title, explanation, figure, height, narrow_height = detached(drawn)

    assert (title, explanation) == ("What?", "on <b>")
    assert (figure.layout.title.text, figure.layout.height) == (None, None)
    assert (height, narrow_height) == (whole - 68, whole - 68 + 2 * 20)


def test_a_figure_without_a_heading_keeps_its_room() -> None:
    """A figure of plotly's default size keeps space for its ticks, but not for a legend if it has one curve."""
    assert detached(go.Figure([go.Scatter(x=[0], y=[1])]))[3:] == (450 - 64, 450 - 64)
