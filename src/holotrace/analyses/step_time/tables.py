"""Step time: its tables for people."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.step_time.compute import StepTime
from holotrace.questions.tables import View


def mean_step(result: StepTime) -> pl.DataFrame:
    """Return the mean time and share of each category in the steps of each rank."""
    return result.mean


def times_of_steps(result: StepTime) -> pl.DataFrame:
    """Return every step with its times."""
    return result.per_step.drop("start_ns", "end_ns")


VIEWS = (
    View("The mean step of each rank", mean_step, "mean_ns"),
    View("Each step of each rank", times_of_steps, "duration_ns", is_detail=True),
)
