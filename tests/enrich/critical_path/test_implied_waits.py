"""If some collectives of a stream evidently wait for another stream, its other collectives are assumed to wait too."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.critical_path.path_graph import critical_path_graph
from holotrace.enrich.critical_path.what_if import Remove, what_if
from holotrace.testing.builder import TraceBuilder


def _saved_us(builder: TraceBuilder) -> float:
    """Return by how much the window gets shorter if the first all-reduce, at 200 µs, takes no time."""
    (rank_trace,) = builder.build().ranks.values()
    graph = critical_path_graph(rank_trace)
    first = graph.graph.activities.filter(pl.col("device").is_not_null() & (pl.col("start_ns") % 1_000_000 == 200_000))
    index = int(first["event_index"][0])
    return what_if(graph, [Remove(pl.col("event_index") == index)]).saved_ns / 1_000


def _two_reductions(second_kernel_end_us: int) -> TraceBuilder:
    """Return two kernels, and two all-reduces on one stream; the first all-reduce begins when the first kernel ends."""
    return (
        TraceBuilder()
        .step(1, 0, 60)
        .kernel("gemm", start_us=10, duration_us=190, launch_us=2, launch_duration_us=1)
        .collective(start_us=200, duration_us=400, launch_us=10)
        .kernel("gemm", start_us=201, duration_us=second_kernel_end_us - 201, launch_us=20, launch_duration_us=1)
        .collective(start_us=601, duration_us=100, launch_us=30)
    )


def test_a_queued_all_reduce_also_waits_for_the_work_launched_before_it() -> None:
    """Without the first all-reduce, the second begins at 500 µs, when the second kernel ends, instead of at 601 µs."""
    assert _saved_us(_two_reductions(second_kernel_end_us=500)) == 601 - 500


def test_work_that_was_still_running_was_not_waited_for() -> None:
    """The second all-reduce begins before the second kernel ends at 650 µs, so it did not wait for this kernel."""
    assert _saved_us(_two_reductions(second_kernel_end_us=650)) == 701 - 650
