"""Straggler cost: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.straggler_cost.compute import StragglerCost
from holotrace.questions.tables import View


def whole_job(result: StragglerCost) -> pl.DataFrame:
    """Return the slowdown S and the fractions M_W and M_S of the paper in one row."""
    types = {"slowdown": pl.Float64, "worker_fraction": pl.Float64, "stage_fraction": pl.Float64}
    row = (result.slowdown, result.worker_share, result.stage_share)
    return pl.DataFrame([row], types, orient="row")


def slowest_workers(result: StragglerCost) -> pl.DataFrame:
    """Return the workers, the slowest first."""
    return result.per_worker


def kinds(result: StragglerCost) -> pl.DataFrame:
    """Return the kinds of operations, the costliest first."""
    return result.per_kind


def stages(result: StragglerCost) -> pl.DataFrame:
    """Return the pipeline stages."""
    return result.per_stage


def replicas(result: StragglerCost) -> pl.DataFrame:
    """Return the replicas of the model."""
    return result.per_replica


def steps(result: StragglerCost) -> pl.DataFrame:
    """Return the recorded, replayed and ideal lengths of the steps."""
    return result.per_step


VIEWS = (
    View("Cost of stragglers", whole_job, "slowdown"),
    View("Workers, the slowest first", slowest_workers, "slowdown"),
    View("Kinds of operations, the costliest first", kinds, "mean_cost_ns"),
    View("Pipeline stages", stages, "slowdown"),
    View("Replicas of the model", replicas, "slowdown"),
    View("Steps", steps, "slowdown", is_detail=True),
)
