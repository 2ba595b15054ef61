"""Tests of the printed tables of stragglers and cupti_counters."""

from __future__ import annotations

from holotrace.analyses.cupti_counters.compute import cupti_counters
from holotrace.analyses.cupti_counters.tables import counters_by_operator
from holotrace.analyses.stragglers.compute import stragglers
from holotrace.analyses.stragglers.tables import skew_per_rank
from holotrace.testing.builder import TraceBuilder


def late_rank() -> TraceBuilder:
    """Return an all-reduce of two ranks; rank 1 joins 40 µs late."""
    return TraceBuilder().collective(start_us=0, duration_us=50).rank(1).collective(start_us=40, duration_us=10)


def counted(flop: float) -> TraceBuilder:
    """Return a kernel that `mm` launched and for which `flop` additions were counted."""
    builder = TraceBuilder().operator("mm", start_us=0, duration_us=5)
    builder.runtime("cudaLaunchKernel", start_us=1, duration_us=1, correlation=1)
    args = {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": flop}
    return builder.event(ph="X", cat="cuda_profiler_range", name="gemm", pid=0, tid=0, ts=9, dur=1, args=args)


def test_printed_tables_show_late_as_a_word() -> None:
    """Printed tables show "late" instead of true, and FLOP as whole numbers."""
    assert skew_per_rank(stragglers(late_rank().build()))["is_straggler"].to_list() == ["", "late"]
    assert counters_by_operator(cupti_counters(counted(7).build())).rows() == [("mm", 7, 1)]
