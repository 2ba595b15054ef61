"""Comparison of two traces: the answer in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.compare_traces.compute import TraceComparison
from holotrace.drawing.names import short_name
from holotrace.questions.answers import change_text


def answer(result: TraceComparison) -> str:
    """Name the operator or kernel whose time differs the most."""
    most = result.per_name.sort(pl.col("difference_ns").abs(), descending=True).row(0, named=True)
    return (
        f"From control to test, the time of {short_name(most['name'])} changed most: "
        f"{change_text(most['difference_ns'])}."
    )
