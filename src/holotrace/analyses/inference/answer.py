"""Inference in one sentence."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.analyses.inference.compute import Inference
from holotrace.analyses.inference.parts import PARTS
from holotrace.units import duration_text, percent_text

_WORDS = {
    "host": "waiting for the host",
    "launch": "waiting for launched work to begin",
    "memory": "memory-bound kernels",
    "compute": "compute-bound kernels",
    "communication": "exposed communication",
    "copy": "copies",
}


def answer(result: Inference) -> str:
    """Describe the kind of step that takes most time: how long it is, and what bounds it."""
    sums = result.per_kind.with_columns(pl.sum_horizontal(*PARTS).alias("time"))
    row = sums.sort("time", "kind", descending=[True, False], nulls_last=True).row(0, named=True)
    steps = f"{'draft' if row['is_draft'] else row['kind'] or 'unknown'} steps"
    if row["p50_step_ns"] is None:
        return f"None of the {steps} is steady."
    return f"Most time goes to {steps}: {duration_text(row['p50_step_ns'])} in the median, {_bound(row)}."


def _bound(row: dict[str, Any]) -> str:
    part = next((part for part, bound in PARTS.items() if bound == row["bound"]), None)
    if part is None:
        return "and what bounds them is unknown"
    return f"{percent_text(row[part] / max(1, row['time']))} of it in {_WORDS[row['bound']]}"
