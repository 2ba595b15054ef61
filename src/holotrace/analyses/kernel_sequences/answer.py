"""Kernel sequences in one sentence."""

from __future__ import annotations

from holotrace.analyses.kernel_sequences.compute import KernelSequences
from holotrace.units import duration_text


def answer(result: KernelSequences) -> str:
    """Name the operator whose repeated sequence takes the most time."""
    longest = result.per_pattern.sort("kernel_ns", descending=True).row(0, named=True)
    return (
        f"{longest['operator']} on rank {longest['rank']} launches the longest sequence: "
        f"{longest['kernel_count_per_call']:,} kernels in a call, {longest['call_count']:,} times, "
        f"{duration_text(longest['kernel_ns'])} in all."
    )
