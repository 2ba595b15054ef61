"""Anomaly detection is reported if operators record the Python stack that called them."""

from __future__ import annotations

import holotrace
from device_jobs import cases_of, said
from holotrace.testing.builder import TraceBuilder

FORMAT = "torch/fx/traceback.py(504): format_stack"


def job(*, in_operator: bool) -> holotrace.Trace:
    """Return two steps of 1 ms; in each, `format_stack` runs three times for 100 µs, inside or outside an operator."""
    trace = TraceBuilder()
    for begin in (0, 1_000):
        trace.step(begin // 1_000, begin, 1_000).python("train.py(3): step", start_us=begin + 5, duration_us=990)
        for number in range(3):
            start = begin + 10 + 300 * number
            trace.operator("aten::linear", start_us=start, duration_us=150 if in_operator else 20)
            trace.python(FORMAT, start_us=start + 30, duration_us=100)
            trace.python("traceback.py(217): extract_stack", start_us=start + 40, duration_us=50)
    return trace.build()


def test_the_stacks_of_operators_cost_their_time() -> None:
    """Each step formats three stacks, and each stack takes 100 µs, so the cost is 300 µs per step."""
    trace = job(in_operator=True)
    (case,) = cases_of(trace, "anomaly_detection").values()

    assert (case.cost_ns, case.count, case.place.source_line) == (300_000, 6, "train.py(3): step")
    assert said(trace, "anomaly_detection").what == (
        "training waits while autograd's anomaly detection records the Python stack of each operator (3 times per step)"
    )


def test_a_script_that_formats_stacks_itself_is_not_reported() -> None:
    """If the script itself formats stacks outside operators, for example for logging, nothing is reported."""
    assert not cases_of(job(in_operator=False), "anomaly_detection")
