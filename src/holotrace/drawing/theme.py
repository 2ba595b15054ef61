"""The look of figures: one template for light and one for dark pages, and a colour for every meaning.

The colours are distinguishable with the common forms of colour blindness and on both backgrounds. If several kinds of
work run at once, the state is hatched in their colours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

Theme = Literal["light", "dark"]

COMPUTATION = "#2f7fc1"
COMMUNICATION = "#d96b24"
MEMORY = "#27967b"
MEMSET = "#8ccfbf"
OTHER = "#b07aa8"
IDLE = "#a9b3be"
HIDDEN = "#27967b"
HOST_WAIT = "#cc5f74"
KERNEL_WAIT = "#d9c15f"
HOST_GAP = "#c7b3e5"
DATA_LOADING = "#7a4a2b"
KERNEL_GAP = "#e6c9a8"
UNKNOWN = "#dcdfe3"

KIND_COLORS = {"computation": COMPUTATION, "communication": COMMUNICATION, "memory": MEMORY, "other": OTHER}
"""Colour of each kernel kind, by its name in results."""

PATH_COLORS = {
    "cpu_operator": OTHER,
    "host_gap": HOST_GAP,
    "data_loading": DATA_LOADING,
    "launch_delay": KERNEL_WAIT,
    "kernel_kernel_delay": KERNEL_GAP,
    "computation": COMPUTATION,
    "communication": COMMUNICATION,
    "copy": MEMORY,
    "synchronisation_wait": IDLE,
    "unknown": UNKNOWN,
}
"""Colour of each class of the critical path, by its name in results."""

EVENT_COLORS = KIND_COLORS | {
    "operator": "#5d7eac",
    "annotation": "#8868b6",
    "call": "#3f808d",
    "python": "#66874f",
    "wait": "#c44f67",
}
"""Colour of each class of events on the timeline page; the colour of each name is a variation of it."""

AXIS_COLORS = {
    "pp": "#b0563b",
    "tp": "#2f7fc1",
    "cp": "#27967b",
    "ep": "#8868b6",
    "fsdp": "#c28a1c",
    "dp": "#d96b24",
    "world": "#5d7eac",
    "unknown": IDLE,
}
"""Colour of each axis of parallelism, by its name in results."""

FINDING_COLORS = {"idle": IDLE, "waiting": COMMUNICATION, "advice": "#8a4fd0"}
"""Colour of each kind of finding on the timeline page."""

_SHARE_BUTTON = "sendChartToCloud"
"""Button of plotly.js 7 that uploads a figure; the template removes it wherever a figure is shown or written."""

DARK_INK, LIGHT_INK = "#1f2933", "#ffffff"
PALE = {IDLE, KERNEL_WAIT, HOST_GAP, KERNEL_GAP, MEMSET, UNKNOWN}

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class Surface:
    """Colours of the page behind a figure.

    background   of figures and what surrounds them
    text, muted  of words, the second for the less important ones
    grid         of lines
    page         around the cards of a report
    accent, bad  of links and of bad news
    """

    background: str
    text: str
    muted: str
    grid: str
    page: str
    accent: str
    bad: str


SURFACES: dict[Theme, Surface] = {
    "light": Surface("#ffffff", "#1f2933", "#5f6b7a", "#e4e8ee", page="#f3f5f8", accent=COMPUTATION, bad="#b3261e"),
    "dark": Surface("#171c23", "#e5e9f0", "#9aa7b6", "#2c3440", page="#0f1318", accent="#6aaee6", bad="#ff8a80"),
}


def template(theme: Theme) -> go.layout.Template:
    """Return the plotly template of a theme; a page can switch a figure to the other one later."""
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
            "xaxis": axis,
            "yaxis": axis,
        }
    )


def ink_on(color: str) -> str:
    """Return a text colour that is readable on this fill."""
    return DARK_INK if color in PALE else LIGHT_INK


def empty_figure(title: str, reason: str, theme: Theme) -> go.Figure:
    """Return a figure that says why there is nothing to draw."""
    figure = go.Figure(layout={"template": template(theme), "title": {"text": title}, "height": 200})
    figure.add_annotation(text=reason, showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return figure.update_xaxes(visible=False).update_yaxes(visible=False)
