"""Parallelism: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.parallelism.compute import Parallelism
from holotrace.questions.tables import View


def exposed_by_axis(result: Parallelism) -> pl.DataFrame:
    """Return the exposed waiting time and transfer time of each rank on each axis."""
    return result.per_axis


def axes_of_groups(result: Parallelism) -> pl.DataFrame:
    """Return the axis of each process group, and how the axis was determined."""
    lists = pl.col("candidates", "collectives").list.join(", ")
    return result.per_group.with_columns(lists)


def exposed_by_module(result: Parallelism) -> pl.DataFrame:
    """Return the exposed communication by the module that requested it."""
    return result.per_module.filter(pl.col("exposed_ns") > 0)


def pipeline_bubble(result: Parallelism) -> pl.DataFrame:
    """Return the bubble of each stage, averaged over its steps."""
    keys = ("process_group", "stage", "stage_count", "rank", "microbatch_count")
    means = pl.col("step_ns", "computation_ns", "transfer_ns", "bubble_ns").mean().name.prefix("mean_")
    shares = pl.col("bubble_fraction", "expected_fraction").mean()
    return result.per_stage.group_by(keys, maintain_order=True).agg(means, shares)


def expert_load(result: Parallelism) -> pl.DataFrame:
    """Return the tokens of each rank in a mixture of experts."""
    return result.per_expert_rank


VIEWS = (
    View("Exposed communication of each rank, by axis", exposed_by_axis, "exposed_ns"),
    View("Bubble of each pipeline stage, averaged over the steps", pipeline_bubble, "bubble_fraction"),
    View("Tokens of each rank in a mixture of experts", expert_load, "imbalance"),
    View("Process groups and their axes", axes_of_groups, "group_size"),
    View("Exposed communication by the module that requested it", exposed_by_module, "exposed_ns", is_detail=True),
)
