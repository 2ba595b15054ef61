"""Source lines: the answer in one sentence."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.analyses.source_lines.compute import SourceLines
from holotrace.analyses.source_lines.tables import source_line
from holotrace.questions.answers import Largest, largest, total
from holotrace.units import duration_text, percent_text

_MUCH = 0.1
"""If a rank's excess in a line is at least this share of a step, the answer says that this line makes the rank late."""


def answer(result: SourceLines) -> str:
    """Name a line that makes a rank late, or else a line that keeps devices idle, or else the costliest line."""
    late = _late(result)
    if late is not None:
        called = f"{late['callee']}, called from {late['source_line']}" if late["callee"] else late["source_line"]
        more = f"{duration_text(late['excess_ns_per_step'])} more per step than the median rank"
        return f"Rank {late['rank']} spends {more} in {called}."
    lines = result.per_line
    if lines["file"].null_count() == len(lines):
        return "No line of the user's code was recorded."
    if total(lines, "device_idle_ns") > total(lines, "device_self_busy_ns"):
        return idle_text(result)
    side = "device" if total(lines, "device_self_ns") else "host"
    line = _largest_known(lines, f"{side}_self_ns")
    return f"{percent_text(line.share)} of the {side} time ({duration_text(line.total)}) comes from {line.name}, more than from any other line."


def idle_text(result: SourceLines) -> str:
    """Name the line that runs during the largest part of the devices' idle time; empty if no such line is known."""
    if not total(result.per_line.drop_nulls("file"), "device_idle_ns"):
        return ""
    idle = _largest_known(result.per_line, "device_idle_ns")
    return f"{percent_text(idle.share)} of the devices' idle time ({duration_text(idle.total)}) passes while {idle.name} runs."


def _late(result: SourceLines) -> dict[str, Any] | None:
    """Return the first row of `excess` with a known line and an excess of at least a tenth of a step, or None."""
    known = result.excess.drop_nulls("file").filter(pl.col("excess_fraction") >= _MUCH).with_columns(source_line())
    return next(known.iter_rows(named=True), None)


def _largest_known(per_line: pl.DataFrame, column: str) -> Largest:
    """Return the known line with the largest sum of a column, and its share of the sum over all lines, including unknown ones."""
    first = largest(per_line.drop_nulls("file").with_columns(source_line()), "source_line", column)
    return Largest(first.name, first.total, first.total / (total(per_line, column) or 1))
