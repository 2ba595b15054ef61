"""The figure of the operators: the device time that each operator causes, forward and backward."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.operator_kernels.compute import OperatorKernels, operators_over_ranks
from holotrace.analyses.operator_kernels.question import QUESTION
from holotrace.drawing.colors import BACKWARD, FORWARD
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import cut_labels, hover_text
from holotrace.drawing.stacked_bars import MOST_BARS, Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted

_HEADING = Heading(
    QUESTION.question,
    "Time of the kernels that an operator and its backward operator launch, over all ranks",
)
_DIRECTIONS = (("forward", FORWARD), ("backward", BACKWARD))


def plot_operator_kernels(result: OperatorKernels, *, theme: Theme = "light") -> go.Figure:
    """Draw a bar, split into forward and backward, for each of the operators with the longest kernel time.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_operator_kernels(holotrace.operator_kernels(small_job()))
    >>> [bars.name for bars in figure.data]
    ['forward', 'backward']
    """
    if result.per_forward.is_empty():
        return empty_figure(_HEADING.question, "No kernel has a known operator.", theme)
    shown = operators_over_ranks(result).head(MOST_BARS)
    size, unit = largest_unit(shown["kernel_ns"].to_list())
    names = [_name(operator, module) for operator, module in shown.select("operator", "module").iter_rows()]
    parts = [_part(shown, names, direction, color, size) for direction, color in _DIRECTIONS]
    return named_bars(names, parts, _HEADING, f"kernel time ({unit})", theme, labels=cut_labels)


def _part(shown: pl.DataFrame, names: list[str], direction: str, color: str, size: int) -> Part:
    lengths, counts = shown[f"{direction}_kernel_ns"].to_list(), shown[f"{direction}_kernel_count"].to_list()
    return Part(
        name=direction,
        values=[length / size for length in lengths],
        hovers=[
            f"{exact_duration(length)} in {counted(count, 'kernel')}<br>{hover_text(name)}"
            for length, count, name in zip(lengths, counts, names, strict=True)
        ],
        marker={"color": color},
    )


def _name(operator: str, module: str | None) -> str:
    return operator if module is None else f"{operator} in {module}"
