"""Tests of the printed tables of idle_time."""

from __future__ import annotations

from holotrace.analyses.idle_time.compute import idle_time
from holotrace.analyses.idle_time.tables import idle_per_device
from jobs import gpu_job


def test_idle_categories_are_side_by_side() -> None:
    """Each device has a row with its idle time, the number of waits, and each category's share of the idle time."""
    assert idle_per_device(idle_time(gpu_job().build())).rows() == [
        (0, 40_000, 2, 0.5, 0.5, 0.0),
        (1, 0, 0, None, None, None),
    ]
