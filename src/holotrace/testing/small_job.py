"""A job with two ranks and two steps, small enough to check every number by hand."""

from __future__ import annotations

from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder

STEP_US = 1_000
"""Length of a step. In each step, rank 1 starts its all-reduce 200 µs after rank 0."""


def small_job() -> Trace:
    """Return a job with two data-parallel ranks, of which rank 1 is late.

    Each step lasts 1,000 µs; all times below are counted from the start of the step. The device of each rank copies a
    batch from 10 to 60 µs, multiplies matrices from 100 µs on, applies relu, and reduces the gradients with the other
    rank until 780 µs. The host waits for the device from 200 to 785 µs. The multiplication takes 300 µs on rank 0 and
    500 µs on rank 1, so rank 0 waits 200 µs in the all-reduce.

    >>> from holotrace.testing import small_job
    >>> small_job()
    Trace(ranks=[0, 1])
    """
    builder = TraceBuilder()
    for rank, gemm_us in ((0, 300), (1, 500)):
        builder.rank(rank)
        for number in (1, 2):
            _add_step(builder, number, gemm_us)
    return builder.build()


def _add_step(builder: TraceBuilder, number: int, gemm_us: int) -> None:
    start = (number - 1) * STEP_US
    relu, reduce = start + 100 + gemm_us + 20, start + 100 + gemm_us + 80
    builder.step(number, start, STEP_US)
    builder.copy(byte_count=1_000_000, start_us=start + 10, duration_us=50, launch_us=start + 5)
    dims = {"Input Dims": [[64, 128], [128, 256]]}
    builder.operator("aten::mm", start_us=start + 70, duration_us=30, args=dims)
    builder.kernel("gemm", start_us=start + 100, duration_us=gemm_us, launch_us=start + 80)
    builder.operator("aten::relu", start_us=start + 110, duration_us=20)
    builder.kernel("relu", start_us=relu, duration_us=50, launch_us=start + 115)
    builder.operator("c10d::allreduce_", start_us=start + 140, duration_us=20)
    builder.runtime("cudaDeviceSynchronize", start_us=start + 200, duration_us=585)
    end = start + 780
    builder.collective(stream=20, start_us=reduce, duration_us=end - reduce, launch_us=start + 145, sequence=number)
