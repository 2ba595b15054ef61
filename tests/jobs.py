"""Small jobs that the tests of what people see share."""

from __future__ import annotations

import polars as pl

from hta.analyses.temporal_breakdown import TemporalBreakdown
from hta.testing.builder import TraceBuilder

MARKUP = "<script>alert(1)</script><b>bold</b> $x$"
"""A kernel name that must appear letter by letter."""


def gpu_job() -> TraceBuilder:
    """Rank 0: gemm 0..40, all-reduce 20..60, idle, relu 100..110, launched at 80; rank 1: gemm 0..100."""
    return (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=40)
        .kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=20, start_us=20, duration_us=40)
        .kernel(MARKUP, start_us=100, duration_us=10, launch_us=80)
        .rank(1)
        .kernel("gemm", start_us=0, duration_us=100)
    )


def cpu_job() -> TraceBuilder:
    """Two ranks without GPU work: one step of 10 µs on rank 0, and one of 30 µs on rank 1."""
    return (
        TraceBuilder()
        .operator("aten::mm", start_us=1, duration_us=5)
        .step(3, 0, 10)
        .rank(1)
        .operator("aten::mm", start_us=1, duration_us=5)
        .step(3, 0, 30)
    )


def temporal_of_many(ranks: int, devices: int = 1) -> TemporalBreakdown:
    """Return a made-up result of many ranks: each device computes 50 %, does other work 30 %, idles 20 %."""
    rows = [
        (rank, device, 1_000, 500, 300, 200, 0.5, 0.3, 0.2, 0) for rank in range(ranks) for device in range(devices)
    ]
    columns = ["rank", "device", "window_ns", "compute_ns", "non_compute_ns", "idle_ns"]
    fractions = ["compute_fraction", "non_compute_fraction", "idle_fraction"]
    return TemporalBreakdown(pl.DataFrame(rows, schema=[*columns, *fractions, "start_ns"], orient="row"))
