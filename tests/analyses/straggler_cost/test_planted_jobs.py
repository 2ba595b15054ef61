"""Tests of straggler_cost on simulated jobs with one late rank."""

from __future__ import annotations

from pathlib import Path

import pytest

import holotrace
from holotrace.analyses.straggler_cost.compute import StragglerCost, straggler_cost
from holotrace.testing.planted.job import PlantedJob
from holotrace.testing.planted.options import Cause, PlantedOptions

SLOW_KERNEL = Cause("slow_kernel", 5, 3_000_000)
JOBS = {
    "pipelines, tensor and data parallel": PlantedOptions(
        data=2, tensor=2, pipeline=2, microbatches=4, layers=1, causes=(SLOW_KERNEL,)
    ),
    "gloo, long pipeline": PlantedOptions(
        backend="gloo",
        data=1,
        pipeline=8,
        microbatches=8,
        layers=1,
        causes=(Cause("garbage_collection", 3, 20_000_000),),
    ),
    "gloo, data parallel": PlantedOptions(backend="gloo", causes=(Cause("python_function", 2, 3_000_000),)),
    "loading, several hosts": PlantedOptions(
        ranks_per_host=4,
        clock_offset_ns=2_000_000_000,
        clock_drift_ppb=50_000,
        causes=(Cause("slow_loading", 6, 8_000_000),),
    ),
}
MISSING = PlantedOptions(
    data=2,
    tensor=4,
    pipeline=2,
    microbatches=4,
    layers=1,
    causes=(Cause("slow_loading", 4, 8_000_000),),
    damage="missing_rank",
)


def _cost(options: PlantedOptions, folder: Path) -> StragglerCost:
    return straggler_cost(holotrace.open_trace(PlantedJob(options).write(folder), cache=False))


@pytest.mark.parametrize("name", JOBS)
def test_the_late_rank_is_the_slowest_worker(name: str, tmp_path: Path) -> None:
    """The late rank is the slowest worker and causes most of the loss."""
    result = _cost(JOBS[name], tmp_path)

    assert result.per_worker["rank"][0] == JOBS[name].causes[0].rank
    assert result.worker_share > 0.8
    assert result.per_step["replay_error_fraction"].max() < 0.01


@pytest.mark.slow
def test_waiting_for_a_rank_that_is_not_recorded_is_charged_to_nobody(tmp_path: Path) -> None:
    """Rank 4 is slow. Rank 15 was not recorded but waits for rank 4; ranks that wait for rank 15 do not look slow."""
    result = _cost(MISSING, tmp_path)

    assert result.per_worker["rank"][0] == 4
    assert result.per_worker["slowdown"][1] < 1.2
    assert any("no other rank recorded the counterpart" in finding for finding in result.findings)
