"""The figure of the source lines: the time of each line, on the devices or on the host."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.source_lines.compute import SourceLines
from holotrace.analyses.source_lines.question import QUESTION
from holotrace.analyses.source_lines.tables import source_line
from holotrace.drawing.colors import BACKWARD, FORWARD, OPERATOR, PYTHON, SYNCHRONISATION
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import hover_text
from holotrace.drawing.stacked_bars import Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.questions.answers import total
from holotrace.units import percent_text

TOP_LINES = 20
_QUESTION = QUESTION.question
_NO_LINE = "no user code"
_EXPLANATIONS = {
    "device": "Device time of all ranks, by the line that launched the work or called its forward operator",
    "host": "Time of all host threads and ranks, by the innermost line of user code",
}
_PARTS = {
    "device": (("forward and other", "forward_ns", FORWARD), ("backward", "backward_device_self_ns", BACKWARD)),
    "host": (
        ("Python and built-in functions", "host_python_ns", PYTHON),
        ("operators and runtime calls", "operators_ns", OPERATOR),
        ("waits", "host_blocked_ns", SYNCHRONISATION),
    ),
}


def plot_source_lines(
    result: SourceLines, *, side: str | None = None, top: int = TOP_LINES, theme: Theme = "light"
) -> go.Figure:
    """Draw a bar for each of the `top` lines, over all ranks.

    The default of `side` is `device` if any work ran on a device, else `host`.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().python("train.py(3): main", start_us=0, duration_us=50)
    >>> trace = trace.python("<built-in function sleep>", start_us=10, duration_us=30).build()
    >>> figure = holotrace.figures.plot_source_lines(holotrace.source_lines(trace))
    >>> [bars.name for bars in figure.data]
    ['Python and built-in functions', 'operators and runtime calls', 'waits']
    """
    if result.per_line.is_empty():
        return empty_figure(_QUESTION, "No Python functions were recorded; record with with_stack=True.", theme)
    chosen = side or ("device" if total(result.per_line, "device_self_ns") else "host")
    table = _over_ranks(result.per_line, f"{chosen}_self_ns").head(top)
    size, unit = largest_unit(table[f"{chosen}_self_ns"].to_list())
    parts = [_part(table, name, column, size, color) for name, column, color in _PARTS[chosen]]
    names = table["source_line"].to_list()
    return named_bars(names, parts, Heading(_QUESTION, _EXPLANATIONS[chosen]), f"time ({unit})", theme)


def _over_ranks(per_line: pl.DataFrame, longest: str) -> pl.DataFrame:
    times = [name for name in per_line.columns if name.endswith("_ns")]
    sums = per_line.group_by(source_line().fill_null(_NO_LINE)).agg(pl.col(times).sum(), pl.col("callees").first())
    return (
        sums.with_columns(
            forward_ns=pl.col("device_self_ns") - pl.col("backward_device_self_ns"),
            operators_ns=pl.col("host_self_ns") - pl.col("host_python_ns") - pl.col("host_blocked_ns"),
            fraction=pl.col(longest) / max(1, int(per_line[longest].sum())),
        )
        .filter(pl.col(longest) > 0)
        .sort(longest, "source_line", descending=[True, False])
    )


def _part(table: pl.DataFrame, name: str, column: str, size: int, color: str) -> Part:
    return Part(
        name=name,
        values=(table[column] / size).to_list(),
        hovers=[_hover(row) for row in table.iter_rows(named=True)],
        marker={"color": color},
    )


def _hover(row: dict[str, Any]) -> str:
    lines = [
        f"<b>{hover_text(row['source_line'])}</b>",
        f"{percent_text(row['fraction'])} of all",
        f"host {exact_duration(row['host_self_ns'])}, of which {exact_duration(row['host_blocked_ns'])} waiting",
        f"devices {exact_duration(row['device_self_ns'])}, without work for {exact_duration(row['device_idle_ns'])}",
        f"called: {hover_text(row['callees'])}" if row["callees"] else "",
    ]
    return "<br>".join(filter(None, lines))
