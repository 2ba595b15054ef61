"""Kernel sequences: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.kernel_sequences.compute import KernelSequences
from holotrace.units import counted, duration_text


def answer(result: KernelSequences) -> str:
    """Name the operator that launches the costliest sequence."""
    longest = result.per_pattern.sort("kernel_ns", descending=True).row(0, named=True)
    return (
        f"The costliest sequence takes {duration_text(longest['kernel_ns'])} in total: {longest['operator']} on rank "
        f"{longest['rank']} launches {counted(longest['kernel_count_per_call'], 'kernel')} per call "
        f"({longest['call_count']:,} call{'s'[: longest['call_count'] != 1]})."
    )
