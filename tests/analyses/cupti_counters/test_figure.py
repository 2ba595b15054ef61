"""Tests of the cupti_counters figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.cupti_counters.compute import cupti_counters
from holotrace.analyses.cupti_counters.figure import plot_cupti_counters
from holotrace.testing.builder import TraceBuilder


def counted(flop: float) -> TraceBuilder:
    """Return a kernel that `mm` launched and for which `flop` additions were counted."""
    builder = TraceBuilder().operator("mm", start_us=0, duration_us=5)
    builder.runtime("cudaLaunchKernel", start_us=1, duration_us=1, correlation=1)
    args = {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": flop}
    return builder.event(ph="X", cat="cuda_profiler_range", name="gemm", pid=0, tid=0, ts=9, dur=1, args=args)


@pytest.mark.parametrize(
    ("flop", "shown", "unit"), [(3.0, 3.0, "(FLOP)"), (5e9, 5.0, "(GFLOP)"), (2e15, 2.0, "(PFLOP)")]
)
def test_operations_are_shown_in_a_fitting_unit(flop, shown, unit) -> None:
    """The axis uses FLOP, GFLOP or PFLOP, depending on the value. Each outermost operator has one row."""
    figure = plot_cupti_counters(cupti_counters(counted(flop).build()))
    assert list(figure.data[0].x) == [shown]
    assert figure.layout.xaxis.title.text.endswith(unit)
    assert list(figure.layout.yaxis.ticktext) == ["mm"]


def test_a_figure_without_operations_says_so() -> None:
    """If all counters are 0, the figure shows a message instead of axes."""
    figure = plot_cupti_counters(cupti_counters(counted(0).build()))
    assert figure.layout.annotations[0].text == "No counters of floating-point operations were recorded."
