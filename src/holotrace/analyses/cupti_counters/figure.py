"""The figure of the CUPTI counters: floating-point operations by the operator that launched the kernels."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.cupti_counters.compute import CuptiCounters
from holotrace.analyses.cupti_counters.question import QUESTION
from holotrace.drawing.colors import COMPUTATION
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import hover_text
from holotrace.drawing.stacked_bars import Heading, Part
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted, percent_text

TOP_OPERATORS = 20
_HEADING = Heading(
    QUESTION.question,
    "Floating-point operations of the kernels that each outermost operator launched, over all ranks",
)
_UNITS = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1.0, "FLOP"))


def plot_cupti_counters(result: CuptiCounters, *, top: int = TOP_OPERATORS, theme: Theme = "light") -> go.Figure:
    """Draw a bar for each of the `top` outermost operators: the floating-point operations of its kernels.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> ffma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
    >>> place = {"ph": "X", "cat": "cuda_profiler_range", "pid": 0, "tid": 0}
    >>> trace = TraceBuilder().event(name="gemm", ts=0, dur=5, args={ffma: 10}, **place).build()
    >>> figure = holotrace.figures.plot_cupti_counters(holotrace.cupti_counters(trace))
    >>> [bars.name for bars in figure.data]
    ['floating-point operations']
    """
    table = _by_operator(result.per_kernel).head(top)
    most = max(table.get_column("flop").to_list(), default=0)
    if not most:
        return empty_figure(_HEADING.question, "No counters of floating-point operations were recorded.", theme)
    size, unit = next(((size, unit) for size, unit in _UNITS if most >= size), _UNITS[-1])
    names = [name or "no known operator" for name in table.get_column("top_operator")]
    part = Part(
        name="floating-point operations",
        values=[flop / size for flop in table.get_column("flop")],
        hovers=[_hover(name, row) for name, row in zip(names, table.iter_rows(named=True), strict=True)],
        marker={"color": COMPUTATION},
        in_legend=False,
    )
    return named_bars(names, [part], _HEADING, f"floating-point operations ({unit})", theme)


def _by_operator(per_kernel: pl.DataFrame) -> pl.DataFrame:
    """Add up the FLOP of the kernels that each outermost operator launched; skip kernels without a count."""
    counted = per_kernel.drop_nulls("flop")
    sums = counted.group_by("top_operator").agg(pl.col("flop").sum(), pl.len().alias("kernel_count"))
    shares = sums.with_columns((pl.col("flop") / pl.col("flop").sum()).fill_nan(None).alias("fraction"))
    return shares.sort(["flop", "top_operator"], descending=[True, False])


def _hover(name: str, row: dict[str, Any]) -> str:
    share = percent_text(row["fraction"])
    return f"<b>{hover_text(name)}</b><br>{row['flop']:,.0f} FLOP, {share} of all<br>{counted(row['kernel_count'], 'kernel')}"
