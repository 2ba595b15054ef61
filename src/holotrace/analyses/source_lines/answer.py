"""Source lines in one sentence."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.analyses.source_lines.compute import SourceLines
from holotrace.analyses.source_lines.tables import source_line
from holotrace.questions.answers import Largest, largest, total
from holotrace.units import duration_text, percent_text

_MUCH = 0.05
"""An excess is named first if it is at least this share of a step."""


def answer(result: SourceLines) -> str:
    """Name the line that makes a rank late or, if no rank is late, the line with the most time on devices or the host."""
    late = _late(result)
    if late is not None:
        called = f" in {late['callee']}" if late["callee"] else ""
        return (
            f"Rank {late['rank']} spends {duration_text(late['excess_ns_per_step'])} per step longer than the median rank"
            f"{called}, called from {late['source_line']}."
        )
    known = result.per_line.drop_nulls("file").with_columns(source_line())
    if known.is_empty():
        return "No line of the user's code was recorded."
    side = "device" if total(known, "device_self_ns") else "host"
    line = _largest_known(result.per_line, side)
    return f"{line.name} has the most {side} time: {duration_text(line.total)}, {percent_text(line.share)}."


def _late(result: SourceLines) -> dict[str, Any] | None:
    """Return the largest excess of a known line, if it is much of a step."""
    known = result.excess.drop_nulls("file").filter(pl.col("excess_fraction") >= _MUCH).with_columns(source_line())
    return next(known.iter_rows(named=True), None)


def _largest_known(per_line: pl.DataFrame, side: str) -> Largest:
    """Return the known line with the most time, and its share of the time of all lines, known or not."""
    column = f"{side}_self_ns"
    first = largest(per_line.drop_nulls("file").with_columns(source_line()), "source_line", column)
    return Largest(first.name, first.total, first.total / (total(per_line, column) or 1))
