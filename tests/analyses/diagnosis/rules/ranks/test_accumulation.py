"""Tests of the rule about gradients that are reduced for each microbatch."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

import holotrace
from holotrace.testing.builder import TraceBuilder


def accumulating(reductions: Sequence[int], *, updates: int = 1) -> holotrace.Trace:
    """Return two ranks with steps of 400 µs; after microbatch i, reducing `reductions[i]` bytes takes 30 µs.

    The optimizer runs `updates` times per step, at equal intervals.
    """
    trace = TraceBuilder()
    for rank in range(2):
        trace.rank(rank)
        for begin in range(0, 1_200, 400):
            trace.step(begin // 400, begin, 400)
            for number, size in enumerate(reductions):
                start = begin + 1 + number * 90
                trace.operator("DistributedDataParallel.forward", start_us=start, duration_us=20)
                trace.operator("aten::mm", start_us=start + 21, duration_us=20)
                if size:
                    shape = [[size // 4]]
                    trace.annotation(
                        "gloo:all_reduce",
                        start_us=start + 45,
                        duration_us=30,
                        thread=2,
                        args={"Input Dims": shape, "Input type": ["float"]},
                    )
                if (number + 1) % (len(reductions) // updates) == 0:
                    trace.annotation("Optimizer.step#SGD.step", start_us=start + 78, duration_us=5)
    return trace.build()


def finding(trace: holotrace.Trace) -> dict[str, object] | None:
    """Return the finding about repeated reductions, or None."""
    rows = holotrace.diagnosis(trace).per_finding.filter(pl.col("rule") == "repeated_reductions")
    return rows.row(0, named=True) if len(rows) else None


def test_a_reduction_per_microbatch_costs_all_but_the_last() -> None:
    """Three of four reductions of 30 µs are unnecessary, which costs 90 of 400 µs."""
    found = finding(accumulating([4096] * 4))
    assert found is not None
    assert found["stake_fraction"] == pytest.approx(90 / 400, abs=0.01)
    assert "4 times per weight update" in str(found["finding"])
    assert "no_sync" in str(found["advice"])


@pytest.mark.parametrize(
    ("reductions", "updates"),
    [
        pytest.param([0, 0, 0, 4096], 1, id="no_sync"),
        pytest.param([4096] * 4, 4, id="an update after each"),
        pytest.param([8, 8, 8, 4096], 1, id="metrics"),
        pytest.param([1024, 4096], 1, id="two models"),
    ],
)
def test_reductions_that_are_needed_are_fine(reductions: Sequence[int], updates: int) -> None:
    """If the gradients are reduced only once per update, nothing is reported."""
    assert finding(accumulating(reductions, updates=updates)) is None
