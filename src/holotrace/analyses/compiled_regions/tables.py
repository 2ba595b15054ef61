"""Compiled regions: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.compiled_regions.compute import CompiledRegions
from holotrace.questions.tables import View, known_columns


def regions(result: CompiledRegions) -> pl.DataFrame:
    """Return the compiled regions of each rank."""
    again = pl.when("is_recompiled").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("is_recompiled")
    return known_columns(result.per_region.with_columns(again))


def frames(result: CompiledRegions) -> pl.DataFrame:
    """Return how often each frame was compiled, and why it was recompiled."""
    return known_columns(result.per_frame)


def costs(result: CompiledRegions) -> pl.DataFrame:
    """Return the cost of torch.compile on each rank."""
    return known_columns(result.per_rank)


def generated_kernels(result: CompiledRegions) -> pl.DataFrame:
    """Return the generated kernels over all ranks, the longest first."""
    sums = result.per_kernel.group_by("operator", "source_file", "source_line").agg(
        pl.col("call_count", "device_self_ns").sum()
    )
    keys = ("operator", "source_file", "source_line")
    return known_columns(sums.sort("device_self_ns", *keys, descending=[True, False, False, False], nulls_last=True))


VIEWS = (
    View("Compiled regions", regions, "host_total_ns"),
    View("Recompilations", frames, "recompilation_count"),
    View("Cost of torch.compile", costs, "compilation_ns"),
    View("Generated kernels, over all ranks", generated_kernels, "device_self_ns", is_detail=True),
)
