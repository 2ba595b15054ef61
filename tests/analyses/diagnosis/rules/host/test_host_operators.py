"""Tests of the rules about copies and float64 operators on the host, in jobs without device work."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import cases_of, said
from holotrace.testing.builder import TraceBuilder

_LINE = "model.py(7): forward"


def copying_job(*calls: tuple[str, int], kernels: bool = False) -> holotrace.Trace:
    """Return two steps of 1 ms with these operators (name, time in µs) on tensors of 64 x 64 elements."""
    trace = TraceBuilder()
    for begin in (0, 1_000):
        trace.step(begin // 1_000, begin, 1_000).python(_LINE, start_us=begin + 1, duration_us=990)
        at = begin + 5
        for name, time_us in calls:
            trace.operator(name, start_us=at, duration_us=time_us, args={"Input Dims": [[64, 64], []]})
            at += time_us + 1
        if kernels:
            trace.kernel("gemm", start_us=begin + 900, duration_us=50, launch_us=begin + 895)
    return trace.build()


def test_copies_are_found_with_their_function_and_time() -> None:
    """Two copies with only a transpose between them take 300 µs of 1 ms."""
    trace = copying_job(("aten::contiguous", 200), ("aten::transpose", 2), ("aten::clone", 100), ("aten::mm", 500))
    case = cases_of(trace, "host_copies")[_LINE]

    assert case.value == pytest.approx(0.3)
    assert (case.count, case.place.operator) == (4, "aten::contiguous")
    sentences = said(trace, "host_copies")
    assert sentences.what == (
        "2 calls per step that only copy, convert or fill tensors take 30.0 % of the step, mostly aten::contiguous, in "
        f"{_LINE}; 1 of them directly after another copy of the same size"
    )


@pytest.mark.parametrize(
    ("operator", "advice"),
    [("aten::cat", "Allocate"), ("aten::one_hot", "embedding"), ("aten::to", "one type"), ("aten::repeat", "expand()")],
)
def test_the_advice_fits_the_operator(operator: str, advice: str) -> None:
    """Concatenations, one-hot matrices, conversions and repeats each have their own advice."""
    assert advice in said(copying_job((operator, 300), ("aten::mm", 500)), "host_copies").advice


def test_a_deep_copy_costs_the_whole_call() -> None:
    """The cost of `copy.deepcopy` is its 400 µs, not just the 300 µs in which it clones a tensor.

    A later clone outside `copy.deepcopy` adds 50 µs.
    """
    trace = TraceBuilder()
    for begin in (0, 1_000):
        trace.step(begin // 1_000, begin, 1_000).python(_LINE, start_us=begin + 1, duration_us=990)
        trace.python("copy.py(119): deepcopy", start_us=begin + 100, duration_us=400)
        trace.operator("aten::clone", start_us=begin + 150, duration_us=300)
        trace.operator("aten::clone", start_us=begin + 600, duration_us=50)
        trace.operator("aten::mm", start_us=begin + 700, duration_us=200)
    (case,) = cases_of(trace.build(), "host_copies").values()

    assert case.value == pytest.approx(0.45)
    assert said(trace.build(), "host_copies").what == f"copy.deepcopy copies 2 tensors per step, in {_LINE}"


def test_few_copies_and_copies_beside_a_device_are_not_reported() -> None:
    """Copies that take only 8 % of the step are not reported; nor are copies in a job with GPU kernels."""
    assert not cases_of(copying_job(("aten::clone", 80), ("aten::mm", 800)), "host_copies")
    assert not cases_of(copying_job(("aten::clone", 300), kernels=True), "host_copies")


@pytest.mark.parametrize(("kind", "is_found"), [("double", True), ("float", False)])
def test_a_model_in_float64_is_found(kind: str, *, is_found: bool) -> None:
    """A float64 product is reported, and its cost is half its time; a float32 product is not reported."""
    trace = TraceBuilder().step(0, 0, 1_000).python(_LINE, start_us=1, duration_us=990)
    trace.operator("aten::linear", start_us=5, duration_us=602, args={"Input type": [kind, kind]})
    trace.operator("aten::addmm", start_us=6, duration_us=600, args={"Input type": [kind, kind, kind]})
    cases = cases_of(trace.build(), "double_precision")

    assert [case.cost_ns for case in cases.values()] == ([pytest.approx(301_000)] if is_found else [])


@pytest.mark.parametrize(("other", "expected_ns"), [("double", 451_000), ("float", 301_000)])
def test_lists_of_tensors_are_float64_if_nearly_everything_else_is(other: str, expected_ns: int) -> None:
    """A fused optimizer, whose types are not recorded, counts as float64 if nearly all other operators are float64."""
    trace = TraceBuilder().step(0, 0, 1_000).python(_LINE, start_us=1, duration_us=998)
    trace.operator("aten::addmm", start_us=6, duration_us=602, args={"Input type": ["double", "double"]})
    trace.operator("aten::mul", start_us=610, duration_us=80, args={"Input type": [other, other]})
    trace.operator("aten::_fused_adamw_", start_us=695, duration_us=300, args={"Input type": ["TensorList"]})
    of_mul_ns = 40_000 if other == "double" else 0
    (case,) = cases_of(trace.build(), "double_precision").values()

    assert case.cost_ns == pytest.approx(expected_ns + of_mul_ns)
