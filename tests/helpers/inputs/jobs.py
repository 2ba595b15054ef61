"""Small jobs for tests of tables, figures, pages and commands."""

from __future__ import annotations

from functools import cache

import polars as pl

from holotrace.analyses.temporal_breakdown.compute import TemporalBreakdown
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder

MARKUP = "<script>alert(1)</script><b>bold</b> $x$"
"""A kernel name with characters that tables and pages must not interpret."""


HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>"
"""A name that runs a script if it is treated as markup."""


def gpu_job() -> TraceBuilder:
    """Return two ranks with kernels, whose times in µs are listed here.

    - Rank 0: gemm (0..40), all-reduce (20..60) and `MARKUP` (100..110, launched at 80).
    - Rank 1: gemm (0..100).
    """
    return (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=40)
        .kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream=20, start_us=20, duration_us=40)
        .kernel(MARKUP, start_us=100, duration_us=10, launch_us=80)
        .rank(1)
        .kernel("gemm", start_us=0, duration_us=100)
    )


@cache
def built_gpu_job() -> Trace:
    """Return the trace of `gpu_job`; it is built once, so tests share its derived results."""
    return gpu_job().build()


@cache
def built_hostile_job() -> Trace:
    """Return the trace of `hostile_job`; it is built once, so tests share its derived results."""
    return hostile_job().build()


def hostile_job() -> TraceBuilder:
    """Return two ranks with markup as the name of every kernel, operator, annotation, module, thread and device."""
    builder = TraceBuilder()
    for rank in (0, 1):
        thread = {"pid": 1000 + rank, "tid": 1}
        builder.rank(rank).header(
            deviceProperties=[{"id": 0, "name": HOSTILE, "totalGlobalMem": 1 << 30}], distributedInfo={"rank": rank}
        )
        builder.step(1, 0, 500).annotation(HOSTILE, start_us=5, duration_us=300)
        builder.gpu_annotation(HOSTILE, start_us=50, duration_us=100)
        builder.event(ph="X", cat="python_function", name=f"nn.Module: {HOSTILE}_0", ts=6, dur=250, **thread)
        builder.event(ph="M", name="thread_name", args={"name": HOSTILE}, **thread)
        builder.operator(HOSTILE, start_us=10, duration_us=200, args={"Input Dims": [[HOSTILE]], "Call stack": HOSTILE})
        kernel = f"void {HOSTILE}<int>(int)"
        builder.kernel(kernel, start_us=60, duration_us=50, launch_us=20, launch_name=f"cudaLaunchKernel{HOSTILE}")
        builder.copy(f"Memcpy {HOSTILE}", start_us=120, duration_us=9, launch_us=40)
        builder.collective(HOSTILE, start_us=140, duration_us=20 + rank, launch_us=50)
        memory = {"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0, "Total Allocated": 512}
        builder.event(ph="i", cat="cpu_instant_event", name="[memory]", ts=60, s="t", args=memory, **thread)
    return builder


def cpu_job() -> TraceBuilder:
    """Return two ranks without GPU work; rank 0 has a step of 10 µs, and rank 1 a step of 30 µs."""
    return (
        TraceBuilder()
        .operator("aten::mm", start_us=1, duration_us=5)
        .step(3, 0, 10)
        .rank(1)
        .operator("aten::mm", start_us=1, duration_us=5)
        .step(3, 0, 30)
    )


def temporal_of_many(ranks: int, devices: int = 1) -> TemporalBreakdown:
    """Return a made-up temporal breakdown of many devices: 50 % computation, 30 % other work and 20 % idle time."""
    lengths, shares = (1_000, 500, 300, 200, 0), (0.5, 0.3, 0.2, 0.0)
    rows = [(rank, device, *lengths, *shares, 0) for rank in range(ranks) for device in range(devices)]
    parts = ["computation", "non_computation", "idle", "unknown"]
    columns = ["rank", "device", "window_ns", *(f"{part}_ns" for part in parts)]
    fractions = [f"{part}_fraction" for part in parts]
    return TemporalBreakdown(pl.DataFrame(rows, schema=[*columns, *fractions, "start_ns"], orient="row"))


def launching_job() -> TraceBuilder:
    """Return two ranks, each with an operator that launches three kernels of 2 µs; each launch call takes 5 µs."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).operator("aten::mm", start_us=0, duration_us=30)
        for index, name in enumerate(("a", "b", MARKUP)):
            builder.kernel(name, start_us=300 + index, duration_us=2, launch_us=6 * index, launch_duration_us=5)
    return builder


def module_job() -> TraceBuilder:
    """Return a job: Net_0 (0..100 ms) calls Linear_0 (10..40 ms), which runs an operator with two kernels."""
    builder = TraceBuilder()
    for name, start, duration in (("Net_0", 0, 100_000), (f"Linear_0{MARKUP}", 10_000, 30_000)):
        call = {"pid": 1000, "tid": 1, "ts": start, "dur": duration}
        builder.event(ph="X", cat="python_function", name=f"nn.Module: {name}", **call)
    builder.operator(MARKUP, start_us=12_000, duration_us=20_000)
    builder.kernel("relu", start_us=50_000, duration_us=7_000, launch_us=13_000, launch_duration_us=1_000)
    return builder.kernel("s16816gemm", start_us=60_000, duration_us=3_000, launch_us=15_000, launch_duration_us=1_000)


def stepping_job(ranks: int = 1) -> TraceBuilder:
    """Return steps of 10 and 20 ms, each with a kernel of 4 ms and an operator of 2 ms."""
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
