"""The look of figures: one template for light and one for dark pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

Theme = Literal["light", "dark"]

_SHARE_BUTTON = "sendChartToCloud"
"""Button of plotly.js 7 that uploads a figure; the template removes it from all figures."""

_WHOLE_LEGEND = 2_000
"""Maximum height of a legend in pixels; by default, plotly makes a legend scroll if it is higher than half a figure."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Surface:
    """Colours of the page behind a figure.

    background   colour of figures and of the area around them
    text, muted  colours of important and of less important text
    grid         colour of lines
    page         colour around the cards of a report
    accent, bad  colours of links and of bad news
    """

    background: str
    text: str
    muted: str
    grid: str
    page: str
    accent: str
    bad: str


SURFACES: dict[Theme, Surface] = {
    "light": Surface("#ffffff", "#1f2933", "#5f6b7a", "#e4e8ee", page="#f3f5f8", accent="#1f6aa8", bad="#b3261e"),
    "dark": Surface("#171c23", "#e5e9f0", "#9aa7b6", "#2c3440", page="#0f1318", accent="#6aaee6", bad="#ff8a80"),
}


def template(theme: Theme) -> go.layout.Template:
    """Return the plotly template of a theme; a page can later switch its figures to the other theme."""
    surface = SURFACES[theme]
    axis = {
        "gridcolor": surface.grid,
        "linecolor": surface.grid,
        "zerolinecolor": surface.grid,
        "automargin": True,
        "title": {"font": {"size": 13, "color": surface.muted}},
    }
    return go.layout.Template(
        layout={
            "paper_bgcolor": surface.background,
            "plot_bgcolor": surface.background,
            "font": {"family": FONT, "size": 13, "color": surface.text},
            "title": {
                "x": 0,
                "xref": "container",
                "pad": {"l": 16},
                "font": {"size": 18},
                "subtitle": {"font": {"size": 13, "color": surface.muted}},
            },
            "hoverlabel": {
                "bgcolor": surface.background,
                "bordercolor": surface.grid,
                "align": "left",
                "namelength": -1,
                "font": {"family": FONT, "size": 13, "color": surface.text},
            },
            "modebar": {"remove": [_SHARE_BUTTON]},
            "legend": go.layout.Legend({"maxheight": _WHOLE_LEGEND}, skip_invalid=True),  # plotly 6.0 has no maxheight
            "xaxis": axis,
            "yaxis": axis,
        }
    )


def empty_figure(title: str, reason: str, theme: Theme) -> go.Figure:
    """Return a figure that says why there is nothing to draw."""
    figure = go.Figure(layout={"template": template(theme), "title": {"text": title}, "height": 200})
    figure.add_annotation(text=reason, showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return figure.update_xaxes(visible=False).update_yaxes(visible=False)
