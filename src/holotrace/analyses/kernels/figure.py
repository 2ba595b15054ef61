"""The figure of the kernels: the kernels that take the most time, and the cores that they use."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.kernels.compute import Kernels, joined_over_ranks
from holotrace.analyses.kernels.question import QUESTION
from holotrace.drawing.colors import COMPUTATION, TENSOR_CORES, UNKNOWN
from holotrace.drawing.named_bars import named_bars
from holotrace.drawing.names import hover_text
from holotrace.drawing.stacked_bars import Heading, Part, exact_duration, largest_unit
from holotrace.drawing.theme import Theme, empty_figure
from holotrace.units import counted, percent_text

TOP_KERNELS = 20
_FEW_BLOCKS = 0.01
_QUESTION = QUESTION.question
_PARTS = (
    ("on tensor or matrix cores", True, TENSOR_CORES),
    ("on ordinary cores", False, COMPUTATION),
    ("unknown", None, UNKNOWN),
)


def plot_kernels(result: Kernels, *, top: int = TOP_KERNELS, theme: Theme = "light") -> go.Figure:
    """Draw the `top` kernels by summed time over all ranks; colours show which cores the kernels use.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> figure = holotrace.figures.plot_kernels(holotrace.kernels(small_job()))
    >>> [bars.name for bars in figure.data]
    ['on tensor or matrix cores', 'on ordinary cores', 'unknown']
    """
    kernels = joined_over_ranks(result)
    if kernels.is_empty():
        return empty_figure(_QUESTION, "No rank runs a kernel.", theme)
    shown = kernels.head(top)
    size, unit = largest_unit(shown.get_column("total_ns").to_list())
    parts = [_part(shown, size, *part) for part in _PARTS]
    heading = Heading(_QUESTION, _explanation(kernels, len(shown)))
    return named_bars(shown.get_column("name").to_list(), parts, heading, f"summed time of all calls, {unit}", theme)


def _explanation(kernels: pl.DataFrame, shown: int) -> str:
    on_tensor_cores, unknown = kernels.select(
        pl.col("fraction").filter("uses_tensor_cores").sum(),
        pl.col("fraction").filter(pl.col("uses_tensor_cores").is_null()).sum().alias("unknown"),
    ).row(0)
    rest = f"; {len(kernels) - shown:,} more are left out" if len(kernels) > shown else ""
    if unknown:
        share = f"At least {percent_text(on_tensor_cores)} of all kernel time is spent on tensor cores"
        return f"{share}; for another {percent_text(unknown)}, the kernel names do not show which cores were used{rest}"
    return f"{percent_text(on_tensor_cores)} of all kernel time is spent on tensor cores{rest}"


def _part(shown: pl.DataFrame, size: int, name: str, uses: bool | None, color: str) -> Part:  # noqa: FBT001 -- a value
    is_part = pl.col("uses_tensor_cores").eq_missing(pl.lit(uses, pl.Boolean))
    times = shown.select(pl.when(is_part).then(pl.col("total_ns") / size).otherwise(0.0)).to_series()
    return Part(
        name=name,
        values=times.to_list(),
        hovers=[_hover(row) for row in shown.iter_rows(named=True)],
        marker={"color": color},
    )


def _hover(row: dict[str, Any]) -> str:
    lines = [
        f"<b>{hover_text(row['name'])}</b>",
        f"{percent_text(row['fraction'])} of all kernel time, {exact_duration(row['total_ns'])}",
        f"{counted(row['call_count'], 'call')}, mean {exact_duration(row['mean_ns'])}",
        f"shortest {exact_duration(row['min_ns'])}, longest {exact_duration(row['max_ns'])}",
        _blocks(row["mean_blocks_per_sm"], row["blocks_per_sm_known_fraction"]),
        _occupancy(row["mean_occupancy_fraction"], row["occupancy_known_fraction"]),
    ]
    return "<br>".join(filter(None, lines))


def _blocks(mean: float | None, known: float | None) -> str:
    return "" if mean is None else f"mean blocks per SM {mean:,.{2 if mean >= _FEW_BLOCKS else 5}f}{_known(known)}"


def _occupancy(mean: float | None, known: float | None) -> str:
    return "" if mean is None else f"mean estimated achieved occupancy {percent_text(mean)}{_known(known)}"


def _known(fraction: float | None) -> str:
    return "" if fraction is None or fraction == 1 else f" (known for {percent_text(fraction)} of the time)"
