"""Step time: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.step_time.category_names import name_of
from holotrace.analyses.step_time.compute import NO_STEPS, StepTime
from holotrace.questions.answers import largest, total
from holotrace.units import duration_text, percent_text


def answer(result: StepTime) -> str:
    """Say how long a step takes, and which category takes the largest part."""
    part = largest(result.mean, "category", "mean_ns")
    mean_ns = total(result.per_step, "duration_ns") / len(result.per_step)
    takes = f"takes {duration_text(mean_ns)}"
    whole = (
        f"The recording {takes}"
        if any(NO_STEPS in finding for finding in result.findings)
        else f"A step {takes} on average"
    )
    return f"{whole}; its largest part is {name_of(part.name)} ({percent_text(part.share)})."
