"""The overview and kernel views of `PluginViews`: frames with times in microseconds."""

from __future__ import annotations

import pandas as pd
import pytest

from holotrace.testing.builder import TraceBuilder
from hta.trace_analysis import TraceAnalysis


@pytest.fixture
def analyzer(tmp_path) -> TraceAnalysis:
    """Open a job with one step of 10 µs that contains a kernel of 4 µs."""
    builder = TraceBuilder().step(1, 0, 10).operator("aten::mm", start_us=0, duration_us=2)
    builder.kernel("gemm", start_us=3, duration_us=4, launch_us=1).write(tmp_path)
    return TraceAnalysis(trace_dir=str(tmp_path))


def test_the_categories_of_a_step_add_up(analyzer: TraceAnalysis) -> None:
    """The step of 10 µs splits into kernel 4, runtime 1, operator 1 and other 4 µs."""
    frame = analyzer.get_step_time_breakdown(visualize=False)

    categories = [
        f"{name}_part(us)"
        for name in ["kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu", "other"]
    ]
    assert frame.loc[0, categories].tolist() == [4, 0, 0, 0, 1, 0, 1, 4]
    assert frame.loc[0, ["rank", "step", "duration(us)"]].tolist() == [0, 1, 10]


def test_gpus_and_kernels(analyzer: TraceAnalysis) -> None:
    """A kernel of 4 µs in a step of 10 µs has one row in each table; the GPU's utilization is 0.4."""
    gpus = analyzer.get_gpu_summary(visualize=False)
    by_name, by_launch = analyzer.get_kernel_summary(visualize=False)

    assert gpus.loc[0, ["device", "utilization_fraction"]].tolist() == [0, 0.4]
    assert by_name.loc[0, ["name", "call_count", "total(us)"]].tolist() == ["gemm", 1, 4]
    assert by_launch["operator"].tolist() == ["aten::mm"]


def test_compat_gives_the_plugins_numbers(analyzer: TraceAnalysis) -> None:
    """With `compat`, the mean occupancy is 0 if none was recorded, as in the plugin."""
    steps = analyzer.get_step_time_breakdown(visualize=False, compat="torch_tb_profiler")
    gpus = analyzer.get_gpu_summary(visualize=False, compat="torch_tb_profiler")
    by_name, _ = analyzer.get_kernel_summary(visualize=False, compat="torch_tb_profiler")

    assert steps["kernel_part(us)"].tolist() == [4]
    assert gpus["utilization_fraction"].tolist() == [0.4]
    assert by_name["mean_occupancy_fraction"].tolist() == [0]
    assert isinstance(steps, pd.DataFrame)
