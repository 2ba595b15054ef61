"""Tests of the rule about two streams whose kernels run one after the other although they could run at once."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import H100, cases_of
from holotrace.testing.builder import TraceBuilder


def branching_job(
    *, blocks: float = 0.3, second_us: int = 200, launched_at: int = 10, length_us: int = 150
) -> holotrace.Trace:
    """Return steps of 500 µs with a kernel on stream 21 from 50 µs on and a kernel on stream 7 from `second_us` on.

    Both kernels take `length_us`. The second kernel is launched at `launched_at`, by default long before it starts.
    """
    trace = TraceBuilder().header(deviceProperties=[dict(H100)])
    shape = {"blocks per SM": blocks, "grid": [40, 1, 1], "block": [256, 1, 1]}
    for number in range(4):
        begin = 500 * number
        trace.step(number, begin, 500)
        trace.kernel("texture", stream=21, start_us=begin + 50, duration_us=length_us, launch_us=begin + 2, args=shape)
        trace.kernel(
            "shape", start_us=begin + second_us, duration_us=length_us, launch_us=begin + launched_at, args=shape
        )
    return trace.build()


def test_a_stream_that_waits_in_vain_costs_what_could_run_at_once() -> None:
    """Two kernels take 150 µs and 30 % of the SMs each, so both could run at once, in 150 µs instead of 300."""
    (case,) = cases_of(branching_job(), "streams_in_turn").values()

    assert case.cost_ns == pytest.approx(150_000, rel=0.01)
    assert case.place.kernel == "shape"


def test_kernels_that_fill_more_than_the_device_save_only_the_room() -> None:
    """Two kernels take 150 µs and 80 % of the SMs each, so running them at once takes 240 µs instead of 300."""
    (case,) = cases_of(branching_job(blocks=0.8), "streams_in_turn").values()

    assert case.cost_ns == pytest.approx(60_000, rel=0.01)


@pytest.mark.parametrize(
    "job",
    [
        {"second_us": 60},  # the kernels already overlap
        {"blocks": 40},  # each kernel fills the device
        {"launched_at": 195},  # the second kernel waits for its launch
        {"second_us": 260},  # the second kernel waits for something else
        {"length_us": 20, "second_us": 70},  # each kernel takes only 4 % of the step
    ],
)
def test_other_streams_are_silent(job: dict[str, float]) -> None:
    """Kernels that overlap, fill the device, are short, or wait for something else are not reported."""
    assert not cases_of(branching_job(**job), "streams_in_turn")  # type: ignore[arg-type]


def alternating_job(*, calls: bool = True, asked: bool = True, turns: int = 6) -> holotrace.Trace:
    """Return steps of 1 ms in which two streams take turns with kernels of 100 µs, all launched early in the step.

    If `asked` is true, a call makes each kernel wait for the previous one. If `calls` is false, no call is recorded
    that makes a stream wait.
    """
    trace = TraceBuilder().header(deviceProperties=[dict(H100)])
    shape = {"blocks per SM": 0.3, "grid": [40, 1, 1], "block": [256, 1, 1]}
    for number in range(4):
        begin = 1000 * number
        trace.step(number, begin, 1000)
        for turn in range(turns):
            launch = begin + 2 + 4 * turn
            placement = {"stream": 21 if turn % 2 else 7, "start_us": begin + 100 * (turn + 1), "duration_us": 100}
            trace.kernel(f"turn{turn}", launch_us=launch + 2, args=shape, **placement)
            if calls and asked and turn:
                trace.runtime("cudaStreamWaitEvent", start_us=launch, duration_us=1)
        if calls:
            trace.runtime("cudaStreamWaitEvent", start_us=begin + 900, duration_us=1)
    return trace.build()


def test_streams_that_wait_at_each_turn_hand_results_over() -> None:
    """Nothing is reported if calls make each kernel wait for the previous one, or if such calls were not recorded."""
    assert not cases_of(alternating_job(), "streams_in_turn")
    assert not cases_of(alternating_job(calls=False), "streams_in_turn")


def test_a_single_wait_may_be_for_a_result() -> None:
    """A call makes the second kernel wait for the first, perhaps for its result, so the confidence is low."""
    (case,) = cases_of(alternating_job(turns=2), "streams_in_turn").values()

    assert (case.words["is_asked"], case.words["confidence"]) == (True, "low")


def test_streams_in_turn_that_no_call_asked_for_need_no_results() -> None:
    """Six kernels run in turn on two streams although no call requires it, so half of their time could be saved."""
    (case,) = cases_of(alternating_job(asked=False), "streams_in_turn").values()

    assert (case.words["is_asked"], case.words["confidence"]) == (False, "medium")
    assert case.cost_ns == pytest.approx(300_000, rel=0.01)


def test_small_grids_cost_nothing_while_other_kernels_run_beside_them() -> None:
    """Two kernels with small grids overlap, so `small_grid` reports neither of them."""
    assert not cases_of(branching_job(second_us=50), "small_grid")
