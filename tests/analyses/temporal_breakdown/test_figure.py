"""Tests of the temporal_breakdown figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.temporal_breakdown.compute import temporal_breakdown
from holotrace.analyses.temporal_breakdown.figure import plot_temporal_breakdown
from jobs import gpu_job


def test_temporal_breakdown_shows_the_shares_of_each_device() -> None:
    """Of 110 µs, rank 0 computes for 50 µs, only communicates for 20 µs, and is idle for 40 µs."""
    figure = plot_temporal_breakdown(temporal_breakdown(gpu_job().build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {
        "computing": pytest.approx([100 * 50 / 110, 100]),
        "other work only": pytest.approx([100 * 20 / 110, 0]),
        "idle": pytest.approx([100 * 40 / 110, 0]),
    }
    assert list(figure.data[0].y) == ["rank 0", "rank 1"]


def test_temporal_breakdown_hovers_are_exact() -> None:
    """The hover text shows the share, the rounded time and the exact nanoseconds."""
    figure = plot_temporal_breakdown(temporal_breakdown(gpu_job().build()))
    assert figure.data[2].customdata[0] == "36.4 % · 40 µs (40,000 ns)"
