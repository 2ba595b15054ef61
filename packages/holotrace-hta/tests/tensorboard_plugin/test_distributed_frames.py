"""The distributed view of `PluginViews`: frames with times in microseconds."""

from __future__ import annotations

import numpy as np

from holotrace.testing.builder import TraceBuilder
from hta.trace_analysis import TraceAnalysis


def analysis(folder) -> TraceAnalysis:
    """Open a job in which rank 0 waits 40 of 60 µs for rank 1; only rank 0 has the last collective."""
    builder = TraceBuilder()
    for rank, arrives in ((0, 20), (1, 60)):
        builder.rank(rank).step(5, 0, 100).collective(start_us=arrives, duration_us=80 - arrives, launch_us=1)
    builder.rank(0).kernel("ncclKernel_Reduce(int)", start_us=90, duration_us=0.5, launch_us=2)
    builder.write(folder)
    return TraceAnalysis(trace_dir=str(folder))


def test_one_row_for_each_step_of_a_rank(tmp_path) -> None:
    """Rank 0 spends 60.5 µs in collectives: 20 transferring, 40 synchronising, and 0.5 in an unmatched collective."""
    frame = analysis(tmp_path).get_distributed_summary(visualize=False)
    assert list(frame.columns) == [
        "rank",
        "step",
        "step(us)",
        "computation_only(us)",
        "overlap(us)",
        "exposed(us)",
        "neither(us)",
        "collective_count",
        "collective(us)",
        "transfer(us)",
        "synchronising(us)",
        "unmatched(us)",
    ]
    assert frame.iloc[0].to_list() == [0, 5, 100, 0, 0, 60.5, 39.5, 2, 60.5, 20, 40, 0.5]


def test_one_row_for_each_collective_of_a_rank(tmp_path) -> None:
    """Each collective of a rank has a row; unknown sizes, types and transfer times are NaN or None."""
    frame = analysis(tmp_path).get_communication_operations()
    assert frame["collective"].to_list() == ["all_reduce", "reduce", "all_reduce"]
    assert frame["bytes"].fillna(-1).to_list() == [4096, -1, 4096]
    assert frame["dtype"].fillna("?").to_list() == ["float32", "?", "float32"]
    assert np.isnan(frame["transfer(us)"][1])


def test_compat_gives_the_plugins_numbers(tmp_path) -> None:
    """With `compat`, collectives count as computation if the plugin does not recognize the names of their kernels."""
    analyzer = analysis(tmp_path)
    per_step = analyzer.get_distributed_summary(visualize=False, compat="torch_tb_profiler")

    assert analyzer.get_communication_operations(compat="torch_tb_profiler").empty
    assert per_step["computation_only(us)"].sum() == 80.5
