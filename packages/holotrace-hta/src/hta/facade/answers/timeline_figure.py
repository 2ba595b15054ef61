"""The figure of a timeline: one bar per event, one row per stream, thread or depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from holotrace.drawing.colors import COMMUNICATION, COMPUTATION, HOST_WAIT, IDLE, LAUNCH_DELAY, MEMORY, OTHER
from holotrace.drawing.names import hover_text, label_text, short_labels
from holotrace.drawing.theme import Theme, empty_figure, template

MOST_BARS = 10_000
"""Maximum number of bars; more bars would make browsers slow."""

MOST_ROWS = 200

_COLORS = (
    COMPUTATION,
    COMMUNICATION,
    MEMORY,
    OTHER,
    HOST_WAIT,
    LAUNCH_DELAY,
    "#6a5fb0",
    "#8a6d3b",
    "#3f9fb5",
    "#96a13a",
)
_MARGIN_HEIGHT = 170
_NAME_LENGTH = 60


def timeline_figure(  # noqa: PLR0913 -- one argument per column
    title: str,
    *,
    start_us: pd.Series,
    end_us: pd.Series,
    rows: pd.Series,
    colors: pd.Series,
    hovers: pd.DataFrame,
    row_height: int,
    theme: Theme = "light",
) -> go.Figure:
    """Draw events as bars, one plotly trace per colour.

    The names with the longest total time have their own colours; all other names share one colour. Draws at most the
    first `MOST_ROWS` rows and, in them, the `MOST_BARS` longest events; the subtitle says how many are shown.
    """
    if not len(rows):
        return empty_figure(label_text(title), "no events to show", theme)
    named = pd.Series(rows.unique())
    kept = _drawn(rows, named[:MOST_ROWS], hovers["dur"])
    bars = pd.DataFrame({"start": start_us, "end": end_us, "row": rows, "color": colors.astype(str)})[kept]
    figure = go.Figure(_traces(bars, hovers[kept]))
    shown = named[named.isin(bars["row"])].tolist()
    subtitle = _left_out(len(bars), len(rows), len(shown), len(named))
    return _laid_out(figure, title, subtitle, shown, row_height, theme)


def _drawn(rows: pd.Series, shown: pd.Series, durations: pd.Series) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the events to draw."""
    kept = rows.isin(shown).to_numpy()
    longest = np.flatnonzero(kept)[np.argsort(-durations.to_numpy()[kept], kind="stable")[:MOST_BARS]]
    drawn = np.zeros(len(rows), np.bool_)
    drawn[longest] = True
    return drawn


def _left_out(bars: int, events: int, rows: int, all_rows: int) -> str:
    shown = []
    if rows < all_rows:
        shown.append(f"{rows:,} of {all_rows:,} rows")
    if bars < events:
        shown.append(f"the {bars:,} longest of {events:,} events")
    return f"Shown: {', '.join(shown)}. Filter the events to see the hidden ones." if shown else ""


def _traces(bars: pd.DataFrame, hovers: pd.DataFrame) -> list[go.Bar]:
    by_time = (bars["end"] - bars["start"]).groupby(bars["color"]).sum().sort_values(ascending=False, kind="stable")
    own = dict(zip(by_time.index[: len(_COLORS)].tolist(), _COLORS, strict=False))
    rest = len(by_time) - len(own)
    labels = short_labels(own, _NAME_LENGTH)
    groups = [(labels[name], color, bars["color"] == name) for name, color in own.items()]
    if rest:
        groups.append((f"{rest:,} other names", IDLE, ~bars["color"].isin(own)))
    return [_trace(name, color, bars[is_own], hovers[is_own]) for name, color, is_own in groups]


def _trace(name: str, color: str, bars: pd.DataFrame, hovers: pd.DataFrame) -> go.Bar:
    return go.Bar(
        orientation="h",
        name=name,
        base=bars["start"].tolist(),
        x=(bars["end"] - bars["start"]).tolist(),
        y=bars["row"].tolist(),
        marker={"color": color, "line": {"width": 0}},
        customdata=_hover_texts(hovers),
        hovertemplate="%{customdata}<extra></extra>",
    )


def _hover_texts(hovers: pd.DataFrame) -> list[str]:
    names = hovers.columns.tolist()
    return [
        "<br>".join(
            [
                f"<b>{hover_text(str(name))}</b>",
                f"from {start:,} µs, for {duration:,} µs",
                *(f"{key}: {label_text(str(value))}" for key, value in zip(names[3:], values, strict=True)),
            ]
        )
        for name, start, duration, *values in hovers.itertuples(index=False, name=None)
    ]


def _laid_out(  # noqa: PLR0913, PLR0917 -- the parts of a figure
    figure: go.Figure, title: str, subtitle: str, rows: list[Any], row_height: int, theme: Theme
) -> go.Figure:
    bars_height = row_height * max(2, len(rows))
    height = bars_height + _MARGIN_HEIGHT
    figure.update_layout(
        template=template(theme),
        title={"text": label_text(title), "subtitle": {"text": subtitle}, "y": 1 - 12 / height, "yanchor": "top"},
        barmode="overlay",
        bargap=0.15,
        height=height,
        margin={"l": 16, "r": 24, "t": 72, "b": 48},
        hovermode="closest",
        legend={"orientation": "h", "y": -60 / bars_height, "yanchor": "top", "x": 0},
    )
    figure.update_xaxes(title={"text": "time (µs)", "standoff": 8}, exponentformat="none", separatethousands=True)
    return figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=rows,
        range=[len(rows) - 0.5, -0.5],
        ticktext=[label_text(str(row)) for row in rows],
        tickvals=rows,
        showgrid=False,
    )
