"""The figure of the user annotations: the self time of each annotation, and the time of the annotations inside it."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.user_annotations.compute import UserAnnotations
from holotrace.analyses.user_annotations.question import QUESTION
from holotrace.drawing.colors import ANNOTATION, INSIDE
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import hover_text
from holotrace.drawing.stacked_bars import Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted

TOP_ANNOTATIONS = 20
_QUESTION = QUESTION.question
_EXPLANATIONS = {
    "gpu": "Time of each annotated part on the streams, over all calls and ranks, including time in nested parts",
    "cpu": "Time of each annotated part on the host, over all calls and ranks, including time in nested parts",
}


def plot_user_annotations(
    result: UserAnnotations, *, side: str | None = None, top: int = TOP_ANNOTATIONS, theme: Theme = "light"
) -> go.Figure:
    """Draw a bar for each of the `top` annotations of one side; the default is the GPU, if it has annotations.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().annotation("forward", start_us=0, duration_us=50).build()
    >>> figure = holotrace.figures.plot_user_annotations(holotrace.user_annotations(trace))
    >>> [bars.name for bars in figure.data]
    ['the part itself', 'annotated parts inside it']
    """
    sides = result.per_annotation.get_column("side")
    chosen = side or ("gpu" if (sides == "gpu").any() else "cpu")
    table = _over_ranks(result.per_annotation.filter(pl.col("side") == chosen)).head(top)
    if table.is_empty():
        return empty_figure(_QUESTION, "No user annotations were recorded.", theme)
    size, unit = largest_unit(table.get_column("total_ns").to_list())
    parts = [
        _part(table, "the part itself", "self_ns", size, ANNOTATION),
        _part(table, "annotated parts inside it", "nested_ns", size, INSIDE),
    ]
    names = table.get_column("name").to_list()
    return named_bars(names, parts, Heading(_QUESTION, _EXPLANATIONS[chosen]), f"time ({unit})", theme)


def _over_ranks(table: pl.DataFrame) -> pl.DataFrame:
    sums = table.group_by("name").agg(pl.col("total_ns", "self_ns", "call_count").sum())
    nested = (pl.col("total_ns") - pl.col("self_ns")).alias("nested_ns")
    return sums.with_columns(nested).sort(["total_ns", "name"], descending=[True, False])


def _part(table: pl.DataFrame, name: str, column: str, size: int, color: str) -> Part:
    return Part(
        name=name,
        values=[duration / size for duration in table.get_column(column)],
        hovers=[_hover(row) for row in table.iter_rows(named=True)],
        marker={"color": color},
    )


def _hover(row: dict[str, Any]) -> str:
    return (
        f"<b>{hover_text(row['name'])}</b><br>{exact_duration(row['total_ns'])} in {counted(row['call_count'], 'call')}"
        f"<br>{exact_duration(row['self_ns'])} of it outside nested annotations"
    )
