"""Straggler cost in one sentence."""

from __future__ import annotations

from holotrace.analyses.straggler_cost.compute import StragglerCost
from holotrace.units import percent_text

LEAST_SLOWDOWN = 1.01
MOST = 0.5
"""A worker or stage explains the slowdown if more than this part of it goes away with them."""


def answer(result: StragglerCost) -> str:
    """Say how much stragglers slow the job down, and whether the slowest workers or the last stage explain it."""
    if len(result.per_worker) == 1:
        return "The trace has a single rank; what stragglers cost shows only beside other ranks."
    if result.slowdown is None or result.slowdown < LEAST_SLOWDOWN:
        return "Without stragglers the job would take as long: its ranks, stages and microbatches are alike."
    lost = percent_text(1 - 1 / result.slowdown)
    return f"{lost} of the job's time is lost to stragglers; {_reason(result)}."


def _reason(result: StragglerCost) -> str:
    worst = result.per_worker.row(0, named=True)
    if (result.worker_share or 0) > MOST:
        return f"most of it goes away without the slowest workers, first of all rank {worst['rank']}"
    if (result.stage_share or 0) > MOST:
        return f"most of it goes away without the last pipeline stage, stage {result.per_stage['stage'][-1]}"
    kind = result.per_kind["operation_kind"][0]
    return f"neither few workers nor the last stage explain most of it; {kind} varies most"
