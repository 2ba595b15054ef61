"""Tests of the rule about loops of small operators, in jobs that run on the CPU."""

from __future__ import annotations

import pytest

import holotrace
from device_jobs import cases_of, said
from holotrace.testing.builder import TraceBuilder

_LINE = "metrics.py(7): accuracy"


def looping(
    count: int, *, function: str | None = _LINE, operator: str = "aten::item", duration_us: float = 2, calls: int = 1
) -> holotrace.Trace:
    """Return two steps of 1 ms with `calls` calls of a function that runs an operator `count` times, every 3 µs."""
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
    """A function reads 200 elements one by one, which takes 0.6 ms of each step of 1 ms."""
    trace = looping(200)
    case = cases_of(trace, "operator_loops")[_LINE]

    assert case.value == pytest.approx(0.6, abs=0.01)
    assert (case.count, case.place.source_line) == (400, _LINE)
    sentences = said(trace, "operator_loops")
    assert sentences.what == f"the script runs small operators in a loop: aten::item 200 times in each call of {_LINE}"
    assert "whole tensors" in sentences.advice


def test_without_functions_only_reads_of_elements_show_a_loop() -> None:
    """Without recorded functions, 200 calls of `aten::item` are reported as a loop, but 200 additions are not.

    Each addition may be in a different module.
    """
    assert "aten::item" in cases_of(looping(200, function=None), "operator_loops")
    assert not cases_of(looping(200, function=None, operator="aten::add"), "operator_loops")


@pytest.mark.parametrize("count", [10, 60])
def test_many_calls_of_a_function_are_no_loop_in_it(count: int) -> None:
    """A function that runs at most 60 operators per call is not a loop, even if it is called for each layer."""
    assert not cases_of(looping(count, operator="aten::add", calls=200 // count), "operator_loops")


def test_large_operators_compute() -> None:
    """A loop of operators that take 0.3 ms each is not reported, because the overhead of the calls is small."""
    trace = TraceBuilder().step(0, 0, 30_000).python(_LINE, start_us=0, duration_us=30_000)
    for number in range(90):
        trace.operator("aten::mm", start_us=1 + 310 * number, duration_us=300)
    assert not cases_of(trace.build(), "operator_loops")


def test_a_loop_over_the_cells_of_a_recurrent_network_is_found() -> None:
    """A loop over LSTM cells is reported although each takes 0.3 ms: one call for the whole sequence is faster."""
    trace = TraceBuilder().step(0, 0, 30_000).python(_LINE, start_us=0, duration_us=30_000)
    for number in range(90):
        trace.operator("aten::select", start_us=1 + 310 * number, duration_us=2)
        trace.operator("aten::lstm_cell", start_us=4 + 310 * number, duration_us=296)
    case = cases_of(trace.build(), "operator_loops")[_LINE]

    assert case.place.operator == "aten::lstm_cell"
    assert case.cost_ns == pytest.approx(0.5 * case.explained_ns)


def test_a_loop_over_several_modules_is_one_finding() -> None:
    """Each of 70 iterations selects a row and calls two modules; the finding names only the function with the loop."""
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
    """Return a step of 3 ms in which `predict` calls these modules one by one; each runs a linear layer of 20 µs."""
    trace = TraceBuilder().step(0, 0, 3_000).python("net.py(5): predict", start_us=0, duration_us=2_990)
    for number, module in enumerate(modules):
        begin = 5 + 40 * number
        trace.python(f"nn.Module: {module}", start_us=begin, duration_us=38)
        trace.python("net.py(9): forward", start_us=begin + 1, duration_us=36)
        trace.python(f"nn.Module: Linear_{module}", start_us=begin + 5, duration_us=30)
        trace.operator("aten::linear", start_us=begin + 8, duration_us=20)
    return trace.build()


def test_a_module_called_for_one_sample_after_the_other_is_a_loop() -> None:
    """`predict` calls the same module 70 times; the calls take 38 µs each, together 2.66 of the 3 ms."""
    trace = calling_modules(*["Score_0"] * 70)
    (case,) = cases_of(trace, "operator_loops").values()

    assert case.value == pytest.approx(70 * 38 / 3_000)
    assert (case.count, case.place.module, case.place.source_line) == (70, "Score_0", "net.py(5): predict")
    assert said(trace, "operator_loops").what == (
        "the script calls Score_0 in a loop: 70 times in each call of net.py(5): predict"
    )


def test_the_layers_of_a_deep_model_are_not_a_loop() -> None:
    """`predict` calls 70 different modules once each, so it has no loop."""
    assert not cases_of(calling_modules(*(f"Block_{number}" for number in range(70))), "operator_loops")


def test_what_the_backward_pass_calls_for_each_parameter_is_not_a_loop() -> None:
    """The backward pass runs 200 small operators, for example to copy gradients to DDP buckets; this is not a loop."""
    trace = TraceBuilder().step(0, 0, 1_000).python(_LINE, start_us=0, duration_us=990)
    trace.python("<built-in method run_backward of torch._C._EngineBase object>", start_us=5, duration_us=900)
    for number in range(200):
        trace.operator("aten::mul_", start_us=10 + 3 * number, duration_us=2)
    assert not cases_of(trace.build(), "operator_loops")


def test_a_loop_over_samples_costs_the_module_and_the_operators_beside_it() -> None:
    """A loop takes 50 µs for each of 48 samples: two operators select the sample, and one module processes it."""
    trace = TraceBuilder().step(0, 0, 3_000).python(_LINE, start_us=0, duration_us=2_990)
    for number in range(48):
        begin = 5 + 50 * number
        for place in range(2):
            trace.operator("aten::select", start_us=begin + 3 * place, duration_us=3)
        trace.python("nn.Module: Score_0", start_us=begin + 6, duration_us=38)
        trace.python("net.py(9): forward", start_us=begin + 7, duration_us=36)
        trace.operator("aten::linear", start_us=begin + 8, duration_us=34)
    (case,) = cases_of(trace.build(), "operator_loops").values()

    assert (case.count, case.place.module) == (48, "Score_0")
    assert case.value == pytest.approx(48 * 50 / 3_000, abs=0.01)


def test_converting_numbers_one_at_a_time_costs_the_python_code_too() -> None:
    """A function calls `torch.tensor` 100 times; each call takes 5 µs, of which an operator takes only 1 µs."""
    trace = TraceBuilder()
    for begin in (0, 1_000):
        trace.step(begin // 1_000, begin, 1_000).operator("aten::mm", start_us=begin + 1, duration_us=100)
        trace.python(_LINE, start_us=begin + 110, duration_us=500)
        for start in range(begin + 110, begin + 610, 5):
            trace.python("<built-in method tensor of type object at 0x7f>", start_us=start, duration_us=5)
            trace.operator("aten::empty", start_us=start + 1, duration_us=1)
        trace.operator("aten::stack", start_us=begin + 620, duration_us=200)
    (case,) = cases_of(trace.build(), "operator_loops").values()

    assert case.value == pytest.approx(0.5, abs=0.01)
    assert said(trace.build(), "operator_loops").what == (
        f"the script converts Python numbers to tensors one at a time: 100 in each call of {_LINE}"
    )
