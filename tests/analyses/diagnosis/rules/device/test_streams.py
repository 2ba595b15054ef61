"""Tests of the rule about copies that could overlap computation."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import H100, cases_of, recorded
from holotrace.testing.builder import TraceBuilder

PINNED = "Memcpy HtoD (Pinned -> Device)"


def copying_job(*, name: str = PINNED, copy_us: int = 100, compute_us: int = 300, copy_at: int = 20) -> holotrace.Trace:
    """Return ten steps of 500 µs, each with a copy that starts at `copy_at` and a kernel that starts at 200 µs."""
    trace = TraceBuilder().header(deviceProperties=[dict(H100)])
    for number in range(10):
        begin = 500 * number
        trace.step(number, begin, 500)
        trace.copy(name, start_us=begin + copy_at, duration_us=copy_us, launch_us=begin + 2, byte_count=5_000_000)
        trace.kernel("gemm", start_us=begin + 200, duration_us=compute_us - 1, launch_us=begin + 5)
    return trace.build()


def test_copies_that_run_alone_cost_their_time() -> None:
    """Each copy runs for 100 µs while no kernel runs, but could run during the kernel of the previous step."""
    (case,) = cases_of(copying_job(), "copies_in_turn").values()

    assert case.cost_ns == pytest.approx(100_000, rel=0.001)


def test_computation_hides_no_more_than_its_own_length() -> None:
    """A kernel of 50 µs can hide only 50 of the 150 µs of a copy."""
    (case,) = cases_of(copying_job(copy_us=150, compute_us=51), "copies_in_turn").values()

    assert case.cost_ns == pytest.approx(50_000, rel=0.001)


@pytest.mark.parametrize(
    "job",
    [
        {"copy_at": 210},  # already overlaps the kernel
        {"name": "Memcpy HtoD (Pageable -> Device)"},  # cannot be asynchronous
        {"name": "Memcpy DtoD (Device -> Device)"},
        {"compute_us": 20},  # the kernel could hide only 4 % of the step
        {"copy_us": 20},  # the copy takes only 4 % of the step
    ],
)
def test_other_copies_are_silent(job: dict[str, object]) -> None:
    """Copies that would gain little or nothing on another stream are not reported."""
    assert not cases_of(copying_job(**job), "copies_in_turn")  # type: ignore[arg-type]


def test_the_recorded_pair() -> None:
    """The job whose copies and kernels take turns is reported; the job that prefetches on a second stream is not."""
    (case,) = cases_of(recorded("prefetching-in_turn"), "copies_in_turn").values()

    assert case.cost_ns / 1e6 == pytest.approx(17.053 - 10.656, abs=2)
    assert not cases_of(recorded("prefetching"), "copies_in_turn")
