"""The figure of the kernel sequences that operators launch most often."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from holotrace.analyses.kernel_sequences.compute import KernelSequences, sequences_over_ranks
from holotrace.analyses.kernel_sequences.question import QUESTION
from holotrace.drawing.colors import COMPUTATION
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import cut_labels, hover_text
from holotrace.drawing.stacked_bars import MOST_BARS, Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted

_LABEL_LENGTH = 48
_HEADING = Heading(
    QUESTION.question,
    "Kernel time of the most frequent sequences, summed over all calls and ranks; beside each bar: the number of calls",
)


def plot_kernel_sequences(result: KernelSequences, *, theme: Theme = "light") -> go.Figure:
    """Draw one bar for each of the most frequent sequences; its length is the kernel time over all ranks.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_kernel_sequences(holotrace.kernel_sequences(small_job(), min_kernel_count=1))
    >>> [bars.name for bars in figure.data]
    ['kernels']
    """
    if result.per_pattern.is_empty():
        return empty_figure(_HEADING.question, "No call of an operator launches the required number of kernels.", theme)
    shown = sequences_over_ranks(result).head(MOST_BARS)
    size, unit = largest_unit(shown["kernel_ns"].to_list())
    names = [_name(row) for row in shown.iter_rows(named=True)]
    part = Part(
        name="kernels",
        values=[duration / size for duration in shown["kernel_ns"]],
        hovers=[_hover(row) for row in shown.iter_rows(named=True)],
        marker={"color": COMPUTATION},
        labels=[f"{counted(count, 'call')}" for count in shown["call_count"]],
        in_legend=False,
    )
    return named_bars(names, [part], _HEADING, f"time of the kernels ({unit})", theme, labels=cut_labels)


def _name(row: dict[str, Any]) -> str:
    operator = row["operator"].removeprefix("autograd::engine::evaluate_function: ")
    shown = operator if len(operator) <= _LABEL_LENGTH else f"{operator[: _LABEL_LENGTH - 1]}…"
    return f"{shown}, {counted(row['kernel_count_per_call'], 'kernel')}"


def _hover(row: dict[str, Any]) -> str:
    lines = (
        f"{counted(row['call_count'], 'call')} of {counted(row['kernel_count_per_call'], 'kernel')}",
        f"kernels {exact_duration(row['kernel_ns'])}",
        f"calls on the host {exact_duration(row['operator_ns'])}",
        hover_text(row["pattern"]),
    )
    return "<br>".join(lines)
