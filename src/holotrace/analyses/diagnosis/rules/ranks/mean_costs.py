"""Compute how much time each rank loses per step; the times come from analyses that compare ranks."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence


def steps_of(causes: Any) -> int:  # noqa: ANN401 -- the result of wait_causes
    """Return the number of steps, at least 1."""
    return max(1, int(causes.jitter["step"].n_unique()), int(causes.per_cause["step"].drop_nulls().n_unique()))


def mean_costs(
    evidence: JobEvidence, rows: pl.DataFrame, column: str, *, step_count: int | None = None
) -> dict[int, float]:
    """Return, for each rank that has rows, the sum of a column divided by the number of steps."""
    sums = rows.group_by("rank").agg(pl.col(column).sum(), pl.col("step").n_unique().alias("steps")).sort("rank")
    return {rank: total / (step_count or steps) for rank, total, steps in sums.iter_rows() if rank in evidence.ranks}


def share_of_step(evidence: JobEvidence, costs: dict[int, float]) -> float:
    """Return the mean cost per rank as a fraction of the mean step length."""
    mean_ns = sum(costs.values()) / len(evidence.ranks)
    return mean_ns / evidence.step_ns if evidence.step_ns else 0.0


def wait_count(costs: pl.DataFrame) -> int:
    """Return the largest number of waits with the same cause; a sum over all causes would count some waits twice."""
    return int(costs["wait_count"].max() or 0)  # type: ignore[arg-type]
