"""Kernel sequences: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.kernel_sequences.compute import KernelSequences
from holotrace.units import counted, duration_text


def answer(result: KernelSequences) -> str:
    """Name the operator whose repeated sequence takes the most time."""
    longest = result.per_pattern.sort("kernel_ns", descending=True).row(0, named=True)
    return (
        f"{duration_text(longest['kernel_ns'])} goes into the costliest sequence: {counted(longest['kernel_count_per_call'], 'kernel')} "
        f"per call of {longest['operator']} on rank {longest['rank']}, in {longest['call_count']:,} "
        f"call{'s'[: longest['call_count'] != 1]}."
    )
