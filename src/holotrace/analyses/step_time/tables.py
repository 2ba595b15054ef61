"""Step time: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.step_time.category_names import with_names
from holotrace.analyses.step_time.compute import StepTime
from holotrace.questions.tables import View


def mean_step(result: StepTime) -> pl.DataFrame:
    """Return the mean time and share of each category in the steps of each rank."""
    return with_names(result.mean)


def times_of_steps(result: StepTime) -> pl.DataFrame:
    """Return every step with its times."""
    return result.per_step.drop("start_ns", "end_ns")


def steps_set_apart(result: StepTime) -> pl.DataFrame:
    """Return the warm-up and outlier steps; each row names the category and the event that exceed their usual times most."""
    return with_names(result.jitter.filter(pl.col("step_kind") != "steady"))


def jitter_of_steps(result: StepTime) -> pl.DataFrame:
    """Return the difference of each step from the typical step of its rank."""
    return with_names(result.jitter.drop("event", "event_excess_ns"))


VIEWS = (
    View("The mean step of each rank", mean_step, "mean_ns"),
    View("Warm-up and outlier steps, and what took longer than usual", steps_set_apart, "excess_ns"),
    View("Each step of each rank", times_of_steps, "duration_ns", is_detail=True),
    View("Each step compared with the typical step of its rank", jitter_of_steps, "excess_ns", is_detail=True),
)
