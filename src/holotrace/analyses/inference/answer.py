"""Inference: the answer in one sentence."""

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
    """Say how long a step of the costliest kind takes, and what bounds it."""
    sums = result.per_kind.with_columns(pl.sum_horizontal(*PARTS).alias("time"))
    row = sums.sort("time", "kind", descending=[True, False], nulls_last=True).row(0, named=True)
    kind = "draft" if row["is_draft"] else row["kind"]
    if row["p50_step_ns"] is None:
        return f"None of the {f'{kind} steps' if kind else 'steps of unknown kind'} is steady."
    step = f"{kind} step" if kind else "step of unknown kind"
    return f"The median {step} takes {duration_text(row['p50_step_ns'])}, {_bound(row)}; steps of this kind take the most time in total."


def _bound(row: dict[str, Any]) -> str:
    part = next((part for part, bound in PARTS.items() if bound == row["bound"]), None)
    if part is None:
        return "but it is unknown what bounds it"
    return f"{percent_text(row[part] / max(1, row['time']))} of it {_WORDS[row['bound']]}"
