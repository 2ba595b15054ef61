"""Simulated jobs with planted causes: `wait_causes` names each cause, and its cost is correct to within the printed error."""

from __future__ import annotations

import pytest

from holotrace.testing.planted.options import PlantedOptions
from matrices import slow_except
from planted_truth import compared

SEEDS = (0, 5, 7, 9, 11, 12, 13, 16, 18, 20)
"""Both backends; data, tensor and pipeline parallel; one host and several; complete and damaged recordings."""


@pytest.mark.parametrize("seed", slow_except(SEEDS, (7, 13)))
def test_planted_causes_are_named(seed):
    """Each planted cause is found on its rank, within the printed error plus the unknown waits; costs add up to all waiting."""
    check(PlantedOptions.drawn(seed, most_ranks=16))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_planted_causes_are_named_in_more_jobs(seed):
    """Planted causes are also found in jobs of up to 64 ranks; benchmarks/planted_causes.py compares 500 jobs."""
    check(PlantedOptions.drawn(seed, most_ranks=64))


def check(options):
    """Compare the causes of a job with the planted ones."""
    job = compared(options)
    assert job.summed_ns == job.recorded_ns
    assert [named for named in job.causes if not named.is_right] == []
