"""Tests that the critical path across ranks equals the true path of simulated jobs."""

from __future__ import annotations

import dataclasses
from collections import Counter

import polars as pl
import pytest

import holotrace
from holotrace.testing.planted.job import PlantedJob
from holotrace.testing.planted.options import PlantedOptions
from matrices import slow_except

HOST_WORK = ("aten::addmm", "aten::mm")
SEEDS = (2, 6, 9, 11, 15, 16, 31)
"""These jobs use NCCL or gloo and all kinds of parallelism, with and without recorded stacks and waits."""


@pytest.mark.parametrize("seed", slow_except(SEEDS, SEEDS[:1]))
def test_the_path_is_that_of_the_simulation(seed, tmp_path):
    """On one host, the path's time on each rank and in each kernel or operator is correct to within 0.1 ms."""
    drawn = PlantedOptions.drawn(seed, most_ranks=16)
    job = PlantedJob(dataclasses.replace(drawn, ranks_per_host=drawn.ranks, damage="none"))
    trace = holotrace.open_trace(job.write(tmp_path), cache=False)
    found = holotrace.critical_path(trace, across_ranks=True, annotation="")

    ranks, work = Counter(), Counter()
    for (rank, (kind, name, _)), ns in job.critical_path.items():
        ranks[rank] += ns
        work[rank, name] += ns if kind == "kernel" or name in HOST_WORK else 0
    assert dict(found.per_rank.select("rank", "total_ns").rows()) == pytest.approx(
        {rank: ranks[rank] for rank in range(drawn.ranks)}, abs=100_000
    )
    named = found.per_name.filter(pl.col("path_class").is_in(["computation", "cpu_operator"]))
    by_name = named.group_by("rank", "name").agg(pl.col("total_ns").sum())
    times = {(rank, name): ns for rank, name, ns in by_name.rows()}
    assert {key: times.get(key, 0) for key, ns in work.items() if ns} == pytest.approx(+work, abs=100_000)
