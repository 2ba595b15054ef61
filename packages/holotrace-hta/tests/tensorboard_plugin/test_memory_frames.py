"""The memory view of `PluginViews`: frames with times in microseconds since the first event of the job."""

from __future__ import annotations

import pytest

from holotrace.testing.builder import TraceBuilder
from hta.trace_analysis import TraceAnalysis


@pytest.fixture
def analysis(tmp_path) -> TraceAnalysis:
    """Open a job that starts at 100 µs: aten::mm allocates 8 B at 103 µs, 4 B at 105, and frees the 8 B at 107."""
    builder = TraceBuilder().operator("aten::mm", start_us=100, duration_us=10)
    for time, size, address, total in ((103, 8, 1, 8), (105, 4, 2, 12), (107, -8, 1, 4)):
        args = {"Device Type": 1, "Device Id": 0, "Bytes": size, "Addr": address, "Total Allocated": total}
        builder.event(ph="i", s="t", cat="cpu_instant_event", name="[memory]", pid=1000, tid=1, ts=time, args=args)
    builder.write(tmp_path)
    return TraceAnalysis(trace_dir=str(tmp_path))


def test_memory_after_each_event(analysis) -> None:
    """The memory curve shows 8 bytes at 3 µs, 12 at 5 µs and 4 at 7 µs."""
    frame = analysis.get_memory_curve(visualize=False)
    assert frame["time(us)"].to_list() == [3, 5, 7]
    assert frame["allocated_bytes"].to_list() == [8, 12, 4]


def test_blocks_and_statistics_in_a_window(analysis) -> None:
    """A window (in µs on the frames' clock) selects blocks and statistics; the default is the whole recording."""
    events = analysis.get_memory_events()
    assert events[["block_bytes", "allocated(us)", "lifetime(us)"]].iloc[0].to_list() == [8, 3, 4]
    assert len(analysis.get_memory_events(start_us=4, end_us=6)) == 1
    statistics = analysis.get_memory_statistics(start_us=4, end_us=7)
    assert statistics["self_increase_bytes"].to_list() == [-4]
    assert analysis.get_memory_statistics(compat="torch_tb_profiler")["self_allocated_bytes"].to_list() == [12]
