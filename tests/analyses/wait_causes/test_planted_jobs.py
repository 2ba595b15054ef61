"""Tests of wait_causes on simulated jobs with known causes of waiting."""

from __future__ import annotations

import pytest

from holotrace.testing.planted.options import PlantedOptions
from matrices import slow_except
from planted_truth import compared

SEEDS = (0, 5, 7, 9, 11, 12, 13, 16, 18, 20)
"""Together, these jobs cover NCCL, gloo, all kinds of parallelism, several hosts, and damaged recordings."""


@pytest.mark.parametrize("seed", slow_except(SEEDS, (7, 13)))
def test_planted_causes_are_named(seed):
    """Each known cause is named with its rank, and its cost is correct to within the printed error."""
    check(PlantedOptions.drawn(seed, most_ranks=16))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_planted_causes_are_named_in_more_jobs(seed):
    """Known causes are named correctly in jobs of up to 64 ranks; benchmarks/planted_causes.py checks 500 jobs."""
    check(PlantedOptions.drawn(seed, most_ranks=64))


def check(options):
    """Assert that the causes found in a simulated job are right, and that the costs add up to all waiting."""
    job = compared(options)
    assert job.summed_ns == job.recorded_ns
    assert [named for named in job.causes if not named.is_right] == []
