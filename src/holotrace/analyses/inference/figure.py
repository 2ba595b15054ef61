"""The figure of inference: the mean step of each kind and batch, divided into its parts."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.inference.compute import Inference
from holotrace.analyses.inference.parts import PARTS
from holotrace.analyses.inference.question import QUESTION
from holotrace.drawing.colors import COMMUNICATION, COMPUTATION, HOST_GAP, LAUNCH_DELAY, MEMORY, MEMSET, OTHER, UNKNOWN
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import cut_labels
from holotrace.drawing.stacked_bars import Heading, Part, largest_unit, share_hovers
from holotrace.drawing.theme import Theme, empty_figure

MOST_ROWS = 16
_QUESTION = QUESTION.question
_EXPLANATION = "The mean steady step of each kind and batch, over all ranks; time that belongs to several parts counts only toward the first of them in the legend"
_LOOKS = {
    "compute_bound_ns": ("compute-bound kernels", COMPUTATION),
    "memory_bound_ns": ("memory-bound kernels", MEMORY),
    "unknown_bound_ns": ("kernels, bound unknown", OTHER),
    "copying_ns": ("copies", MEMSET),
    "exposed_ns": ("exposed communication", COMMUNICATION),
    "launch_idle_ns": ("waits for launch", LAUNCH_DELAY),
    "unknown_idle_ns": ("idle, cause unknown", UNKNOWN),
    "host_idle_ns": ("waits for host", HOST_GAP),
}


def plot_inference(result: Inference, *, theme: Theme = "light") -> go.Figure:
    """Draw a bar for the mean step of each kind and batch; if there are many batches, draw one bar per kind.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> builder = TraceBuilder().annotation("step[DECODE bs=32]", start_us=0, duration_us=100)
    >>> trace = builder.kernel("gemm", start_us=60, duration_us=20, launch_us=50).build()
    >>> figure = holotrace.figures.plot_inference(holotrace.inference(trace))
    >>> figure.data[0].name
    'compute-bound kernels'
    """
    table = _means(result)
    if table.is_empty():
        return empty_figure(_QUESTION, "No inference steps were found.", theme)
    total = table.select(pl.sum_horizontal(*PARTS)).to_series()
    size, unit = largest_unit(total.to_list())
    parts = [_part(table, total, part, size) for part in PARTS]
    heading, axis = Heading(_QUESTION, _EXPLANATION), f"mean time of a step ({unit})"
    return named_bars(_names(table), parts, heading, axis, theme, labels=cut_labels)


def _means(result: Inference) -> pl.DataFrame:
    """Return the parts of the mean step, for each kind and batch; if there are many batches, for each kind only."""
    keys = ["kind", "is_draft", "request_count"]
    has_few = result.per_batch.select(keys).n_unique() <= MOST_ROWS
    rows = result.per_batch if has_few else result.per_kind.with_columns(pl.lit(None, pl.Int64).alias("request_count"))
    steady = rows.filter(pl.col("step_count") > pl.col("apart_count"))
    counted = steady.with_columns(count=pl.col("step_count") - pl.col("apart_count"))
    sums = counted.group_by(keys).agg(pl.col("count", *PARTS).sum())
    means = [(pl.col(part) / pl.col("count")).round().cast(pl.Int64).alias(part) for part in PARTS]
    return sums.select(*keys, "count", *means).sort(keys, nulls_last=True)


def _names(table: pl.DataFrame) -> list[str]:
    rows = table.select("kind", "is_draft", "request_count", "count").iter_rows()
    return [
        " · ".join([_kind_text(kind, is_draft=is_draft), *_counted(requests, "request"), *_counted(count, "step")])
        for kind, is_draft, requests, count in rows
    ]


def _kind_text(kind: str | None, *, is_draft: bool) -> str:
    return "draft" if is_draft else kind or "unknown"


def _counted(count: int | None, what: str) -> list[str]:
    return [] if count is None else [f"{count:,} {what}{'' if count == 1 else 's'}"]


def _part(table: pl.DataFrame, total: pl.Series, part: str, size: int) -> Part:
    name, color = _LOOKS[part]
    times = table[part]
    shares = pl.select(pl.when(total > 0).then(times / total)).to_series().to_list()
    return Part(
        name=name,
        values=(times / size).to_list(),
        hovers=share_hovers(times.to_list(), shares),
        marker={"color": color},
        in_legend=bool(times.sum()),
    )
