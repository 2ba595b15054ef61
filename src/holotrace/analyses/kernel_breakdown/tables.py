"""Kernel breakdown: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.kernel_breakdown.compute import KernelBreakdown
from holotrace.questions.tables import View


def states_over_ranks(result: KernelBreakdown) -> pl.DataFrame:
    """Return the time in which kinds of work ran, alone or together, summed over the ranks."""
    states = result.per_state.group_by("state").agg(pl.col("total_ns").sum())
    total = max(1, states.get_column("total_ns").sum())
    shares = states.with_columns((pl.col("total_ns") / total).alias("fraction"))
    return shares.sort(["total_ns", "state"], descending=[True, False])


def kernels_over_ranks(result: KernelBreakdown) -> pl.DataFrame:
    """Return each kernel's time and calls, summed over the ranks, the longest first; statistics are per call."""
    per_kernel = result.per_kernel
    total = max(1, per_kernel.get_column("total_ns").sum())
    joined = per_kernel.group_by("kernel_kind", "name").agg(
        pl.col("total_ns", "call_count").sum(), pl.col("min_ns").min(), pl.col("max_ns").max()
    )
    mean, share = pl.col("total_ns") / pl.col("call_count"), pl.col("total_ns") / total
    table = joined.select(
        "name",
        "kernel_kind",
        "total_ns",
        share.alias("fraction"),
        "call_count",
        mean.alias("mean_ns"),
        "min_ns",
        "max_ns",
    )
    return table.sort(["total_ns", "name", "kernel_kind"], descending=[True, False, False])


VIEWS = (
    View("Kinds of work, alone or together, over all ranks", states_over_ranks, "total_ns"),
    View("Kernels, over all ranks; mean, min and max are per call", kernels_over_ranks, "total_ns"),
)
