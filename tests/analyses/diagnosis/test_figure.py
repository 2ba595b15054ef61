"""Tests of the diagnosis figure, which has a bar for each finding."""

from __future__ import annotations

import holotrace
from holotrace.figures import plot_diagnosis
from holotrace.testing import small_job
from holotrace.testing.builder import TraceBuilder


def test_a_recording_without_steps_has_no_costs_per_step() -> None:
    """Without steps, costs refer to the whole recording, so neither the axis nor a finding says "per step"."""
    builder = TraceBuilder()
    for number in range(400):
        builder.operator("aten::add", start_us=10 * number, duration_us=9)
        builder.kernel("add", start_us=10 * number + 8, duration_us=1, launch_us=10 * number + 2)
    result = holotrace.diagnosis(builder.build())

    assert len(result.per_finding)
    assert "per step" not in "".join(result.per_finding["finding"])
    assert plot_diagnosis(result).layout.xaxis.title.text.startswith("at stake, ")


def test_each_finding_has_a_bar_as_long_as_its_cost() -> None:
    """Replays predict savings of 260 and 200 µs for two findings; the 100 µs of the third are an upper bound."""
    figure = plot_diagnosis(holotrace.diagnosis(small_job()))
    bars = {bar.name: list(bar.x) for bar in figure.data}

    assert bars["bound: a fix may save less"] == [0, 0, 100.0]
    assert bars["what-if: predicted by a replay of the step"] == [260.0, 200.0, 0]
    assert figure.layout.xaxis.title.text == "at stake per step, µs"


def test_a_job_without_findings_says_so() -> None:
    """The device is always busy, so there are no findings."""
    trace = TraceBuilder()
    for number in range(3):
        trace.step(number, 100 * number, 100).kernel("gemm", start_us=100 * number + 1, duration_us=99)
    figure = plot_diagnosis(holotrace.diagnosis(trace.build()))

    assert "no finding" in str(figure.layout)
