"""Activation checkpointing costs the time of the operators that run again; tests on recordings are in device/test_fusion.py."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import cases_of, said
from holotrace.testing.builder import TraceBuilder

DIMS = {"Input Dims": [[8, 64], [64, 64], [64]]}


def job(*, again: bool) -> holotrace.Trace:
    """Return two steps of 1 ms on the CPU: a linear layer of 200 µs, and its backward pass, which may run the layer again."""
    trace = TraceBuilder()
    for begin in (0, 1_000):
        trace.step(begin // 1_000, begin, 1_000)
        number = {"Sequence number": begin + 1, **DIMS}
        trace.operator("aten::linear", start_us=begin + 10, duration_us=200, args=number)
        backward = {"Sequence number": begin + 1, "Fwd thread id": 1}
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        trace.operator(name, start_us=begin + 300, duration_us=600, args=backward)
        if again:
            repeated = {"Sequence number": begin + 2, **DIMS}
            trace.operator("aten::linear", start_us=begin + 310, duration_us=200, args=repeated)
        trace.operator("aten::mm", start_us=begin + 520, duration_us=300, args={"Input Dims": [[8, 64], [64, 64]]})
    return trace.build()


def test_repeated_operators_on_the_host_cost_their_time() -> None:
    """The layer runs again for 200 of 1,000 µs; without checkpointing, nothing is reported."""
    trace = job(again=True)
    (case,) = cases_of(trace, "recomputation").values()

    assert case.cost_ns == pytest.approx(200_000)
    assert said(trace, "recomputation").what == (
        "activation checkpointing computes forward operators a second time (20.0 % of the step)"
    )
    assert not cases_of(job(again=False), "recomputation")
