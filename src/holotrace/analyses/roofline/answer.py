"""Roofline: the answer in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.roofline.compute import Roofline
from holotrace.questions.answers import largest, total
from holotrace.units import duration_text, percent_text


def answer(result: Roofline) -> str:
    """Name the operator furthest above its lower bound, and give the share of the time for which costs are known."""
    known = result.per_operator.filter(pl.col("gap_ns") > 0)
    busy = total(result.per_rank, "busy_ns")
    covered = result.per_rank.select((pl.col("covered_fraction") * pl.col("busy_ns")).sum()).item()
    share = percent_text(covered / busy if busy else 0.0)
    if known.is_empty():
        return f"No operator is above a known lower bound; costs are known for {share} of the time."
    operator = largest(known, "operator", "gap_ns")
    return f"At most {duration_text(operator.total)} could be saved in {operator.name}, the operator furthest above its lower bound; costs are known for {share} of the time."
