"""CUPTI counters: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.cupti_counters.compute import CuptiCounters
from holotrace.drawing.names import short_name
from holotrace.units import counted


def answer(result: CuptiCounters) -> str:
    """Say how many kernels were measured, and which kernel executes the most floating-point operations."""
    measured = result.per_kernel.drop_nulls("flop")
    if measured.is_empty():
        return f"{counted(len(result.per_kernel), 'kernel was', 'kernels were')} measured, but floating-point operations were not counted."
    most = measured.sort("flop", descending=True).row(0, named=True)
    return f"{counted(len(result.per_kernel), 'kernel was', 'kernels were')} measured; {short_name(most['name'])} does the most work, {most['flop']:,.0f} FLOP."
