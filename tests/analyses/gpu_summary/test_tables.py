"""Tests of the printed tables of gpu_summary."""

from __future__ import annotations

from holotrace.analyses.gpu_summary.compute import gpu_summary
from holotrace.analyses.gpu_summary.tables import use_per_device
from holotrace.questions.tables import heading
from holotrace.testing.builder import TraceBuilder


def test_a_share_with_an_unknown_part_is_headed_as_a_bound() -> None:
    """If it is unknown whether a kernel uses tensor cores, the heading says "at least"; otherwise it does not."""
    builder = TraceBuilder().step(1, 0, 100).kernel("nvjet_tst_64x8", start_us=0, duration_us=40)
    known = builder.kernel("relu", start_us=40, duration_us=10).build()
    partly = builder.kernel("mystery", start_us=50, duration_us=50).build()

    rows = (
        use_per_device(gpu_summary(partly)).select("tensor_core_least_fraction", "tensor_core_unknown_fraction").rows()
    )
    assert rows == [(0.4, 0.5)]
    assert heading("tensor_core_least_fraction") == "on tensor cores, at least"
    assert [name for name in use_per_device(gpu_summary(known)).columns if "tensor" in name] == ["tensor_core_fraction"]
