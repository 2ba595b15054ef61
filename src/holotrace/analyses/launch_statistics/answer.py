"""Launch statistics: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.launch_statistics.compute import LaunchStatistics
from holotrace.questions.answers import total
from holotrace.units import duration_text


def answer(result: LaunchStatistics) -> str:
    """Say how many kernels start late, and how long kernels wait between launch and start."""
    delayed = result.per_rank.sort("median_launch_delay_ns", descending=True, nulls_last=True).row(0, named=True)
    late, kernels = (total(result.per_rank, name) for name in ("late_start_count", "kernel_count"))
    if delayed["median_launch_delay_ns"] is None:
        return "No kernel has a known launch."
    start_late = f"{late:,.0f} of {kernels:,.0f} kernels start late"
    if delayed["median_launch_delay_ns"] < 0:
        return f"{start_late}; most kernels start before their launch call returns."
    return (
        f"{start_late}; rank {delayed['rank']} has the longest median launch delay, "
        f"{duration_text(delayed['median_launch_delay_ns'])}."
    )
