"""Small jobs for the tests of tables, figures, pages and commands."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.temporal_breakdown.compute import TemporalBreakdown
from holotrace.testing.builder import TraceBuilder

MARKUP = "<script>alert(1)</script><b>bold</b> $x$"
"""A kernel name with characters that tables and pages must not interpret."""


HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>"
"""A name that runs a script wherever it is treated as markup."""


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


def hostile_job() -> TraceBuilder:
    """Two ranks in which every name is markup: of kernels, operators, annotations, modules, counters, threads, devices."""
    builder = TraceBuilder()
    for rank in (0, 1):
        place = {"pid": 1000 + rank, "tid": 1}
        builder.rank(rank).header(
            deviceProperties=[{"id": 0, "name": HOSTILE, "totalGlobalMem": 1 << 30}], distributedInfo={"rank": rank}
        )
        builder.step(1, 0, 500).annotation(HOSTILE, start_us=5, duration_us=300)
        builder.gpu_annotation(HOSTILE, start_us=50, duration_us=100)
        builder.event(ph="X", cat="python_function", name=f"nn.Module: {HOSTILE}_0", ts=6, dur=250, **place)
        builder.event(ph="M", name="thread_name", args={"name": HOSTILE}, **place)
        builder.operator(HOSTILE, start_us=10, duration_us=200, args={"Input Dims": [[HOSTILE]], "Call stack": HOSTILE})
        kernel = f"void {HOSTILE}<int>(int)"
        builder.kernel(kernel, start_us=60, duration_us=50, launch_us=20, launch_name=f"cudaLaunchKernel{HOSTILE}")
        builder.copy(f"Memcpy {HOSTILE}", start_us=120, duration_us=9, launch_us=40)
        builder.collective(HOSTILE, start_us=140, duration_us=20 + rank, launch_us=50)
        memory = {"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0, "Total Allocated": 512}
        builder.event(ph="i", cat="cpu_instant_event", name="[memory]", ts=60, s="t", args=memory, **place)
    return builder


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
    columns = ["rank", "device", "window_ns", "computation_ns", "non_computation_ns", "idle_ns"]
    fractions = ["computation_fraction", "non_computation_fraction", "idle_fraction"]
    return TemporalBreakdown(pl.DataFrame(rows, schema=[*columns, *fractions, "start_ns"], orient="row"))


def launching_job() -> TraceBuilder:
    """Two ranks: an operator that launches three kernels of 2 µs each, in calls of 5 µs."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).operator("aten::mm", start_us=0, duration_us=30)
        for place, name in enumerate(("a", "b", MARKUP)):
            builder.kernel(name, start_us=300 + place, duration_us=2, launch_us=6 * place, launch_duration_us=5)
    return builder


def module_job() -> TraceBuilder:
    """Net_0 0..100 ms around Linear_0 10..40 ms, in it an operator of 20 ms with markup in its name, and its kernels."""
    builder = TraceBuilder()
    for name, start, duration in (("Net_0", 0, 100_000), (f"Linear_0{MARKUP}", 10_000, 30_000)):
        place = {"pid": 1000, "tid": 1, "ts": start, "dur": duration}
        builder.event(ph="X", cat="python_function", name=f"nn.Module: {name}", **place)
    builder.operator(MARKUP, start_us=12_000, duration_us=20_000)
    builder.kernel("relu", start_us=50_000, duration_us=7_000, launch_us=13_000, launch_duration_us=1_000)
    return builder.kernel("s16816gemm", start_us=60_000, duration_us=3_000, launch_us=15_000, launch_duration_us=1_000)


def stepping_job(ranks: int = 1) -> TraceBuilder:
    """Steps of 10 and 20 ms; each has a kernel of 4 ms and an operator of 2 ms beside it."""
    builder = TraceBuilder()
    for rank in range(ranks):
        builder.rank(rank)
        for number, start, length in ((1, 0, 10_000), (2, 10_000, 20_000)):
            builder.step(number, start, length).operator("aten::mm", start_us=start, duration_us=2_000)
            args = {"blocks per SM": 0.5, "est. achieved occupancy %": 25}
            builder.kernel(
                f"relu{MARKUP}",
                start_us=start + 3_000,
                duration_us=4_000,
                launch_us=start,
                launch_duration_us=0,
                args=args,
            )
    return builder
