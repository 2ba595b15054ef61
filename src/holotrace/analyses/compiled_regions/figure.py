"""The figure of the compiled regions: the device time of generated kernels or, without such kernels, the host time of regions."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.compiled_regions.compute import CompiledRegions
from holotrace.analyses.compiled_regions.question import QUESTION
from holotrace.drawing.colors import COMPUTATION, OPERATOR
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import hover_text
from holotrace.drawing.stacked_bars import Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted

TOP_KERNELS = 20
_EXPLANATION = "Device time of the kernels that torch.compile generated, over all ranks"


def plot_compiled_regions(result: CompiledRegions, *, top: int = TOP_KERNELS, theme: Theme = "light") -> go.Figure:
    """Draw the device time of the `top` longest generated kernels.

    If the recording has no generated kernels, draw the host time of the `top` longest regions.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().operator("Torch-Compiled Region: 0/1", start_us=0, duration_us=50)
    >>> trace = trace.kernel("triton_poi_fused_add_0", start_us=60, duration_us=9, launch_us=10).build()
    >>> figure = holotrace.figures.plot_compiled_regions(holotrace.compiled_regions(trace))
    >>> [bars.name for bars in figure.data]
    ['time']
    """
    kernels = _kernels(result).head(top)
    if not kernels.is_empty():
        return _bars(kernels, Heading(QUESTION.question, _EXPLANATION), COMPUTATION, theme)
    regions = _regions(result).head(top)
    if not regions.is_empty():
        return _bars(regions, Heading(QUESTION.question, "Host time of each region, over all ranks"), OPERATOR, theme)
    return empty_figure(QUESTION.question, "The recording has no compiled regions and no generated kernels.", theme)


def _kernels(result: CompiledRegions) -> pl.DataFrame:
    sums = result.per_kernel.group_by(pl.col("operator").alias("name"), pl.col("source_file").alias("detail"))
    return _longest(sums.agg(pl.col("call_count").sum(), ns=pl.col("device_self_ns").sum()))


def _regions(result: CompiledRegions) -> pl.DataFrame:
    sums = result.per_region.group_by(
        pl.format("region {}", "region").alias("name"), pl.lit(None, pl.String).alias("detail")
    )
    return _longest(sums.agg(pl.col("call_count").sum(), ns=pl.col("host_total_ns").sum()))


def _longest(sums: pl.DataFrame) -> pl.DataFrame:
    return sums.filter(pl.col("ns") > 0).sort("ns", "name", "detail", descending=[True, False, False], nulls_last=True)


def _bars(table: pl.DataFrame, heading: Heading, color: str, theme: Theme) -> go.Figure:
    size, unit = largest_unit(table["ns"].to_list())
    hovers = [_hover(row) for row in table.iter_rows(named=True)]
    part = Part(name="time", values=(table["ns"] / size).to_list(), hovers=hovers, marker={"color": color})
    figure = named_bars(table["name"].to_list(), [part], heading, f"time ({unit})", theme)
    return figure.update_layout(showlegend=False)


def _hover(row: dict[str, Any]) -> str:
    lines = [
        f"<b>{hover_text(row['name'])}</b>",
        f"{exact_duration(row['ns'])} in {counted(row['call_count'], 'call')}",
    ]
    return "<br>".join([*lines, hover_text(row["detail"])] if row["detail"] else lines)
