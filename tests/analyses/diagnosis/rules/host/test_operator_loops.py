"""Loops of small operators are found in jobs that run on the CPU; ordinary models and large operators are not reported."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import cases_of, said
from holotrace.testing.builder import TraceBuilder

_LINE = "metrics.py(7): accuracy"


def looping(
    count: int, *, function: str | None = _LINE, operator: str = "aten::item", duration_us: float = 2, calls: int = 1
) -> holotrace.Trace:
    """Return two steps of 1 ms in which functions call an operator `count` times each, every 3 µs."""
    trace = TraceBuilder()
    for begin in (0, 1_000):
        trace.step(begin // 1_000, begin, 1_000).operator("aten::mm", start_us=begin + 1, duration_us=100)
        for call in range(calls):
            first = begin + 110 + call * (3 * count + 2)
            if function is not None:
                trace.python(function, start_us=first, duration_us=3 * count + 1)
            for number in range(count):
                trace.operator(operator, start_us=first + 1 + 3 * number, duration_us=duration_us)
    return trace.build()


def test_a_loop_over_elements_is_found_with_its_function() -> None:
    """Two hundred reads of 2 µs with the Python between them take 0.6 of 1 ms."""
    trace = looping(200)
    case = cases_of(trace, "operator_loops")[_LINE]

    assert case.value == pytest.approx(0.6, abs=0.01)
    assert (case.count, case.place.source_line) == (400, _LINE)
    sentences = said(trace, "operator_loops")
    assert sentences.what == f"the script runs small operators in a loop: aten::item 200 times in each call of {_LINE}"
    assert "whole tensors" in sentences.advice


def test_without_functions_only_reads_of_elements_show_a_loop() -> None:
    """Two hundred additions may come from two hundred modules."""
    assert "aten::item" in cases_of(looping(200, function=None), "operator_loops")
    assert not cases_of(looping(200, function=None, operator="aten::add"), "operator_loops")


@pytest.mark.parametrize("count", [10, 60])
def test_many_calls_of_a_function_are_no_loop_in_it(count: int) -> None:
    """A block that runs a few operators, called once per layer, is an ordinary model."""
    assert not cases_of(looping(count, operator="aten::add", calls=200 // count), "operator_loops")


def test_large_operators_compute() -> None:
    """A loop whose operators take 0.3 ms each loses nothing to their calls."""
    trace = TraceBuilder().step(0, 0, 30_000).python(_LINE, start_us=0, duration_us=30_000)
    for number in range(90):
        trace.operator("aten::mm", start_us=1 + 310 * number, duration_us=300)
    assert not cases_of(trace.build(), "operator_loops")


def test_a_loop_over_the_cells_of_a_recurrent_network_is_found() -> None:
    """A module for the whole sequence is faster, although each cell takes 0.3 ms."""
    trace = TraceBuilder().step(0, 0, 30_000).python(_LINE, start_us=0, duration_us=30_000)
    for number in range(90):
        trace.operator("aten::select", start_us=1 + 310 * number, duration_us=2)
        trace.operator("aten::lstm_cell", start_us=4 + 310 * number, duration_us=296)
    case = cases_of(trace.build(), "operator_loops")[_LINE]

    assert case.place.operator == "aten::lstm_cell"
    assert case.cost_ns == pytest.approx(0.5 * case.explained_ns)


def test_a_loop_over_several_modules_is_one_finding() -> None:
    """Each of 70 rounds selects a row and calls two modules: one loop of 70 rounds in the function that calls them."""
    trace = TraceBuilder().step(0, 0, 3_000).python(_LINE, start_us=0, duration_us=2_990)
    for number in range(70):
        begin = 5 + 40 * number
        trace.operator("aten::select", start_us=begin, duration_us=5)
        for place, module in enumerate(("Linear_0", "ReLU_0")):
            trace.python(f"nn.Module: {module}", start_us=begin + 10 + 15 * place, duration_us=12)
            trace.operator("aten::linear", start_us=begin + 11 + 15 * place, duration_us=10)
    (case,) = cases_of(trace.build(), "operator_loops").values()

    assert case.count == 210
    assert case.value > 0.9
    assert case.place.module is None


def calling_modules(*modules: str) -> holotrace.Trace:
    """Return a step of 3 ms in which `predict` calls these modules one after the other, each with a linear layer of 20 µs."""
    trace = TraceBuilder().step(0, 0, 3_000).python("net.py(5): predict", start_us=0, duration_us=2_990)
    for number, module in enumerate(modules):
        begin = 5 + 40 * number
        trace.python(f"nn.Module: {module}", start_us=begin, duration_us=38)
        trace.python("net.py(9): forward", start_us=begin + 1, duration_us=36)
        trace.python(f"nn.Module: Linear_{module}", start_us=begin + 5, duration_us=30)
        trace.operator("aten::linear", start_us=begin + 8, duration_us=20)
    return trace.build()


def test_a_module_called_for_one_sample_after_the_other_is_a_loop() -> None:
    """`predict` calls the same module 70 times for 38 µs: 2.66 of 3 ms."""
    trace = calling_modules(*["Score_0"] * 70)
    (case,) = cases_of(trace, "operator_loops").values()

    assert case.value == pytest.approx(70 * 38 / 3_000)
    assert (case.count, case.place.module, case.place.source_line) == (70, "Score_0", "net.py(5): predict")
    assert said(trace, "operator_loops").what == (
        "the script calls Score_0 in a loop: 70 times in each call of net.py(5): predict"
    )


def test_the_layers_of_a_deep_model_are_not_a_loop() -> None:
    """Each of 70 layers is a module of its own, called once."""
    assert not cases_of(calling_modules(*(f"Block_{number}" for number in range(70))), "operator_loops")


def test_what_the_backward_pass_calls_for_each_parameter_is_not_a_loop() -> None:
    """DDP copies each gradient into its bucket at the end of the backward pass, which the training function calls."""
    trace = TraceBuilder().step(0, 0, 1_000).python(_LINE, start_us=0, duration_us=990)
    trace.python("<built-in method run_backward of torch._C._EngineBase object>", start_us=5, duration_us=900)
    for number in range(200):
        trace.operator("aten::mul_", start_us=10 + 3 * number, duration_us=2)
    assert not cases_of(trace.build(), "operator_loops")
