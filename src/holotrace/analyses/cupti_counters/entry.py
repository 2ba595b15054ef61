"""CUPTI counters: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.cupti_counters.compute import CuptiCounters, cupti_counters
from holotrace.question import Analysis
from holotrace.tables import View


def counters_by_operator(result: CuptiCounters) -> pl.DataFrame:
    """Return the floating-point operations below each outermost operator, over all ranks."""
    sums = result.per_kernel.group_by("top_operator").agg(_whole_flop().sum(), pl.len().alias("kernel_count"))
    return sums.sort(["flop", "top_operator"], descending=[True, False])


def counted_kernels(result: CuptiCounters) -> pl.DataFrame:
    """Return each measured kernel with its operators."""
    return result.per_kernel.select("rank", "name", _whole_flop(), "top_operator", "operator")


def _whole_flop() -> pl.Expr:
    return pl.col("flop").round().cast(pl.Int64)


ENTRY = Analysis(
    name="cupti_counters",
    title="CUPTI counters",
    question="What did the hardware counters measure?",
    compute=cupti_counters,
    section="Work",
    views=(
        View("Kernels by their outermost operator, over all ranks", counters_by_operator, "flop"),
        View("Each measured kernel", counted_kernels, "flop", is_detail=True),
    ),
    definitions=(
        ("FLOP", "executed floating-point instructions of all threads; a fused multiply-add counts twice"),
        ("operator", "the outermost operator around the call that launched the kernel"),
    ),
)
