"""Launch statistics: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.launch_statistics.compute import LaunchStatistics
from holotrace.questions.tables import View

_LAUNCH_COUNTS = ("short_kernel_count", "slow_call_count", "late_start_count")


def launches_per_rank(result: LaunchStatistics) -> pl.DataFrame:
    """Return the cost of launching on each rank."""
    return result.per_rank.select(
        "rank",
        "call_count",
        "total_call_ns",
        "mean_call_ns",
        *_LAUNCH_COUNTS,
        "median_launch_delay_ns",
        "max_launch_delay_ns",
    )


def launches_per_call(result: LaunchStatistics) -> pl.DataFrame:
    """Return the cost of each launching function, over all ranks, the costliest first."""
    columns = ("call_count", "kernel_count", "total_call_ns", *_LAUNCH_COUNTS)
    sums = result.per_call.group_by("call").agg(pl.col(columns).sum(), pl.col("max_launch_delay_ns").max())
    return sums.sort(["total_call_ns", "call"], descending=[True, False])


VIEWS = (
    View("Each rank", launches_per_rank, "total_call_ns"),
    View("Functions that launch work, over all ranks", launches_per_call, "total_call_ns", is_detail=True),
)
