"""The figure of the operators: self time (on tensor cores and elsewhere) and the time of nested operators."""

from __future__ import annotations

from typing import Any, Literal

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.operators.compute import Operators, summed_operators
from holotrace.analyses.operators.question import QUESTION
from holotrace.drawing.colors import COMPUTATION, INSIDE, OPERATOR, TENSOR_CORES, UNKNOWN
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import cut_labels, hover_text
from holotrace.drawing.stacked_bars import Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted, percent_text

TOP_OPERATORS = 20
_QUESTION = QUESTION.question
_EXPLANATIONS = {
    "device": "Time of the device work that the operator itself and operators inside it launched, over all calls and ranks",
    "host": "Host time of the operator itself, and of operators and calls inside it, over all calls and ranks",
}
_PARTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "device": (
        ("itself, on tensor cores", "tensor_core_self_ns", TENSOR_CORES),
        ("itself, on unknown cores", "tensor_core_unknown_self_ns", UNKNOWN),
        ("itself, elsewhere", "ordinary_self_ns", COMPUTATION),
        ("operators inside it", "inner_ns", INSIDE),
    ),
    "host": (("itself", "host_self_ns", OPERATOR), ("inside it", "inner_ns", INSIDE)),
}


def plot_operators(
    result: Operators,
    *,
    side: Literal["device", "host"] | None = None,
    top: int = TOP_OPERATORS,
    theme: Theme = "light",
) -> go.Figure:
    """Draw a bar for each of the `top` operators by device self time or, if this is unknown, by host self time.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_operators(holotrace.operators(small_job()))
    >>> [bars.name for bars in figure.data]
    ['itself, on unknown cores', 'itself, elsewhere']
    """
    table = summed_operators(result.per_operator)
    if table.is_empty():
        return empty_figure(_QUESTION, "No operators were recorded.", theme)
    chosen = side or ("host" if table["device_self_ns"].null_count() == len(table) else "device")
    shown = _with_parts(table, chosen).head(top)
    if shown.is_empty():
        return empty_figure(_QUESTION, "No device work was recorded.", theme)
    size, unit = largest_unit(shown[f"{chosen}_total_ns"].to_list())
    hovers = [_hover(row, chosen) for row in shown.iter_rows(named=True)]
    parts = [
        Part(name, [value / size for value in shown[column]], hovers, {"color": color})
        for name, column, color in _PARTS[chosen]
        if shown[column].sum()
    ]
    heading = Heading(_QUESTION, _EXPLANATIONS[chosen])
    return named_bars(shown["operator"].to_list(), parts, heading, f"time ({unit})", theme, labels=cut_labels)


def _with_parts(table: pl.DataFrame, side: str) -> pl.DataFrame:
    own, total = pl.col(f"{side}_self_ns"), pl.col(f"{side}_total_ns")
    return (
        table.drop_nulls(f"{side}_self_ns")
        .sort(own, "operator", descending=[True, False])
        .with_columns(
            (total - own).alias("inner_ns"),
            (own - pl.col("tensor_core_self_ns") - pl.col("tensor_core_unknown_self_ns")).alias("ordinary_self_ns"),
        )
    )


def _hover(row: dict[str, Any], side: str) -> str:
    on_cores = _on_tensor_cores(row) if side == "device" else ""
    return (
        f"<b>{hover_text(row['operator'])}</b><br>{counted(row['call_count'], 'call')}"
        f"<br>itself: {exact_duration(row[f'{side}_self_ns'])}{on_cores}"
        f"<br>with inner operators: {exact_duration(row[f'{side}_total_ns'])}"
    )


def _on_tensor_cores(row: dict[str, Any]) -> str:
    share, unknown = row["tensor_core_self_fraction"], row["tensor_core_unknown_self_fraction"]
    if unknown:
        return (
            f", at least {percent_text(share or 0.0)} of it on tensor cores, {percent_text(unknown)} on unknown cores"
        )
    return f", {percent_text(share)} of it on tensor cores"
