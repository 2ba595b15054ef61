"""A wait of the host costs the idle time after it, unless the device has work left."""

from __future__ import annotations

import holotrace
from holotrace.testing.builder import TraceBuilder


def reading_job(*, with_more_work: bool) -> holotrace.Trace:
    """Return steps of 200 µs: a kernel until 100 µs, `.item()` that waits for it, and launches from 140 µs on."""
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
    """Return what is at stake for each rule."""
    return dict(holotrace.diagnosis(trace).per_finding.select("rule", "stake_ns").iter_rows())


def test_reading_a_value_costs_the_idle_time_after_it() -> None:
    """The device is idle from 100 to 150 µs, because the host could not launch while it waited."""
    found = holotrace.diagnosis(reading_job(with_more_work=False)).per_finding.row(0, named=True)

    assert (found["rule"], found["operator"]) == ("scalar_read", "aten::item")
    assert 0 < found["stake_ns"] <= 50_000


def test_a_wait_that_leaves_the_device_busy_costs_nothing() -> None:
    """A second kernel runs until the next one starts."""
    assert "scalar_read" not in rules_of(reading_job(with_more_work=True))
