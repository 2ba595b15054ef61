"""RunDiff: two runs side by side."""

from __future__ import annotations

from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from hta.tensorboard_plugin import RunDiff


def run(gemm_us: int) -> Trace:
    """One step in which aten::mm launches a kernel."""
    builder = TraceBuilder().step(1, 0, 100).operator("aten::mm", start_us=10, duration_us=10)
    return builder.kernel("gemm", start_us=30, duration_us=gemm_us, launch_us=12).build()


def test_frames_in_microseconds() -> None:
    """The kernel of aten::mm takes 10 µs longer."""
    diff = RunDiff(run(20), run(30))

    assert set(diff.get_tree()["difference_per_step(us)"]) == {10}
    assert diff.get_operators()[["operator", "difference_per_step(us)"]].to_numpy().tolist() == [["aten::mm", 10]]
    assert len(diff.plot().data) == 2


def test_compat_pairs_as_the_plugin_did() -> None:
    """Every row pairs an operator of one run with one of the other."""
    diff = RunDiff(run(20), run(30), compat="torch_tb_profiler")

    assert set(diff.get_tree()["kind"]) == {"pair"}
