"""User annotations: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.user_annotations.compute import UserAnnotations
from holotrace.questions.tables import View


def annotations_on_gpu(result: UserAnnotations) -> pl.DataFrame:
    """Return the time of each annotation on the GPUs, over all ranks, the longest first."""
    columns = ["total_ns", "self_ns", "kernel_ns", "kernel_count", "call_count"]
    return _annotations(result, "gpu", columns)


def annotations_on_cpu(result: UserAnnotations) -> pl.DataFrame:
    """Return the time of each annotation on the host, over all ranks, the longest first."""
    return _annotations(result, "cpu", ["total_ns", "self_ns", "call_count"])


def kernels_of_annotations(result: UserAnnotations) -> pl.DataFrame:
    """Return the kernels launched inside each annotation, over all ranks, the longest first."""
    sums = result.per_kernel.group_by("annotation", "name").agg(pl.col("total_ns", "call_count").sum())
    return sums.sort(["total_ns", "annotation", "name"], descending=[True, False, False])


def _annotations(result: UserAnnotations, side: str, columns: list[str]) -> pl.DataFrame:
    chosen = result.per_annotation.filter(pl.col("side") == side)
    sums = chosen.group_by(pl.col("name").alias("annotation")).agg(pl.col(columns).sum())
    return sums.sort(["total_ns", "annotation"], descending=[True, False])


VIEWS = (
    View("On the GPUs, over all ranks", annotations_on_gpu, "total_ns"),
    View("On the host, over all ranks", annotations_on_cpu, "total_ns"),
    View("Kernels by annotation, over all ranks", kernels_of_annotations, "total_ns", is_detail=True),
)
