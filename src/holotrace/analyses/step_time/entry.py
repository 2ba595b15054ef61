"""Step time: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.step_time.compute import StepTime, step_time
from holotrace.question import Analysis
from holotrace.tables import View


def mean_step(result: StepTime) -> pl.DataFrame:
    """Return the mean time and share of each category in the steps of each rank."""
    return result.mean


def times_of_steps(result: StepTime) -> pl.DataFrame:
    """Return every step with its times."""
    return result.per_step.drop("start_ns", "end_ns")


ENTRY = Analysis(
    name="step_time",
    title="Step time",
    question="What did each step spend its time on?",
    compute=step_time,
    section="Host",
    views=(
        View("The mean step of each rank", mean_step, "mean_ns"),
        View("Each step of each rank", times_of_steps, "duration_ns", is_detail=True),
    ),
    definitions=(
        ("step", "from the begin of ProfilerStep#N to the end of the last device work that it launched"),
        ("kernel, copy, memset", "a device works on one; of several at once, the first of this list counts"),
        ("communication", "a collective runs, and none of the above: exposed communication"),
        ("runtime", "the host is in the CUDA or HIP runtime or driver, and none of the above"),
        ("data loader", "the host waits for the next batch, and none of the above"),
        ("operators", "an operator runs on the host, and none of the above"),
    ),
)
