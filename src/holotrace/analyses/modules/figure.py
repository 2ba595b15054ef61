"""The figure of the modules: the model as nested boxes, each as wide as its time."""

from __future__ import annotations

from typing import Any, Literal

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.modules.compute import Modules, summed_modules
from holotrace.analyses.modules.question import QUESTION
from holotrace.drawing.colors import COMPUTATION, INSIDE
from holotrace.drawing.names import hover_text, label_text
from holotrace.drawing.stacked_bars import Heading, exact_duration
from holotrace.drawing.theme import Theme, empty_figure, template
from holotrace.enrich.host.module_times import PATH_SEPARATOR
from holotrace.units import counted

SHOWN_DEPTH = 6
"""Number of levels shown at once; a click on a box shows the levels below this box."""

_EVERYTHING = "all modules"

OUTLINE = "rgba(255, 255, 255, 0.6)"
"""Colour of the lines between boxes, visible on light and dark pages."""

_ROW_HEIGHT = 58
_MARGIN_HEIGHT = 150
_HEADING = Heading(QUESTION.question, "")
_EXPLANATIONS = {
    "device": "Device work launched in the module's forward calls and their backward pass, over all calls and ranks; "
    "bluer boxes have a larger share of self time",
    "host": "Host time of the module's forward calls and their backward pass, over all calls and ranks; "
    "bluer boxes have a larger share of self time",
}


def plot_modules(
    result: Modules, *, side: Literal["device", "host"] | None = None, theme: Theme = "light"
) -> go.Figure:
    """Draw the modules by device time or host time; the default is device time, if any work ran on a device.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "X", "cat": "python_function", "pid": 1000, "tid": 1}
    >>> trace = TraceBuilder().event(name="nn.Module: Linear_0", ts=0, dur=30, **place)
    >>> trace = trace.kernel("gemm", start_us=40, duration_us=9, launch_us=5).build()
    >>> figure = holotrace.figures.plot_modules(holotrace.modules(trace))
    >>> list(figure.data[0].labels)
    ['Linear_0']
    """
    table = summed_modules(result.per_module)
    if table.is_empty():
        return empty_figure(_HEADING.question, "No calls of modules were recorded.", theme)
    chosen = side or ("device" if table["device_total_ns"].sum() else "host")
    shown = _below_one(_with_sizes(table, chosen).filter(pl.col("size_ns") > 0))
    if shown.is_empty():
        return empty_figure(_HEADING.question, "No device work was recorded.", theme)
    figure = go.Figure(_boxes(shown, chosen))
    levels = min(SHOWN_DEPTH, shown["depth"].n_unique())
    return figure.update_layout(
        template=template(theme),
        title={"text": _HEADING.question, "subtitle": {"text": _EXPLANATIONS[chosen]}, "y": 0.98, "yanchor": "top"},
        uniformtext={"minsize": 9, "mode": "hide"},
        margin={"l": 16, "r": 24, "t": 104, "b": 24},
        height=levels * _ROW_HEIGHT + _MARGIN_HEIGHT,
    )


def _with_sizes(table: pl.DataFrame, side: str) -> pl.DataFrame:
    """Add the time of each box, including the boxes inside it, and the fraction of this time that is self time."""
    size = pl.col(f"{side}_total_ns") + pl.col(f"backward_{side}_total_ns").fill_null(0)
    sized = table.with_columns(size.fill_null(0).alias("size_ns"))
    around = pl.col("path").str.split(PATH_SEPARATOR).list.head(pl.col("depth")).list.join(PATH_SEPARATOR)
    placed = sized.with_columns(around.alias("around"))
    inner = placed.group_by(pl.col("around").alias("path")).agg(pl.col("size_ns").sum().alias("inner_ns"))
    joined = placed.join(inner, on="path", how="left", maintain_order="left")
    return joined.with_columns((1 - pl.col("inner_ns").fill_null(0) / pl.col("size_ns")).alias("own_fraction"))


def _below_one(shown: pl.DataFrame) -> pl.DataFrame:
    """If there are several outermost modules, add a box around them, because plotly's outer box would be dark and empty."""
    outermost = shown.filter(pl.col("depth") == 0)
    if len(outermost) < 2:  # noqa: PLR2004 -- one needs none
        return shown
    everything = outermost.select(pl.col("^(call_count|.*_ns)$").sum()).with_columns(
        pl.lit(_EVERYTHING).alias("path"),
        pl.lit(_EVERYTHING).alias("module"),
        pl.lit("").alias("around"),
        pl.lit(-1, pl.Int32).alias("depth"),
        pl.lit(0.0).alias("own_fraction"),
    )
    around = pl.when(pl.col("depth") == 0).then(pl.lit(_EVERYTHING)).otherwise("around").alias("around")
    return pl.concat([everything, shown.with_columns(around)], how="diagonal")


def _boxes(shown: pl.DataFrame, side: str) -> go.Icicle:
    return go.Icicle(
        ids=shown["path"].to_list(),
        parents=shown["around"].to_list(),
        labels=[label_text(name) for name in shown["module"]],
        values=shown["size_ns"].to_list(),
        branchvalues="total",
        customdata=[_hover(row, side) for row in shown.iter_rows(named=True)],
        hovertemplate="%{customdata}<extra></extra>",
        marker={
            "colors": shown["own_fraction"].to_list(),
            "cmin": 0,
            "cmax": 1,
            "colorscale": [[0, INSIDE], [1, COMPUTATION]],
            "line": {"width": 1, "color": OUTLINE},
        },
        tiling={"orientation": "v"},
        maxdepth=SHOWN_DEPTH,
        sort=False,
    )


def _hover(row: dict[str, Any], side: str) -> str:
    forward, backward = row[f"{side}_total_ns"], row[f"backward_{side}_total_ns"]
    lines = [
        f"<b>{hover_text(row['path'])}</b>",
        f"{counted(row['call_count'], 'call')}",
        f"forward: {exact_duration(forward)}",
        "backward: unknown" if backward is None else f"backward: {exact_duration(backward)}",
    ]
    return "<br>".join(lines)
