"""`PlantedJob` simulates jobs with planted delays and computes their costs."""

from __future__ import annotations

import polars as pl
import pytest

import holotrace
from holotrace.enrich.across_ranks.job_calls import job_calls
from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.errors import InvalidOptionError
from holotrace.testing.planted.job import PlantedJob
from holotrace.testing.planted.options import FIRST_STEP, Cause, PlantedOptions
from holotrace.testing.planted.programs import schedule

MS = 1_000_000


def recorded_waits(job, folder):
    """Return how long each rank waits according to the recording."""
    trace = holotrace.open_trace(job.write(folder), cache=False)
    calls = job_calls(trace.map(of_rank)).calls
    return calls.group_by("rank").agg(pl.col("wait_ns").sum()).sort("rank")["wait_ns"].to_numpy()


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_a_delay_costs_every_other_rank_its_length(backend):
    """If one rank's data loader is 5 ms slow in one step, the other seven ranks wait for 5 ms each (without jitter)."""
    cause = Cause("slow_loading", 3, 5 * MS, step=FIRST_STEP + 1)
    (truth,) = PlantedJob(PlantedOptions(backend, layers=1, jitter=0, causes=(cause,))).causes
    assert truth.others_ns == pytest.approx(7 * 5 * MS, rel=1e-3)


def test_a_delay_at_the_first_stage_also_costs_the_other_pipelines():
    """The first stage delays the last stage of its pipeline; the last stage of the other pipeline then waits for it."""
    cause = Cause("slow_kernel", 0, 5 * MS, step=FIRST_STEP)
    options = PlantedOptions(data=2, pipeline=4, microbatches=4, layers=1, jitter=0, causes=(cause,))
    (truth,) = PlantedJob(options).causes
    assert truth.others_ns == pytest.approx(7 * 5 * MS, rel=0.05)


def test_the_same_options_give_the_same_files(tmp_path):
    """The same options give the same files."""
    contents = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        PlantedJob(PlantedOptions.drawn(5)).write(folder)
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert contents[0] == contents[1]


@pytest.mark.parametrize(("tensor", "pipeline"), [(1, 1), (2, 1), (1, 4), (2, 2)])
def test_recorded_waits_are_true(tmp_path, tensor, pipeline):
    """On one host, the recorded waits equal the simulated waits to the nanosecond."""
    options = PlantedOptions(
        data=8 // tensor // pipeline,
        tensor=tensor,
        pipeline=pipeline,
        microbatches=pipeline,
        causes=(Cause("slow_microbatch", 1, 3 * MS),),
    )
    job = PlantedJob(options)
    assert recorded_waits(job, tmp_path).tolist() == job.waited_ns.tolist()


def test_clocks_that_differ_hide_little(tmp_path):
    """If clocks drift and differ by seconds, the recorded waits differ from the true ones by less than 0.1 %."""
    options = PlantedOptions(
        ranks_per_host=2,
        clock_offset_ns=2_000_000_000,
        clock_drift_ppb=50_000,
        causes=(Cause("slow_loading", 1, 3 * MS),),
    )
    job = PlantedJob(options)
    assert recorded_waits(job, tmp_path).sum() == pytest.approx(job.waited_ns.sum(), rel=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_drawn_jobs_run(seed):
    """Every randomly drawn job can be simulated, and each of its causes makes other ranks wait."""
    job = PlantedJob(PlantedOptions.drawn(seed, most_ranks=32))
    assert all(truth.others_ns > 0 for truth in job.causes)


def test_a_missing_rank_causes_nothing(tmp_path):
    """With `damage="missing_rank"`, the missing file belongs to a rank on which no cause is planted."""
    options = PlantedOptions(causes=(Cause("host_gap", 7, MS),), damage="missing_rank")
    assert PlantedJob(options).missing_rank == 6
    assert len(list(PlantedJob(options).write(tmp_path).iterdir())) == 7


def test_causes_are_on_ranks_of_the_job():
    """A cause on an unknown rank raises an error."""
    with pytest.raises(InvalidOptionError, match="a cause is planted on rank 8: the ranks are 0 to 7"):
        PlantedOptions(causes=(Cause("host_gap", 8, MS),))


@pytest.mark.parametrize("stage", range(4))
def test_each_microbatch_passes_forward_then_backward(stage):
    """In 1F1B, each microbatch has one forward pass and then one backward pass."""
    passes = list(schedule(stage, 4, 6))
    assert sorted(passes) == sorted((name, number) for name in ("forward", "backward") for number in range(6))
    assert all(passes.index(("forward", number)) < passes.index(("backward", number)) for number in range(6))
