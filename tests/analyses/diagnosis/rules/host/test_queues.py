"""Tests of the rules about late starts, hosts that fall behind their device, and profiler overhead."""

from __future__ import annotations

import polars as pl
import pytest

import holotrace
from device_jobs import cases_of, recorded
from holotrace.testing.builder import TraceBuilder


def job(*, launch_us: float, launch_name: str = "cudaLaunchKernel") -> holotrace.Trace:
    """Return steps of 1 ms: one kernel ends at 400 µs; another is launched at `launch_us` and starts at 600 µs."""
    trace = TraceBuilder()
    for number in range(4):
        begin = 1000 * number
        trace.step(number, begin, 1000)
        trace.kernel("gemm", start_us=begin + 10, duration_us=390, launch_us=begin + 5)
        trace.kernel(
            "relu", start_us=begin + 600, duration_us=399, launch_us=begin + launch_us, launch_name=launch_name
        )
    return trace.build()


def test_work_that_was_launched_before_its_device_fell_idle_starts_late() -> None:
    """The launch returns at 401 µs and the device is idle, but the kernel starts only at 600 µs."""
    (case,) = cases_of(job(launch_us=400), "late_starts").values()

    assert (case.cost_ns, case.count) == (199_000, 4)
    assert case.place.kernel == "relu"


@pytest.mark.parametrize("launch_us", [550, 590])
def test_work_that_starts_soon_after_its_launch_is_silent(launch_us: float) -> None:
    """A kernel that starts within 0.1 ms of its launch is no late start, even if the device idled before the launch."""
    assert not cases_of(job(launch_us=launch_us), "late_starts")


def late_start(trace: holotrace.Trace) -> tuple[str, str]:
    """Return the finding about late starts and its confidence."""
    findings = holotrace.diagnosis(trace).per_finding.filter(pl.col("rule") == "late_starts")
    sentence, confidence = findings.select("finding", "confidence").row(0)
    return sentence, confidence


def test_the_first_work_of_a_stream_may_wait_for_work_from_before_the_recording() -> None:
    """The first kernels start at least 0.6 ms after their launch; earlier work may have delayed them."""
    trace = TraceBuilder().operator("aten::mm", start_us=0, duration_us=1000)
    trace.kernel("gemm", start_us=600, duration_us=200, launch_us=5)
    trace.kernel("relu", start_us=800, duration_us=200, launch_us=15)
    sentence, confidence = late_start(trace.build())

    assert "from before the recording" in sentence
    assert confidence == "low"


def test_a_graph_that_starts_late_may_lack_kernels() -> None:
    """Each graph seems to start 0.2 ms late, but perhaps its first kernels were not recorded."""
    sentence, confidence = late_start(job(launch_us=400, launch_name="cudaGraphLaunch"))

    assert "lost earlier kernels of these graphs" in sentence
    assert confidence == "low"


@pytest.mark.parametrize(("name", "starts_late"), [("two_ranks-sharded", True), ("training", False), ("small", False)])
def test_ranks_that_share_a_gpu_start_late(name: str, *, starts_late: bool) -> None:
    """Kernels start late if ranks share a GPU (`two_ranks-sharded`), but not if each rank has its own GPU."""
    trace = recorded(name)
    ranks = [trace.select([rank]) for rank in trace.ranks]

    assert any(cases_of(rank, "late_starts") for rank in ranks) is starts_late


def test_a_device_that_idles_has_no_backlog() -> None:
    """In each step, the device is idle for 90 µs between two kernels of 5 µs, so it has no backlog."""
    trace = TraceBuilder()
    for number in range(3):
        trace.step(number, 800 * number, 800)
        for start in (2500 + 100 * number, 2595 + 100 * number):
            trace.kernel("relu", start_us=start, duration_us=5, launch_us=800 * number + 12)

    assert not cases_of(trace.build(), "host_falls_behind")


def job_with_a_backlog(*, host_us: int, wait_us: int = 0) -> holotrace.Trace:
    """Return three steps, each `host_us` long, whose kernels, 500 µs each, run without a pause from 2.5 ms on."""
    trace = TraceBuilder()
    for number in range(3):
        begin = host_us * number
        trace.step(number, begin, host_us)
        trace.python("train.py(7): prepare", start_us=begin + 10, duration_us=host_us - 20)
        trace.kernel("gemm", start_us=2500 + 500 * number, duration_us=500, launch_us=begin + 5)
        if wait_us:
            trace.runtime("cudaDeviceSynchronize", start_us=begin + 12, duration_us=wait_us)
    return trace.build()


def test_a_host_that_needs_longer_than_the_device_falls_behind() -> None:
    """The host falls behind the device: it needs 800 µs per step, and the device needs only 500 µs.

    The host launches all kernels before the first one starts (at 2.5 ms), so the device never waits for the host, and
    the cost is 0.
    """
    (case,) = cases_of(job_with_a_backlog(host_us=800), "host_falls_behind").values()

    assert case.value == pytest.approx(1.6, rel=0.01)
    assert case.place.source_line == "train.py(7): prepare"
    assert case.cost_ns == 0


@pytest.mark.parametrize("options", [{"host_us": 600}, {"host_us": 800, "wait_us": 300}])
def test_a_host_that_keeps_up_or_waits_is_silent(options: dict[str, int]) -> None:
    """Not reported: a host that is at most 20 % slower than its device, and a host that waits for its device."""
    assert not cases_of(job_with_a_backlog(**options), "host_falls_behind")


@pytest.mark.parametrize(("duration_us", "cost_ns"), [(80, 80_000), (20, None)])
def test_buffers_of_the_profiler_cost_the_idle_time_that_they_take(duration_us: int, cost_ns: int | None) -> None:
    """The profiler requests a buffer while the device is idle; 80 µs per step are reported, 20 µs are not."""
    trace = TraceBuilder()
    for number in range(4):
        begin = 1000 * number
        trace.step(number, begin, 1000).kernel("gemm", start_us=begin, duration_us=450, launch_us=begin + 1)
        trace.kernel("relu", start_us=begin + 550, duration_us=450, launch_us=begin + 545)
        trace.event(
            ph="X",
            cat="overhead",
            name="Activity Buffer Request",
            pid=-1,
            tid=0,
            ts=begin + 460,
            dur=duration_us,
            args={},
        )
    costs = [case.cost_ns for case in cases_of(trace.build(), "profiler_overhead").values()]

    assert costs == ([] if cost_ns is None else [cost_ns])
