"""Comparison of operators: the answer in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.compare_operators.compute import OperatorComparison
from holotrace.questions.answers import change_text


def answer(result: OperatorComparison) -> str:
    """Name the operator whose time differs the most."""
    if result.per_operator.is_empty():
        return "Control and test have no operators to compare."
    most = result.per_operator.sort(pl.col("difference_ns_per_step").abs(), descending=True).row(0, named=True)
    return (
        f"From control to test, the time of {most['operator']} changed most: "
        f"{change_text(most['difference_ns_per_step'])} per step."
    )
