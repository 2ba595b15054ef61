"""Tests of the printed tables of the critical path."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.analyses.critical_path.compute import CriticalPath, critical_path
from holotrace.analyses.critical_path.tables import path_by_event, path_by_name, path_per_rank
from holotrace.testing.builder import TraceBuilder
from jobs import MARKUP


def paths_of_two_ranks() -> CriticalPath:
    """Return the paths of two ranks; on rank 1, a kernel takes 50 of 100 µs and an operator takes 20 µs."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=20)
    builder.rank(1).step(1, 0, 100).operator("aten::mm", start_us=0, duration_us=20)
    builder.kernel(f"void {MARKUP}<int>()", start_us=40, duration_us=50, launch_us=10, launch_duration_us=10)
    builder.runtime("cudaDeviceSynchronize", start_us=30, duration_us=60, correlation=5)
    return critical_path(builder.build())


def test_tables_for_people_show_shares_and_names() -> None:
    """Each path class that occurs has a column with its share; times and shares add up."""
    result = paths_of_two_ranks()

    per_rank = path_per_rank(result)
    shares = [f"{name}_path_fraction" for name in ("cpu_operator", "host_gap", "launch_delay", "computation")]
    assert per_rank.columns == ["rank", "window", "duration_ns", *shares]
    assert per_rank.select(pl.sum_horizontal(shares)).to_series().to_list() == pytest.approx([1, 1])
    by_name = path_by_name(result)
    assert by_name["total_ns"].sum() == 120_000
    assert by_name["fraction"].sum() == pytest.approx(1)
    assert {"aten::mm", "host gap"} <= set(by_name["event"])


def test_the_longest_parts_are_events() -> None:
    """The table lists events, longest first, with their rank and index in the file; it omits gaps and launch delays."""
    result = paths_of_two_ranks()
    table = path_by_event(result)

    assert table.columns == ["rank", "event_index", "event", "path_class", "duration_ns"]
    assert table["duration_ns"].to_list() == sorted(table["duration_ns"], reverse=True)
    assert table.row(0)[0] == 1
    assert table.row(0)[3:] == ("computation", 50_000)
    assert table["event_index"].null_count() == 0
    assert "host gap" not in table["event"].to_list()
