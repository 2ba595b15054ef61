"""The figure of the communication overlap: how much communication each rank hides behind computation."""

from __future__ import annotations

import plotly.graph_objects as go

from holotrace.analyses.communication_overlap.compute import CommunicationOverlap
from holotrace.analyses.communication_overlap.question import QUESTION
from holotrace.drawing.colors import COMMUNICATION, HIDDEN_COMMUNICATION
from holotrace.drawing.stacked_bars import Heading, Part, ValueAxis, bar_figure, exact_duration, largest_unit, rows_of
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import percent_text

_HEADING = Heading(
    QUESTION.question,
    "Communication time of each rank: hidden while the rank also computes, exposed otherwise",
)


def plot_communication_overlap(result: CommunicationOverlap, *, theme: Theme = "light") -> go.Figure:
    """Draw one bar for each rank: its communication time, split into hidden and exposed.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_communication_overlap(holotrace.communication_overlap(small_job()))
    >>> [bars.name for bars in figure.data]
    ['hidden', 'exposed']
    """
    table = result.per_rank
    if not table.get_column("communication_ns").sum():
        return empty_figure(_HEADING.question, "No rank communicates.", theme)
    size, unit = largest_unit(table.get_column("communication_ns").to_list())
    parts = [
        _part(result, "hidden", "overlap_ns", size, {"color": HIDDEN_COMMUNICATION}),
        _part(result, "exposed", "exposed_ns", size, {"color": COMMUNICATION}),
    ]
    return bar_figure(rows_of(table), parts, _HEADING, ValueAxis(f"communication time ({unit})", is_share=False), theme)


def _part(result: CommunicationOverlap, name: str, column: str, size: int, marker: dict[str, str]) -> Part:
    durations = result.per_rank.get_column(column).to_list()
    hidden = [percent_text(fraction) for fraction in result.per_rank.get_column("overlap_fraction")]
    return Part(
        name=name,
        values=[duration / size for duration in durations],
        hovers=[exact_duration(duration) for duration in durations],
        marker=marker,
        labels=[f"{text} hidden" for text in hidden] if column == "exposed_ns" else (),
    )
