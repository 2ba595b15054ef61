"""Tests of the rule about slow first calls, which set up a device or load kernels."""

from __future__ import annotations

import polars as pl
import pytest

import holotrace
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.testing.builder import TraceBuilder


def cold_job(*, initialises: str = "cudaDeviceGetStreamPriorityRange") -> holotrace.Trace:
    """Return a recording of 50 ms without steps: `aten::to` sets up the device for 30 ms, then 10 kernels run."""
    trace = TraceBuilder()
    trace.operator("aten::to", start_us=1_000, duration_us=30_200)
    trace.operator("aten::empty_strided", start_us=1_010, duration_us=30_030)
    trace.runtime(initialises, start_us=1_020, duration_us=30_000)
    trace.copy("Memcpy HtoD (Pageable -> Device)", start_us=31_100, duration_us=50, launch_us=31_060)
    for place in range(10):
        start = 31_400 + 1_800 * place
        trace.operator("aten::relu", start_us=start, duration_us=1_700)
        trace.kernel("relu", start_us=start + 80, duration_us=1_600, launch_us=start + 60)
    return trace.build()


def loading_job(*, busy_us: int) -> holotrace.Trace:
    """Return a recording of a kernel that runs for `busy_us`, a kernel whose launch takes 10 ms, and ten more kernels.

    The recording has no steps.
    """
    trace = TraceBuilder()
    trace.operator("aten::mm", start_us=5, duration_us=30)
    trace.kernel("gemm", start_us=40, duration_us=busy_us, launch_us=20, launch_duration_us=10)
    trace.operator("aten::relu", start_us=40, duration_us=10_010)
    trace.kernel("relu", start_us=10_060, duration_us=1_600, launch_us=45, launch_duration_us=10_000)
    for place in range(10):
        launch = 10_100 + 10 * place
        trace.operator("aten::relu", start_us=launch - 1, duration_us=8)
        trace.kernel("relu", start_us=11_661 + 1_601 * place, duration_us=1_600, launch_us=launch, launch_duration_us=6)
    return trace.build()


def test_loading_a_kernel_costs_the_time_in_which_the_device_is_idle() -> None:
    """Loading the second kernel takes 10 ms and costs 7 ms, because the first kernel runs during the other 3 ms."""
    found = holotrace.diagnosis(loading_job(busy_us=3_005)).per_finding.filter(pl.col("rule") == "first_calls")
    assert found["stake_ns"].to_list() == [pytest.approx(7_000_000, rel=0.01)]


def test_a_launch_while_the_device_works_may_wait_for_room_in_its_queue() -> None:
    """The second launch takes 10 ms. It is not reported, because the first kernel runs during 6 of them.

    The launch may just wait until the queue has room.
    """
    assert "first_calls" not in holotrace.diagnosis(loading_job(busy_us=6_005)).per_finding["rule"]


def test_creating_the_context_is_not_the_copy_that_triggers_it() -> None:
    """Setting up the device takes 30 ms inside a copy; the finding does not blame the copy."""
    found = holotrace.diagnosis(cold_job()).per_finding

    first = found.row(0, named=True)
    assert (first["rule"], first["operator"], first["basis"]) == ("first_calls", "aten::to", "what-if")
    assert first["stake_ns"] == 30_000_000
    assert "cudaDeviceGetStreamPriorityRange in aten::to" in first["finding"]
    assert "blocking_copy" not in found["rule"]


def test_waiting_for_the_device_is_no_first_call() -> None:
    """A long wait for the device is not reported as a slow first call."""
    assert "first_calls" not in holotrace.diagnosis(cold_job(initialises="cudaDeviceSynchronize")).per_finding["rule"]


def test_a_cold_recording_is_in_doubt() -> None:
    """The `trust` analysis marks the 30 ms of slow first calls as doubtful."""
    result = holotrace.trust(cold_job())

    assert result.doubts["rule"].to_list() == ["slow_first_calls"]
    assert result.per_rank["doubtful_ns"].to_list() == [30_000_000]


def test_calls_that_are_long_in_every_step_are_not_the_first() -> None:
    """Loading a kernel takes 2 ms in each of 4 steps, so the load in the first step is not a slow first call."""
    trace = TraceBuilder()
    for number in range(4):
        begin = 4_000 * number
        trace.step(number, begin, 4_000)
        trace.operator("aten::relu", start_us=begin + 10, duration_us=2_100)
        trace.runtime("cuModuleLoadData", start_us=begin + 20, duration_us=2_000)
        trace.kernel("relu", start_us=begin + 2_100, duration_us=1_000, launch_us=begin + 2_050)

    rules = holotrace.diagnosis(trace.build()).per_finding["rule"].to_list()

    assert "first_calls" not in rules
    assert "launch_bound" in rules


def late_stream(*, launched_us: int) -> holotrace.Trace:
    """Return a recording of 100 ms with a kernel that is launched at `launched_us` and runs from 80 ms on."""
    trace = TraceBuilder()
    trace.operator("aten::mm", start_us=0, duration_us=99_000)
    trace.kernel("gemm", start_us=80_000, duration_us=20_000, launch_us=launched_us)
    return trace.build()


def test_work_from_before_the_recording_is_unknown_rather_than_idle() -> None:
    """Unrecorded work may keep the device busy in the 79 ms between the launch and the start of the first kernel."""
    trace = late_stream(launched_us=1_000)

    headline = holotrace.diagnosis(trace).headline.row(0, named=True)
    assert round(headline["busy_fraction"], 2) == 0.2
    assert round(headline["unknown_fraction"], 2) == 0.79
    assert holotrace.trust(trace).doubts["rule"].to_list() == ["work_before_recording"]


def test_late_work_in_the_middle_is_not_from_before_the_recording() -> None:
    """The kernel is launched 20 ms into the recording, too late to be delayed by work from before the recording."""
    trace = late_stream(launched_us=20_000)

    assert holotrace.diagnosis(trace).headline["unknown_fraction"][0] == 0
    assert holotrace.trust(trace).doubts.is_empty()


def rules_of(trace: holotrace.Trace) -> list[str]:
    """Return the rule of each finding."""
    return holotrace.diagnosis(trace).per_finding["rule"].to_list()


def synchronising_job(*, call_us: int, with_python: bool = False) -> holotrace.Trace:
    """Return 4 steps of 1 ms: a kernel ends at 300 µs, and a call at `call_us` waits for the device."""
    trace = TraceBuilder()
    for number in range(4):
        begin = 1_000 * number
        trace.step(number, begin, 1_000)
        trace.kernel("gemm", start_us=begin + 20, duration_us=280, launch_us=begin + 10)
        end = max(begin + 305, begin + call_us + 5)
        trace.runtime("cudaDeviceSynchronize", start_us=begin + call_us, duration_us=end - begin - call_us)
        trace.kernel("gemm", start_us=begin + 900, duration_us=95, launch_us=begin + 890)
        if with_python:
            trace.python("train.py(3): step", start_us=begin, duration_us=1_000)
    return trace.build()


def test_a_call_that_waits_for_nothing_is_not_to_blame() -> None:
    """A call at 50 µs delays later launches and is reported; a call at 600 µs is not, as the device is already idle."""
    assert "device_synchronisation" in rules_of(synchronising_job(call_us=50))
    assert "device_synchronisation" not in rules_of(synchronising_job(call_us=600))


def test_recorded_python_may_have_made_a_call_late() -> None:
    """If the device is idle for 100 µs before a call, the rule counts at most 100 µs of idle time after the call.

    The 100 µs before the call may be a delay that recording Python functions caused.
    """
    trace = synchronising_job(call_us=400, with_python=True)

    assert "device_synchronisation" in rules_of(trace)
    calls = RankEvidence(trace.ranks[0]).synchronisations
    length_us = (calls["gap_end_ns"] - calls["gap_start_ns"]) // 1_000
    assert set(length_us) == {205}


def test_the_wait_at_the_end_of_a_recording_keeps_no_work_back() -> None:
    """No work is launched after the last synchronisation, so it delays no launch and is not reported."""
    trace = TraceBuilder()
    trace.operator("aten::mm", start_us=0, duration_us=60)
    trace.kernel("gemm", start_us=50, duration_us=500, launch_us=40)
    trace.runtime("cudaDeviceSynchronize", start_us=100, duration_us=455)
    trace.operator("aten::numpy_T", start_us=640, duration_us=10)

    assert "device_synchronisation" not in holotrace.diagnosis(trace.build()).per_finding["rule"]


def test_steps_recorded_as_operators_are_not_named_as_operators() -> None:
    """Files from 2021 record steps as operators; the finding names the operator inside the step."""
    trace = TraceBuilder()
    for number in range(4):
        begin = 1_000 * number
        trace.operator(f"ProfilerStep#{number}", start_us=begin, duration_us=1_000)
        for place in range(9):
            start = begin + 100 * place
            trace.operator("aten::relu", start_us=start, duration_us=90)
            trace.kernel("relu", start_us=start + 85, duration_us=10, launch_us=start + 80)

    found = holotrace.diagnosis(trace.build()).per_finding.row(0, named=True)

    assert (found["rule"], found["operator"]) == ("launch_bound", "aten::relu")


def sampled_job(*, calls_between: int) -> holotrace.Trace:
    """Return 200 kernels of 50 µs, one every 500 µs; correlation ids grow by `calls_between` from launch to launch."""
    trace = TraceBuilder()
    for number in range(200):
        launch = 500 * number
        trace.runtime("cudaLaunchKernel", start_us=launch, duration_us=5, correlation=1 + calls_between * number)
        trace.event(
            ph="X", cat="kernel", name="gemm", ts=400 + launch, dur=50, pid=0, tid=7,
            args={"correlation": 1 + calls_between * number, "device": 0, "stream": 7},
        )  # fmt: skip
    return trace.build()


def test_launches_left_out_make_idle_time_unknown() -> None:
    """Correlation ids grow by 216 between launches, so launches are missing, and the idle time is unknown."""
    trace = sampled_job(calls_between=216)

    result = holotrace.diagnosis(trace)
    first = result.per_finding.row(0, named=True)
    assert (first["rule"], first["confidence"]) == ("late_starts", "low")
    assert "missing from the file" in first["finding"]
    assert result.headline["unknown_fraction"][0] > 0.8
    assert holotrace.trust(trace).doubts["rule"].to_list() == ["launches_left_out"]


def test_a_usual_number_of_calls_between_launches_is_no_doubt() -> None:
    """Correlation ids that grow by 12 between launches are normal."""
    trace = sampled_job(calls_between=12)

    assert holotrace.diagnosis(trace).headline["unknown_fraction"][0] == 0
    assert holotrace.trust(trace).doubts.is_empty()
