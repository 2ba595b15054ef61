"""The figure of operator memory: the memory that each operator itself allocates, and how much of it is freed."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.operator_memory.compute import OperatorMemory, summed_operator_memory
from holotrace.analyses.operator_memory.question import QUESTION
from holotrace.drawing.colors import FREED, KEPT
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import cut_labels, hover_text
from holotrace.drawing.stacked_bars import Heading, Part
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import SIZES, counted, size_text

TOP_OPERATORS = 20
_QUESTION = QUESTION.question
_PARTS = (
    ("released again", "released_bytes", FREED),
    ("not released by the end", "self_unreleased_bytes", KEPT),
)


def plot_operator_memory(
    result: OperatorMemory, *, device_type: str | None = None, top: int = TOP_OPERATORS, theme: Theme = "light"
) -> go.Figure:
    """Draw a bar for each of the `top` operators that themselves allocate the most memory on one type of device.

    The default is the device type with the most allocated memory.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1000, "tid": 1}
    >>> args = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Addr": 16, "Total Allocated": 512}
    >>> trace = TraceBuilder().operator("aten::empty", start_us=0, duration_us=9).event(ts=3, args=args, **place).build()
    >>> figure = holotrace.figures.plot_operator_memory(holotrace.operator_memory(trace))
    >>> [bars.name for bars in figure.data]
    ['not released by the end']
    """
    allocating = summed_operator_memory(result.per_operator).filter(pl.col("self_allocated_bytes") > 0)
    if allocating.is_empty():
        return empty_figure(_QUESTION, "No allocation by an operator was recorded.", theme)
    chosen = device_type or _busiest(allocating)
    stays = pl.col("self_unreleased_bytes").fill_null(0)
    shown = (
        allocating.filter(device_type=chosen)
        .head(top)
        .with_columns((pl.col("self_allocated_bytes") - stays).alias("released_bytes"))
    )
    if shown.is_empty():
        return empty_figure(_QUESTION, f"No operator allocated memory on devices of type {chosen}.", theme)
    size, unit = _unit(shown["self_allocated_bytes"].max())
    hovers = [_hover(row) for row in shown.iter_rows(named=True)]
    is_known = shown["self_unreleased_bytes"].null_count() < len(shown)
    parts = [
        Part(name if is_known else "allocated", [value / size for value in shown[column]], hovers, {"color": color})
        for name, column, color in _PARTS
        if shown[column].sum()
    ]
    heading = Heading(_QUESTION, f"Allocated by the operator itself on {chosen}, over all calls and ranks")
    return named_bars(shown["operator"].to_list(), parts, heading, f"memory ({unit})", theme, labels=cut_labels)


def _busiest(allocating: pl.DataFrame) -> str:
    sums = allocating.group_by("device_type").agg(pl.col("self_allocated_bytes").sum())
    return str(sums.sort(["self_allocated_bytes", "device_type"], descending=[True, False])["device_type"][0])


def _unit(largest: Any) -> tuple[int, str]:  # noqa: ANN401 -- polars
    return next(((size, unit) for size, unit in SIZES if largest >= size), (1, "B"))


def _hover(row: dict[str, Any]) -> str:
    stays = row["self_unreleased_bytes"]
    return (
        f"<b>{hover_text(row['operator'])}</b><br>{counted(row['call_count'], 'call')}, {counted(row['self_allocation_count'], 'allocation')}"
        f"<br>itself: {size_text(row['self_allocated_bytes'])}"
        + ("" if stays is None else f", {size_text(stays)} of it not released")
        + f"<br>with operators inside it: {size_text(row['total_allocated_bytes'])}"
        f"<br>allocated minus freed by the operator itself: {size_text(row['self_increase_bytes'])}"
    )
