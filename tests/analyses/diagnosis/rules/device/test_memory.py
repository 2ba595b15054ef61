"""Tests of the rules about calls to the driver's allocator and about memory close to the limit."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import H100, cases_of, missing_for, recorded, said
from holotrace.testing.builder import TraceBuilder

GIGABYTE = 1_000_000_000


def allocating_job(*, in_operator: bool, hidden: bool = False) -> holotrace.Trace:
    """Return three steps of 100 µs with 30 µs in cudaFree and cudaMalloc; if `hidden`, a kernel runs meanwhile."""
    trace = TraceBuilder().header(deviceProperties=[dict(H100)])
    for number in range(3):
        begin = 100 * number
        trace.step(number, begin, 100)
        if in_operator:
            trace.operator("aten::empty", start_us=begin + 9, duration_us=32)
        trace.runtime("cudaFree", start_us=begin + 10, duration_us=10)
        trace.runtime("cudaMalloc", start_us=begin + 20, duration_us=20)
        start = begin + (8 if hidden else 50)
        trace.kernel("gemm", start_us=start, duration_us=45, launch_us=start - 3)
    return trace.build()


@pytest.mark.parametrize(("in_operator", "rule"), [(True, "allocator_retries"), (False, "empties_cache")])
def test_the_calls_cost_the_time_in_which_no_device_works(in_operator: bool, rule: str) -> None:  # noqa: FBT001
    """Inside an operator, cudaFree is part of an allocation retry; outside operators, it is part of `empty_cache`.

    Both cost 30 µs.
    """
    trace = allocating_job(in_operator=in_operator)
    found = {name: cases_of(trace, name) for name in ("allocator_retries", "empties_cache")}

    assert [name for name, cases in found.items() if cases] == [rule]
    assert found[rule][""].cost_ns == pytest.approx(30_000, rel=0.001)


def test_calls_behind_a_kernel_cost_nothing() -> None:
    """A kernel runs during every call of cudaFree and cudaMalloc, so these calls cost nothing."""
    trace = allocating_job(in_operator=True, hidden=True)

    assert not cases_of(trace, "allocator_retries")


def test_a_recording_without_steps_may_be_a_start() -> None:
    """Allocating memory at the start of a job is normal, so the rule cannot decide without steps."""
    trace = (
        TraceBuilder().runtime("cudaFree", start_us=0, duration_us=50).runtime("cudaMalloc", start_us=60, duration_us=9)
    )
    trace.kernel("gemm", start_us=90, duration_us=10, launch_us=80)

    assert "prof.step()" in (missing_for(trace.build(), "empties_cache") or "")


def full_job(allocated: int, reserved: int) -> holotrace.Trace:
    """Return a job in which one operator allocates and reserves memory (sizes in bytes) on an 80 GB GPU."""
    trace = TraceBuilder().header(deviceProperties=[dict(H100)]).step(0, 0, 100)
    trace.operator("aten::empty", start_us=10, duration_us=10)
    trace.kernel("fill", start_us=30, duration_us=60, launch_us=25)
    sizes = {"Bytes": allocated, "Total Allocated": allocated, "Total Reserved": reserved}
    args = {"Device Type": 1, "Device Id": 0, "Addr": 16, **sizes}
    trace.event(ph="i", s="t", cat="cpu_instant_event", name="[memory]", pid=1000, tid=1, ts=15, args=args)
    return trace.build()


def test_memory_near_the_limit_names_what_holds_it() -> None:
    """If 76 of 80 GB are allocated, the finding names the operator that allocated them; 70 GB are not reported."""
    trace = full_job(76 * GIGABYTE, 78 * GIGABYTE)

    assert cases_of(trace, "memory_limit")["0"].value == pytest.approx(0.95)
    assert "70.8 GiB by aten::empty" in said(trace, "memory_limit").what
    assert not cases_of(full_job(70 * GIGABYTE, 78 * GIGABYTE), "memory_limit")


def test_fragmentation_matters_on_a_full_device() -> None:
    """40 GB are reserved but unused: this is reported if 79 of 80 GB are reserved, but not if 50 GB are."""
    assert cases_of(full_job(39 * GIGABYTE, 79 * GIGABYTE), "fragmentation")["0"].value == pytest.approx(0.5)
    assert not cases_of(full_job(10 * GIGABYTE, 50 * GIGABYTE), "fragmentation")


def test_memory_events_are_needed() -> None:
    """Without memory events, the rule asks for `profile_memory=True`."""
    assert "profile_memory=True" in (missing_for(allocating_job(in_operator=True), "memory_limit") or "")


def test_the_recorded_jobs() -> None:
    """Emptying the cache costs one job 4.4 ms per step; another job uses over 90 % of its device's memory."""
    (case,) = cases_of(recorded("training-empties_cache"), "empties_cache").values()
    full = cases_of(recorded("memory-fragmented"), "memory_limit")

    assert case.cost_ns / 1e6 == pytest.approx(4.4, abs=0.2)
    assert (case.place.source_line or "").endswith(": step")
    assert full["0"].value > 0.9
    for rule in ("empties_cache", "allocator_retries"):
        assert not cases_of(recorded("training"), rule)
