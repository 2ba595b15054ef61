"""Tests of the compare_operators figure."""

from __future__ import annotations

import pytest

from holotrace.analyses.compare_operators.compute import compare_operators
from holotrace.analyses.compare_operators.figure import plot_compare_operators
from holotrace.testing.builder import TraceBuilder
from jobs import MARKUP


def trace(gemm_us: int, loader_us: int = 5, name: str = "aten::mm") -> TraceBuilder:
    """Return a step: loading a batch, two operator calls that launch one gemm each, and a kernel without a launch."""
    builder = TraceBuilder().step(1, 0, 100)
    builder.annotation("enumerate(DataLoader)#_Iter.__next__", start_us=1, duration_us=loader_us)
    for start in (20, 50):
        builder.operator(name, start_us=start, duration_us=20)
        builder.kernel("gemm", start_us=start + 5, duration_us=gemm_us, launch_us=start + 1)
    return builder.kernel("alone", start_us=90, duration_us=gemm_us)


def test_the_largest_change_comes_first_with_its_self_time() -> None:
    """Times rise from 10 to 30 µs (two gemms), 5 to 15 (a kernel without a launch) and 5 to 6 (data loading)."""
    figure = plot_compare_operators(compare_operators(trace(5).build(), trace(15, loader_us=6).build()))

    assert [note.text for note in figure.layout.annotations] == [
        "forward and other &gt; aten::mm",
        "no operator &gt; alone",
        "data loading &gt; DataLoader (host)",
    ]
    assert {bar.name: list(bar.x) for bar in figure.data} == {"control": [10, 5, 5], "test": [30, 15, 6]}


@pytest.mark.parametrize("compat", [None, "torch_tb_profiler"])
def test_equal_traces_give_a_figure_that_says_so(compat) -> None:
    """The comparison of a trace with itself shows "Nothing differs.", with and without `compat`."""
    same = trace(5).build()
    figure = plot_compare_operators(compare_operators(same, same, compat=compat))
    assert figure.layout.annotations[0].text == "Nothing differs."


def test_the_plugins_pairs_are_drawn_in_full() -> None:
    """With `compat`, the pair that changed is drawn: data loading takes 5 µs in the control and 6 µs in the test."""
    result = compare_operators(trace(5).build(), trace(5, loader_us=6).build(), compat="torch_tb_profiler")
    figure = plot_compare_operators(result)
    assert {bar.name: sum(bar.x) for bar in figure.data} == {"control": 5, "test": 6}


def test_names_are_escaped() -> None:
    """An operator named `<script>` appears escaped in the figure."""
    result = compare_operators(trace(5).build(), trace(5, name=MARKUP).build())
    assert "<script" not in plot_compare_operators(result).to_json()
