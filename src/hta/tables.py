"""Results as tables for people: which rows and columns, under which headings, in which units.

The terminal, the report and the pages print the same `View`s of a result, so they cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from hta.figures.names import printable, short_name
from hta.units import duration_text, percent_text

if TYPE_CHECKING:
    from hta.analyses.communication_overlap import CommunicationOverlap
    from hta.analyses.idle_time import IdleTime
    from hta.analyses.kernel_breakdown import KernelBreakdown
    from hta.analyses.temporal_breakdown import TemporalBreakdown

_HEADINGS = {
    "window_ns": "from first to last work",
    "compute_fraction": "computing",
    "non_compute_fraction": "other work only",
    "idle_fraction": "idle",
    "idle_ns": "idle for",
    "compute_ns": "computing for",
    "comm_ns": "communication",
    "overlap_ns": "hidden",
    "exposed_ns": "exposed",
    "overlap_fraction": "hidden share",
    "duration_ns": "time",
    "fraction": "share",
    "kernel_kind": "kind",
    "name": "kernel",
    "call_count": "calls",
    "gap_count": "gaps",
    "sum_ns": "sum",
    "mean_ns": "mean",
    "std_ns": "std. dev.",
    "min_ns": "min",
    "median_ns": "median",
    "p25_ns": "25 %",
    "p75_ns": "75 %",
    "max_ns": "max",
    "host_wait_fraction": "for the host",
    "kernel_wait_fraction": "for the kernel's start",
    "other_fraction": "for something else",
    "event_count": "events",
    "operator_count": "operators",
    "step_count": "steps",
    "mean_step_ns": "mean step",
}


@dataclass(frozen=True)
class View:
    """One table of a result: what it says, how to make it, and by what to choose rows where there are too many."""

    caption: str
    table: Callable[[Any], pl.DataFrame]
    telling: str
    is_detail: bool = False


@dataclass(frozen=True)
class Cell:
    """One value as it is printed; `whole` is the untruncated text where the printed one is shortened."""

    text: str
    is_number: bool
    whole: str | None = None


@dataclass(frozen=True)
class PrintedTable:
    """A table ready to be shown; `left_out` counts the rows that were too many, `chosen_by` says which were kept."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0
    chosen_by: str = ""


def print_view(view: View, result: object, limit: int) -> PrintedTable:
    """Print a view of a result in at most `limit` rows; of more, those with the largest telling value are kept."""
    return print_frame(view.caption, view.table(result), limit, telling=view.telling)


def print_frame(caption: str, frame: pl.DataFrame, limit: int, *, telling: str) -> PrintedTable:
    """Print a frame in at most `limit` rows, those with the largest values of the column `telling`."""
    left_out = max(0, len(frame) - limit)
    kept = _most_telling(frame, limit, telling) if left_out else frame
    rows = tuple(tuple(map(cell, kept.columns, row)) for row in kept.iter_rows())
    return PrintedTable(
        caption, tuple(map(heading, kept.columns)), rows, left_out, heading(telling) if left_out else ""
    )


def heading(column: str) -> str:
    """Return what a column is called: `overlap_fraction` is the `hidden share`."""
    return _HEADINGS.get(column, column.replace("_", " "))


def cell(column: str, value: float | str | None) -> Cell:
    """Print a value in the unit that the name of its column tells; nothing is a dash."""
    if value is None:
        return Cell(percent_text(None), is_number=True)
    if isinstance(value, str):
        return _text_cell(column, value)
    if column.endswith("_ns"):
        return Cell(duration_text(value), is_number=True)
    if column.endswith("fraction"):
        return Cell(percent_text(value), is_number=True)
    return Cell(f"{value:,}", is_number=True)


def temporal_per_device(result: TemporalBreakdown) -> pl.DataFrame:
    """Return where the time of each device goes, the shares first."""
    shares = ("compute_fraction", "non_compute_fraction", "idle_fraction")
    return _one_device_hidden(result.per_device).select(
        pl.col("^(rank|device)$"), *shares, "compute_ns", "idle_ns", "window_ns"
    )


def states_over_ranks(result: KernelBreakdown) -> pl.DataFrame:
    """Return which kinds of work ran, alone or at once, summed over the ranks."""
    states = result.per_state.group_by("state").agg(pl.col("duration_ns").sum())
    total = max(1, states.get_column("duration_ns").sum())
    shares = states.with_columns((pl.col("duration_ns") / total).alias("fraction"))
    return shares.sort(["duration_ns", "state"], descending=[True, False])


def kernels_over_ranks(result: KernelBreakdown) -> pl.DataFrame:
    """Return each kernel's time and calls, summed over the ranks, the longest first; statistics are per call."""
    per_kernel = result.per_kernel
    total = max(1, per_kernel.get_column("sum_ns").sum())
    joined = per_kernel.group_by("kernel_kind", "name").agg(
        pl.col("sum_ns", "call_count").sum(), pl.col("min_ns").min(), pl.col("max_ns").max()
    )
    mean, share = pl.col("sum_ns") / pl.col("call_count"), pl.col("sum_ns") / total
    table = joined.select(
        "name",
        "kernel_kind",
        "sum_ns",
        share.alias("fraction"),
        "call_count",
        mean.alias("mean_ns"),
        "min_ns",
        "max_ns",
    )
    return table.sort(["sum_ns", "name", "kernel_kind"], descending=[True, False, False])


def overlap_per_rank(result: CommunicationOverlap) -> pl.DataFrame:
    """Return how much of each rank's communication was hidden."""
    return result.per_rank.select("rank", "overlap_fraction", "comm_ns", "overlap_ns", "exposed_ns")


def idle_per_device(result: IdleTime) -> pl.DataFrame:
    """Return how long each device was idle, and which share of that it waited for what."""
    return _one_device_hidden(_by_category(result.per_device))


def idle_per_stream(result: IdleTime) -> pl.DataFrame:
    """Return how long each stream was idle, and which share of that it waited for what."""
    return _one_device_hidden(_by_category(result.per_stream))


def _by_category(table: pl.DataFrame) -> pl.DataFrame:
    """Put the categories side by side."""
    keys = [name for name in ("rank", "device", "stream") if name in table.columns]
    shares = [_share_of(category) for category in ("host_wait", "kernel_wait", "other")]
    totals = [pl.col("idle_ns", "gap_count").sum()]
    return table.group_by(keys, maintain_order=True).agg(*totals, *shares)


def _share_of(category: str) -> pl.Expr:
    return pl.col("fraction").filter(pl.col("category") == category).first().alias(f"{category}_fraction")


def _most_telling(frame: pl.DataFrame, limit: int, telling: str) -> pl.DataFrame:
    """Keep the order of the frame among the rows kept."""
    rank = pl.col(telling).fill_null(0).rank("ordinal", descending=True)
    return frame.filter(rank <= limit)


def _one_device_hidden(table: pl.DataFrame) -> pl.DataFrame:
    """Leave the device out where no rank has more than one."""
    devices = table.group_by("rank").agg(pl.col("device").n_unique()).get_column("device").max()
    return table if devices is not None and devices != 1 else table.drop("device")


def _text_cell(column: str, value: str) -> Cell:
    whole = printable(value)
    shown = printable(short_name(value)) if column == "name" else whole
    return Cell(shown, is_number=False, whole=None if shown == whole else whole)
