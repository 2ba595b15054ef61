"""The operator and module views of `PluginViews`: frames with times in microseconds."""

from __future__ import annotations

import pytest

from holotrace.testing.builder import TraceBuilder
from hta.trace_analysis import TraceAnalysis


@pytest.fixture
def analysis(tmp_path) -> TraceAnalysis:
    """Open a job in which the module Net_0 contains aten::mm, which launches a kernel of 4.5 µs."""
    track = {"pid": 1000, "tid": 1, "ts": 0, "dur": 50, "cat": "python_function"}
    builder = TraceBuilder().event(ph="X", name="nn.Module: Net_0", **track)
    builder.operator("aten::mm", start_us=1, duration_us=20, args={"Input Dims": [[8, 8]]})
    builder.kernel("gemm", start_us=60, duration_us=4.5, launch_us=3).write(tmp_path)
    return TraceAnalysis(trace_dir=str(tmp_path))


@pytest.mark.parametrize(
    ("group_by", "keys"),
    [
        ("name", ["aten::mm"]),
        ("shape", ["aten::mm", "[[8, 8]]"]),
        ("stack", ["aten::mm", "[[8, 8]]", "nn.Module: Net_0"]),
    ],
)
def test_operators_by_name_shape_or_stack(analysis, group_by, keys) -> None:
    """The row of aten::mm starts with its keys, followed by its call count and times."""
    frame = analysis.get_operator_summary(visualize=False, group_by=group_by)

    assert frame.iloc[0].to_list()[1 : len(keys) + 6] == [*keys, 1, 20, 19, 4.5, 4.5]
    assert list(frame.columns)[len(keys) + 1 : len(keys) + 4] == ["call_count", "host_total(us)", "host_self(us)"]


def test_modules(analysis) -> None:
    """Net_0 takes 50 µs on the host, 30 µs of which are its self time."""
    frame = analysis.get_module_summary(visualize=False)

    assert frame[["path", "call_count", "host_total(us)", "host_self(us)", "device_total(us)"]].iloc[0].to_list() == [
        *("Net_0", 1, 50, 30, 4.5),
    ]


def test_compat_gives_the_plugins_numbers(analysis) -> None:
    """With `compat`, the kernel's time counts toward aten::mm, and modules without an id are ignored."""
    operators = analysis.get_operator_summary(visualize=False, compat="torch_tb_profiler")
    assert operators["device_self(us)"].to_list() == [4.5]
    assert analysis.get_module_summary(visualize=False, compat="torch_tb_profiler").empty
