"""Tests of the rules about host waits that leave the device idle."""

from __future__ import annotations

import polars as pl
import pytest

import holotrace
from holotrace.testing.builder import TraceBuilder


def reading_job(*, with_more_work: bool) -> holotrace.Trace:
    """Return steps of 200 µs: `.item()` waits for a kernel until 100 µs, and the next launch is at 140 µs."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 200 * number
        trace.step(number, begin, 200)
        trace.kernel("gemm", start_us=begin + 10, duration_us=90, launch_us=begin + 2)
        if with_more_work:
            trace.kernel("gemm", start_us=begin + 100, duration_us=50, launch_us=begin + 5)
        trace.operator("aten::item", start_us=begin + 20, duration_us=85)
        trace.operator("aten::_local_scalar_dense", start_us=begin + 21, duration_us=83)
        trace.runtime("cudaStreamSynchronize", start_us=begin + 22, duration_us=81)
        trace.kernel("gemm", start_us=begin + 150, duration_us=49, launch_us=begin + 140)
    return trace.build()


def rules_of(trace: holotrace.Trace) -> dict[str, int]:
    """Return the stake (ns) of each rule with a finding."""
    return dict(holotrace.diagnosis(trace).per_finding.select("rule", "stake_ns").iter_rows())


def test_reading_a_value_costs_the_idle_time_after_it() -> None:
    """Because the host waits, it launches the next kernel late, and the device is idle from 100 to 150 µs."""
    found = holotrace.diagnosis(reading_job(with_more_work=False)).per_finding.row(0, named=True)

    assert (found["rule"], found["operator"]) == ("scalar_read", "aten::item")
    assert 50_000 <= found["stake_ns"] <= 52_000


def test_a_wait_that_leaves_the_device_busy_costs_nothing() -> None:
    """Another kernel keeps the device busy until the next launch, so the wait is not reported."""
    assert "scalar_read" not in rules_of(reading_job(with_more_work=True))


def job_without_lead(*, waits: bool) -> holotrace.Trace:
    """Return steps of 500 µs with 20 kernels of 10 µs; if `waits`, the host first waits for the device."""
    trace = TraceBuilder()
    for number in range(4):
        begin = 500 * number
        trace.step(number, begin, 500)
        trace.kernel("gemm", start_us=begin + 5, duration_us=100, launch_us=begin + 1)
        if waits:
            trace.runtime("cudaDeviceSynchronize", start_us=begin + 3, duration_us=104)
        first = begin + (120 if waits else 10)
        for place in range(20):
            launch = first + 14 * place
            trace.operator("aten::relu", start_us=launch - 2, duration_us=12)
            start = launch + 4 if waits else max(begin + 105 + 10 * place, launch + 4)
            trace.kernel("relu", start_us=start, duration_us=10, launch_us=launch)
    return trace.build()


def test_a_wait_also_costs_the_idle_time_until_the_host_is_ahead_again() -> None:
    """After the wait, the device is idle for 17 µs, then again between 20 short kernels; all this idle time counts."""
    assert rules_of(job_without_lead(waits=True))["device_synchronisation"] > 50_000


def copying_job(*, copy_us: int) -> holotrace.Trace:
    """Return steps of 400 µs: a blocking copy from pageable memory, then a kernel that starts 60 µs after the copy."""
    trace = TraceBuilder()
    for number in range(4):
        begin = 400 * number
        trace.step(number, begin, 400)
        end = begin + 10 + copy_us
        trace.operator("aten::to", start_us=begin + 2, duration_us=copy_us + 12)
        trace.copy("Memcpy HtoD (Pageable -> Device)", start_us=begin + 10, duration_us=copy_us, launch_us=begin + 5)
        trace.runtime("cudaStreamSynchronize", start_us=begin + 7, duration_us=copy_us + 5)
        trace.kernel("gemm", start_us=end + 60, duration_us=400 - 72 - copy_us, launch_us=end + 55)
    return trace.build()


@pytest.mark.parametrize(
    ("copy_us", "rule", "other"), [(200, "pageable_copy", "blocking_copy"), (5, "blocking_copy", "pageable_copy")]
)
def test_a_pageable_copy_and_its_wait_are_one_finding(copy_us: int, rule: str, other: str) -> None:
    """A long copy is reported because its memory is pageable; a short copy is reported because the host waits for it.

    Neither copy gets both findings, `pageable_copy` and `blocking_copy`.
    """
    found = holotrace.diagnosis(copying_job(copy_us=copy_us)).per_finding
    whole = found.filter(pl.col("part_of").is_null())["rule"].to_list()

    assert rule in whole
    assert other not in whole
