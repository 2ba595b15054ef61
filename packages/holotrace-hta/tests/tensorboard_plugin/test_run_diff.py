"""RunDiff compares two runs."""

from __future__ import annotations

from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from hta.tensorboard_plugin import RunDiff


def run(gemm_us: int) -> Trace:
    """Build a trace with one step in which aten::mm launches a gemm of this duration."""
    builder = TraceBuilder().step(1, 0, 100).operator("aten::mm", start_us=10, duration_us=10)
    return builder.kernel("gemm", start_us=30, duration_us=gemm_us, launch_us=12).build()


def test_frames_in_microseconds() -> None:
    """In the second run, gemm takes 10 µs longer; the tree and the table of operators show this difference."""
    diff = RunDiff(run(20), run(30))

    assert set(diff.get_tree()["difference_per_step(us)"]) == {10}
    assert diff.get_operators()[["operator", "difference_per_step(us)"]].to_numpy().tolist() == [["aten::mm", 10]]
    assert len(diff.plot().data) == 2


def test_compat_pairs_as_the_plugin_did() -> None:
    """With `compat`, every row pairs an operator of one run with an operator of the other run."""
    diff = RunDiff(run(20), run(30), compat="torch_tb_profiler")

    assert set(diff.get_tree()["kind"]) == {"pair"}
