"""Source lines: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.source_lines.compute import SourceLines
from holotrace.questions.tables import View, known_columns

_TIMES = (
    *("host_self_ns", "host_python_ns", "host_blocked_ns", "host_total_ns", "device_self_ns", "device_total_ns"),
    *("backward_device_self_ns", "device_self_busy_ns", "device_idle_ns", "call_count"),
)


def source_line() -> pl.Expr:
    """Return a line as `file(line): function`, as in profiler traces; null if the line is unknown."""
    return pl.format("{}({}): {}", "file", "line", "function").alias("source_line")


def lines_over_ranks(result: SourceLines) -> pl.DataFrame:
    """Return the times of each line, summed over the ranks, the longest host time first."""
    table = result.per_line.with_columns(source_line())
    sums = [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in _TIMES]
    callees = pl.col("callees").sort_by("host_self_ns", descending=True).first()
    joined = table.group_by("source_line").agg(*sums, pl.col("step_fraction").mean(), callees)
    shown = joined.select("source_line", "callees", "step_fraction", *_TIMES)
    return known_columns(shown.sort("host_self_ns", "source_line", descending=[True, False], nulls_last=True))


def longer_than_other_ranks(result: SourceLines) -> pl.DataFrame:
    """Return the callees of lines that take longer per step on one rank than on the median rank."""
    return _with_line(result.excess, "rank")


def lines_per_rank(result: SourceLines) -> pl.DataFrame:
    """Return the times of each line on each rank."""
    return known_columns(_with_line(result.per_line, "rank"))


def callees(result: SourceLines) -> pl.DataFrame:
    """Return the callees of each line on each rank."""
    return known_columns(_with_line(result.per_callee, "rank"))


def _with_line(table: pl.DataFrame, *first: str) -> pl.DataFrame:
    return table.select(*first, source_line(), pl.exclude(*first, "file", "line", "function"))


VIEWS = (
    View("Lines of code, over all ranks", lines_over_ranks, "host_self_ns"),
    View(
        "Calls that take longer per step on one rank than on the median rank",
        longer_than_other_ranks,
        "excess_ns_per_step",
    ),
    View("Lines of code of each rank", lines_per_rank, "host_self_ns", is_detail=True),
    View("What each line calls", callees, "host_self_ns", is_detail=True),
)
