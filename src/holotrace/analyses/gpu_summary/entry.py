"""GPU summary: its question, tables for people, and definitions."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.gpu_summary.compute import GpuSummary, gpu_summary
from holotrace.question import Analysis
from holotrace.tables import View, one_device_hidden, with_bounds, without_wholly_known


def use_per_device(result: GpuSummary) -> pl.DataFrame:
    """Return what each device is and how well it is used; what is known, and what is not, only where that is a part."""
    table = without_wholly_known(result.per_device.drop("start_ns", "end_ns", "is_estimated"))
    return one_device_hidden(with_bounds(table, "tensor_core_fraction", "tensor_core_unknown_fraction"))


ENTRY = Analysis(
    name="gpu_summary",
    title="GPU summary",
    question="How well is each GPU used?",
    compute=gpu_summary,
    section="Devices",
    views=(View("Each device, over its steps", use_per_device, "utilization_fraction"),),
    definitions=(
        ("utilization", "the share of the steps in which a kernel runs"),
        ("est. SM efficiency", "blocks per SM of the kernels that run, at most 1, averaged over the steps"),
        ("est. occupancy", "threads on an SM in the most it holds, averaged over the kernels by their duration"),
        ("known for", "share of the kernels' time whose launch shapes are known; the others count as these do"),
        (
            "on tensor cores",
            "share of the kernel time, of kernels whose names say that they use tensor or matrix cores",
        ),
    ),
)
