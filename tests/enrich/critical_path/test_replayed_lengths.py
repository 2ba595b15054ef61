"""Kernels that wait for the host in the recording, but not in a replay, follow each other at the usual gap."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.critical_path.path_graph import critical_path_graph
from holotrace.enrich.critical_path.what_if import Remove, what_if
from holotrace.testing.builder import TraceBuilder


def _host() -> TraceBuilder:
    """Return a step that runs one operator."""
    return TraceBuilder().step(1, 0, 1_450).operator("train", start_us=0, duration_us=1_450)


def _kernels_in_turn(builder: TraceBuilder, count: int) -> TraceBuilder:
    """Add kernels of 50 µs, 1 µs apart, that were launched long before they start."""
    for number in range(count):
        builder.kernel("gemm", start_us=100 + 51 * number, duration_us=50, launch_us=2 * number, launch_duration_us=1)
    return builder


def _kernels_when_launched(builder: TraceBuilder, count: int, *, begin_us: int) -> TraceBuilder:
    """Add kernels of 10 µs, launched every 30 µs; each starts 5 µs after its launch call returns."""
    for number in range(count):
        launch_us = begin_us + 30 * number
        builder.kernel("relu", start_us=launch_us + 6, duration_us=10, launch_us=launch_us, launch_duration_us=1)
    return builder


def _without_host_us(builder: TraceBuilder) -> float:
    """Return the predicted length of the window if the host takes no time.

    The first launch call then returns 1 µs earlier.
    """
    (rank_trace,) = builder.build().ranks.values()
    return what_if(critical_path_graph(rank_trace), [Remove(pl.col("device").is_null())]).predicted_ns / 1_000


def test_kernels_that_no_longer_wait_for_the_host_keep_the_gap_between_kernels() -> None:
    """If the host takes no time, kernels run 1 µs apart: first twenty of 50 µs, then eight of 10 µs."""
    builder = _kernels_when_launched(_kernels_in_turn(_host(), 20), 8, begin_us=1_200)
    assert _without_host_us(builder) == 99 + 20 * 51 + 8 * 11 - 1


def test_too_few_measured_gaps_say_nothing() -> None:
    """Two kernels that waited for another kernel are too few to infer the usual gap, so the others have no gaps."""
    builder = _kernels_when_launched(_kernels_in_turn(_host(), 3), 8, begin_us=400)
    assert _without_host_us(builder) == 99 + 3 * 51 - 1 + 8 * 10
