"""Tests of the printed tables of temporal_breakdown."""

from __future__ import annotations

from holotrace.analyses.temporal_breakdown.compute import temporal_breakdown
from holotrace.analyses.temporal_breakdown.tables import temporal_per_device
from holotrace.testing.builder import TraceBuilder
from jobs import gpu_job


def test_the_device_is_shown_only_where_a_rank_has_several() -> None:
    """The device column is left out if each rank has only one device."""
    several = TraceBuilder().kernel("a", start_us=0, duration_us=1).kernel("a", start_us=0, duration_us=1, device=1)
    assert "device" not in temporal_per_device(temporal_breakdown(gpu_job().build())).columns
    assert "device" in temporal_per_device(temporal_breakdown(several.build())).columns
