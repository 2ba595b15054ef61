"""The figure of a comparison: the names whose time or count changed most, with a bar for control and a bar for test."""

from __future__ import annotations

from typing import Literal

import plotly.graph_objects as go

from holotrace.analyses.compare_traces.compute import TraceComparison
from holotrace.drawing.paired_bars import paired_bars
from holotrace.drawing.stacked_bars import Heading
from holotrace.drawing.theme import Theme

MOST_NAMES = 20

HEADINGS = {
    "duration": Heading("What takes more or less time?", "Summed durations of the names that changed most"),
    "count": Heading("What is called more or less often?", "Number of events of the names that changed most"),
}


def plot_compare_traces(
    result: TraceComparison, *, by: Literal["duration", "count"] = "duration", theme: Theme = "light"
) -> go.Figure:
    """Draw two bars for each of the names whose time or count changed most.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> job = small_job()
    >>> figure = holotrace.figures.plot_compare_traces(holotrace.compare_traces(job.select([0]), job.select([1])))
    >>> [bars.name for bars in figure.data]
    ['control', 'test']
    """
    column, difference = (
        ("total_ns", "difference_ns") if by == "duration" else ("event_count", "event_count_difference")
    )
    changed = result.per_name.filter(result.per_name[difference] != 0)
    shown = changed.sort(changed[difference].abs(), descending=True, maintain_order=True).head(MOST_NAMES)
    sides = {label: shown[f"{label}_{column}"].to_list() for label in ("control", "test")}
    return paired_bars(shown["name"].to_list(), sides, by=by, heading=HEADINGS[by], theme=theme)
