"""Forward passes without gradients are reported if training runs layers that autograd does not record."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import cases_of, said
from holotrace.testing.builder import TraceBuilder


def job(*, under_no_grad: str | None) -> holotrace.Trace:
    """Return two steps of 1 ms: training for 500 µs, then `validate`, which runs `under_no_grad` for 300 µs.

    The operator `under_no_grad` has no sequence number, which shows that it runs without gradients. If `under_no_grad`
    is None, `validate` runs aten::linear with a sequence number, so with gradients.
    """
    trace = TraceBuilder()
    for begin in (0, 1_000):
        trace.step(begin // 1_000, begin, 1_000).python("train.py(3): step", start_us=begin + 5, duration_us=990)
        number = {"Sequence number": begin + 1}
        trace.operator("aten::linear", start_us=begin + 10, duration_us=200, args=number)
        trace.operator("aten::addmm", start_us=begin + 20, duration_us=150)
        backward = "autograd::engine::evaluate_function: AddmmBackward0"
        trace.operator(backward, start_us=begin + 210, duration_us=300, args={**number, "Fwd thread id": 1})
        trace.operator("aten::mm", start_us=begin + 220, duration_us=200)
        trace.python("train.py(20): validate", start_us=begin + 600, duration_us=320)
        args = {} if under_no_grad else {"Sequence number": begin + 2}
        trace.operator(under_no_grad or "aten::linear", start_us=begin + 610, duration_us=300, args=args)
    return trace.build()


def test_layers_without_gradients_cost_their_time() -> None:
    """`validate` runs a layer without gradients; this layer takes 300 of the 1,000 µs of a step."""
    trace = job(under_no_grad="aten::linear")
    (case,) = cases_of(trace, "evaluation_in_steps").values()

    assert case.cost_ns == pytest.approx(300_000)
    assert said(trace, "evaluation_in_steps").what == (
        "forward passes without gradients take 30.0 % of the step, mostly in train.py(20): validate"
    )


@pytest.mark.parametrize("operator", ["aten::lerp_", None])
def test_other_work_is_silent(operator: str | None) -> None:
    """Not reported: an operator that averages weights (not a forward pass), and a layer with gradients (training)."""
    assert not cases_of(job(under_no_grad=operator), "evaluation_in_steps")
