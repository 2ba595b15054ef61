"""Straggler cost: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.straggler_cost.compute import StragglerCost
from holotrace.units import percent_text

LEAST_SLOWDOWN = 1.01
MOST = 0.5
"""The answer blames the slowest workers (or the last stage) if they cause more than this share of the loss."""


def answer(result: StragglerCost) -> str:
    """Say how much stragglers slow the job down, and whether the slowest workers or the last stage cause most of it."""
    if len(result.per_worker) == 1:
        return "1 rank alone does not show the cost of stragglers; open all ranks of the job."
    if result.slowdown is None:
        return "The cost of stragglers is unknown, because no step can be compared with an ideal step."
    lost = percent_text(max(0.0, 1 - 1 / result.slowdown) if result.slowdown > 0 else 0.0)
    if result.slowdown < LEAST_SLOWDOWN:
        return f"Only {lost} of the job's time is lost to stragglers, because all ranks, stages and microbatches take about the same time."
    return f"{lost} of the job's time is lost to stragglers; {_reason(result)}."


def _reason(result: StragglerCost) -> str:
    worst = result.per_worker.row(0, named=True)
    if (result.worker_share or 0) > MOST:
        return f"the slowest workers cause most of this loss, especially rank {worst['rank']}"
    if (result.stage_share or 0) > MOST:
        return f"the last pipeline stage (stage {result.per_stage['stage'][-1]}) causes most of this loss"
    kind = result.per_kind["operation_kind"][0]
    return f"the loss is spread over workers and stages, and uneven durations of {kind} operations cost the most"
