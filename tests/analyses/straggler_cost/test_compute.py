"""Tests of straggler_cost."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.analyses.straggler_cost.compute import StragglerCost, straggler_cost
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from operations import drawn, pipelined_step
from recordings import opened

TRACES = Path(__file__).parents[2] / "reference" / "traces"


def two_replicas() -> pl.DataFrame:
    """Return one step of two ranks whose forward passes take 10 and 14 ns; all other operations are equal."""
    rows = []
    for rank, forward in enumerate((10, 14)):
        rows += [
            (rank, "forward-compute", 0, forward),
            (rank, "backward-compute", forward, 10),
            (rank, "grads-reduce-scatter", forward + 10, 16 - forward),
            (rank, "optimizer", 26, 1),
        ]
    return pl.DataFrame(rows, ["rank", "kind", "start_ns", "duration_ns"], orient="row")


def test_a_slow_replica_costs_the_difference_to_the_mean() -> None:
    """The mean forward pass takes 12 ns, so the ideal step takes 25 ns instead of 27; rank 1 causes all of the loss."""
    result = straggler_cost(two_replicas())

    assert result.slowdown == pytest.approx(27 / 25)
    assert result.worker_share == 1
    assert result.stage_share is None
    assert result.per_worker.to_dicts() == [
        {"rank": 1, "dp_rank": 1, "stage": 0, "slowdown": 27 / 25},
        {"rank": 0, "dp_rank": 0, "stage": 0, "slowdown": 1.0},
    ]
    assert result.per_step.to_dicts() == [
        {
            "step": 0,
            "step_ns": 27,
            "replayed_ns": 27,
            "ideal_ns": 25,
            "slowdown": 27 / 25,
            "replay_error_fraction": 0.0,
        }
    ]
    assert result.per_kind.rows() == [
        ("forward-compute", 2, 27 / 25, 2.0),
        ("backward-compute", 2, 1.0, 0.0),
        ("grads-reduce-scatter", 2, 1.0, 0.0),
        ("optimizer", 2, 1.0, 0.0),
    ]
    assert result.per_replica.rows() == [(0, 1, 1.0, 0.0), (1, 1, 27 / 25, 2.0)]
    assert result.per_stage.rows() == [(0, 2, 27 / 25, 2.0)]
    assert result.per_worker_step.rows() == [(0, 0, 1.0), (1, 0, 27 / 25)]
    assert result.answer == (
        "7.4 % of the job's time is lost to stragglers; the slowest workers cause most of this loss, especially rank 1."
    )


def test_equal_ranks_lose_nothing() -> None:
    """If all operations of a kind take equally long, the slowdown is 1, and the shares of the loss are null."""
    result = straggler_cost(pipelined_step(3, 5, 2, lambda kind, *_: 10 * len(kind)))

    assert result.slowdown == 1
    assert result.worker_share is None
    assert result.stage_share is None
    assert result.answer.startswith("Only 0.0 % of the job's time is lost to stragglers, ")


def test_a_long_last_stage_is_the_stage_share() -> None:
    """The last of three stages computes twice as long as the others and causes more than 90 % of the loss."""

    def needs(kind: str, _replica: int, stage: int, _microbatch: int) -> int:
        return 100 * (1 + (stage == 2)) if kind.endswith("compute") else 1

    result = straggler_cost(pipelined_step(3, 6, 2, needs))

    assert result.per_stage.sort("slowdown")["stage"].to_list()[-1] == 2
    assert result.stage_share > 0.9
    assert result.per_worker["rank"].to_list()[:2] == [2, 5]


def test_an_operations_table_may_come_as_other_tables() -> None:
    """Shuffled rows and additional columns do not change the result."""
    steps = pl.concat([pipelined_step(2, 4, 2, drawn(seed), step=seed) for seed in (1, 2, 3)])
    shuffled = steps.sample(fraction=1.0, shuffle=True, seed=3).with_columns(pl.lit("a").alias("note"))

    assert straggler_cost(shuffled) == straggler_cost(steps)


def test_loading_data_precedes_the_first_pass() -> None:
    """Before the forward pass, the ranks load data for 2 and 6 ns, so the step takes 16 ns instead of 14."""
    rows = []
    for rank, loading in enumerate((2, 6)):
        rows += [(rank, "data-loading", 0, loading), (rank, "forward-compute", loading, 10)]
    table = pl.DataFrame(rows, ["rank", "kind", "start_ns", "duration_ns"], orient="row")

    result = straggler_cost(table)

    assert result.per_step.select("step_ns", "replayed_ns", "ideal_ns").rows() == [(16, 16, 14)]
    assert result.per_kind.select("operation_kind", "slowdown").row(0) == ("data-loading", 16 / 14)


def slow_second_rank() -> TraceBuilder:
    """Return two ranks on one host that compute for 100 and 180 µs, and then all-reduce until 220 µs."""
    builder = TraceBuilder()
    for rank, duration in enumerate((100, 180)):
        builder.rank(rank).header(host_name="a").step(1, 0, 300)
        builder.kernel("gemm", start_us=10, duration_us=duration, launch_us=5)
        builder.collective(start_us=10 + duration, duration_us=220 - duration, launch_us=6)
        builder.kernel("adam", start_us=240, duration_us=20, launch_us=7)
    return builder


def test_a_trace_is_divided_at_its_communication() -> None:
    """Before the all-reduce, rank 0 takes 110 µs and rank 1 takes 190 µs, which is 40 µs above the mean."""
    result = straggler_cost(slow_second_rank().build())

    assert result.per_step.select("step_ns", "replayed_ns", "ideal_ns").rows() == [(300_000, 300_000, 300_000 - 40_000)]
    assert result.per_worker.select("rank", "slowdown").rows() == [(1, 300 / 260), (0, 1.0)]
    assert result.worker_share == 1


def test_a_trace_without_communication_has_only_computation() -> None:
    """A single rank cannot be compared with others, so the slowdown is 1; the answer says to open all ranks."""
    result = straggler_cost(TraceBuilder().kernel("gemm", start_us=0, duration_us=5).build())

    assert result.slowdown == 1
    assert result.answer == "1 rank alone does not show the cost of stragglers; open all ranks of the job."


def test_an_empty_trace_is_empty() -> None:
    """Without events, the slowdown is null, and the tables are empty."""
    result = straggler_cost(TraceBuilder().build())

    assert result.slowdown is None
    assert result.per_worker.is_empty()


@pytest.fixture(scope="module")
def pipeline() -> StragglerCost:
    """Return the result for a recorded pipeline with two stages and two replicas; rank 2 is slow."""
    return straggler_cost(opened(TRACES / "pipeline_gloo_4rank"))


def test_the_slow_rank_of_a_recorded_pipeline(pipeline: StragglerCost) -> None:
    """Rank 2 sleeps in its forward passes, so it is the slowest worker and causes most of the slowdown."""
    assert pipeline.per_worker.row(0)[:3] == (2, 0, 1)
    assert pipeline.per_kind["operation_kind"][0] == "forward-compute"
    assert pipeline.slowdown > 1.5
    assert pipeline.worker_share > 0.7
    assert pipeline.per_worker_step.sort("slowdown").group_by("step").last()["rank"].to_list() == [2, 2, 2]


def test_the_slow_rank_of_a_recorded_ddp_job() -> None:
    """Rank 3 sleeps for 20 ms per step, so it is the slowest worker."""
    result = straggler_cost(opened(TRACES / "ddp_gloo_4rank"))

    assert result.per_worker["rank"][0] == 3
    assert result.worker_share > 0.7
    assert result.slowdown > 1.3


SLOW_RANKS = {
    "1f1b_slow_microbatch": 0,
    "1f1b_slow_rank": 1,
    "interleaved_slow_rank": 1,
    "zero_bubble_slow_rank": 0,
    "pipeline_dp_rank1": 1,
    "pipeline_dp_rank3": 3,
    "ddp_data_loading": 1,
    "ddp_slow_backward": 1,
    "fsdp_slow_rank": 1,
    "tensor_parallel_slow_rank": 0,
}


@pytest.mark.parametrize("name", SLOW_RANKS)
def test_the_slow_rank_of_recorded_schedules(name: str) -> None:
    """In each recording, one rank was made slow on purpose; this rank is the slowest worker."""
    result = straggler_cost(opened(TRACES / "planted_causes" / name))

    assert result.per_worker["rank"][0] == SLOW_RANKS[name]
    assert result.slowdown > 1.1
    assert result.worker_share > 0.8
    assert result.per_step["replay_error_fraction"].max() < 0.02


@pytest.mark.parametrize("name", ["dlrm_8rank", "ddp_gloo_4rank", "pipeline_gloo_4rank", "two_rank_128"])
def test_recorded_jobs_are_replayed_within_one_percent(name: str) -> None:
    """For every recorded job, the replay takes as long as the recording, to within 1 %."""
    result = straggler_cost(opened(TRACES / name))

    assert result.per_step["replay_error_fraction"].max() < 0.01


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """The tables of a synthetic job on two hosts equal their golden copies."""
    write_job(tmp_path, ranks=8, steps=2, layers=2)
    result = straggler_cost(holotrace.open_trace(tmp_path, cache=False))

    golden.check(result.per_worker, "straggler_cost/synthetic_job.per_worker")
    golden.check(result.per_step, "straggler_cost/synthetic_job.per_step")
    golden.check(result.per_kind, "straggler_cost/synthetic_job.per_kind")
