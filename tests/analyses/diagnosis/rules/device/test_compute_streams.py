"""Kernels of two streams that run in turn although the device has room for both."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import H100, cases_of
from holotrace.testing.builder import TraceBuilder


def branching_job(
    *, blocks: float = 0.3, second_us: int = 200, launched_at: int = 10, length_us: int = 150
) -> holotrace.Trace:
    """Return steps of 500 µs: stream 21 computes at 50 µs, then stream 7, which the host launched long before."""
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
    """Two kernels of 150 µs that fill 30 % of the SMs each could run at once in 150 µs."""
    (case,) = cases_of(branching_job(), "streams_in_turn").values()

    assert case.cost_ns == pytest.approx(150_000, rel=0.01)
    assert case.place.kernel == "shape"


def test_kernels_that_fill_more_than_the_device_save_only_the_room() -> None:
    """Kernels that fill 80 % of the SMs each take 1.6 times as long at once: 240 instead of 300 µs."""
    (case,) = cases_of(branching_job(blocks=0.8), "streams_in_turn").values()

    assert case.cost_ns == pytest.approx(60_000, rel=0.01)


@pytest.mark.parametrize(
    "job",
    [
        {"second_us": 60},  # at once
        {"blocks": 40},  # no room
        {"launched_at": 195},  # waits for the host
        {"second_us": 260},  # waits for something else
        {"length_us": 20, "second_us": 70},  # 4 % of the step
    ],
)
def test_other_streams_are_silent(job: dict[str, float]) -> None:
    """Kernels that run at once, fill the device, or wait for something else than the other stream lose nothing."""
    assert not cases_of(branching_job(**job), "streams_in_turn")  # type: ignore[arg-type]


def test_small_grids_cost_nothing_while_other_kernels_run_beside_them() -> None:
    """At once, both kernels share the device; in turn, each leaves most SMs idle."""
    assert not cases_of(branching_job(second_us=50), "small_grid")
