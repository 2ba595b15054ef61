"""Tests of diagnosis on jobs recorded on a GPU, with known mistakes and without.

The true cost of a mistake is the difference between the step times of two recordings, with and without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import holotrace

TRACES = Path(__file__).parents[4] / "examples" / "gpu" / "traces"


def findings_of(job: str) -> dict[str, dict[str, Any]]:
    """Return {rule: finding} for a recorded job, without findings that are part of another finding."""
    result = holotrace.diagnosis(holotrace.open_trace(TRACES / job, cache=False))
    return {row["rule"]: row for row in result.per_finding.to_dicts() if row["part_of"] is None}


@pytest.mark.parametrize(
    ("job", "rule", "cost_ms"),
    [
        ("small-slow_loading", "slow_function", 20.1),
        ("small-loader", "data_loading", 21.2),
        ("small-collects_garbage", "garbage_collection", 251),
        ("small-not_fused", "optimizer_not_fused", 8.8),
        ("training-not_fused", "optimizer_not_fused", 5.4),
        ("compiled-recompiles", "recompilation", 577),
        ("rows-masked", "data_dependent_shape", 1.4),
        ("copies-pageable", "pageable_copy", 7.1),
    ],
)
def test_a_mistake_is_found_with_its_cost(job: str, rule: str, cost_ms: float) -> None:
    """The reported cost is within 20 % of the true cost."""
    assert findings_of(job)[rule]["stake_ns"] / 1e6 == pytest.approx(cost_ms, rel=0.2)


@pytest.mark.parametrize(
    ("job", "idle_ms"), [("small", 9.2), ("small-not_fused", 11.3), ("generation", 18.1), ("training-compiled", 2.9)]
)
def test_a_slow_host_costs_what_it_costs_without_the_profiler(job: str, idle_ms: float) -> None:
    """The reported cost differs by at most 70 % from the idle time that was measured without the profiler."""
    found = findings_of(job)
    costs = sum(
        found[rule]["stake_ns"] for rule in ("launch_bound", "python_overhead", "optimizer_not_fused") if rule in found
    )

    assert costs / 1e6 == pytest.approx(idle_ms, rel=0.7)


@pytest.mark.parametrize(
    ("job", "rule"),
    [
        ("training-not_fused", "optimizer_not_fused"),
        ("training-checkpointed", "recomputation"),
        ("training-odd_shapes", "unaligned_products"),
        ("training-empties_cache", "empties_cache"),
        ("two_ranks-tensor_parallel-slow_rank1", "late_rank"),
        ("two_ranks-pipeline-slow_rank1", "host_falls_behind"),
    ],
)
def test_the_mistake_comes_first(job: str, rule: str) -> None:
    """The mistake is the first finding; profiler overhead and costs that code changes cannot avoid come after it."""
    assert next(iter(findings_of(job))) == rule


@pytest.mark.slow
@pytest.mark.parametrize(
    "job", ["small-loader_workers", "prefetching", "copies", "rows", "training", "training-compiled_graphs", "images"]
)
def test_a_healthy_job_has_no_mistake_on_the_host(job: str) -> None:
    """In a healthy job, no rule about the host reports a mistake, even if the profiler slows the job."""
    mistakes = {
        "data_loading",
        "garbage_collection",
        "slow_function",
        "optimizer_not_fused",
        "recompilation",
        "graph_breaks",
        "scalar_read",
        "data_dependent_shape",
        "blocking_copy",
        "device_synchronisation",
        "stream_synchronisation",
        "pageable_copy",
    }

    assert mistakes.isdisjoint(findings_of(job))
