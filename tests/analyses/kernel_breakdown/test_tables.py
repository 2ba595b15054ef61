"""Tests of the printed tables of kernel_breakdown."""

from __future__ import annotations

import pytest

from holotrace.analyses.kernel_breakdown.compute import kernel_breakdown
from holotrace.analyses.kernel_breakdown.tables import kernels_over_ranks, states_over_ranks
from jobs import gpu_job


def test_kernels_are_summed_over_ranks() -> None:
    """A gemm of 40 µs on rank 0 and a gemm of 100 µs on rank 1 become one row with two calls."""
    row = kernels_over_ranks(kernel_breakdown(gpu_job().build())).row(0, named=True)
    assert row == {
        "name": "gemm",
        "kernel_kind": "computation",
        "total_ns": 140_000,
        "fraction": pytest.approx(140 / 190),
        "call_count": 2,
        "mean_ns": 70_000.0,
        "min_ns": 40_000,
        "max_ns": 100_000,
    }


def test_states_are_summed_over_ranks() -> None:
    """Fractions refer to the busy time of both ranks, 70 + 100 µs."""
    table = states_over_ranks(kernel_breakdown(gpu_job().build()))
    assert table.select("state", "total_ns").rows() == [
        ("computation", 130_000),
        ("communication", 20_000),
        ("computation + communication", 20_000),
    ]
    assert table["fraction"].sum() == pytest.approx(1)
