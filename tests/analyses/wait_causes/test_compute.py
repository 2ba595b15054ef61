"""Tests of wait_causes: the cost of each cause, culprits and victims, and unknown causes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.analyses.collectives.compute import collectives
from holotrace.analyses.wait_causes.compute import WaitCauses, wait_causes
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.planted.job import PlantedJob
from holotrace.testing.planted.options import FIRST_STEP, Cause, PlantedOptions
from holotrace.testing.synthetic import write_job
from recordings import opened

MS = 1_000_000
TRACES = Path(__file__).parents[2] / "reference" / "traces"


def costs(result: WaitCauses) -> list[tuple[object, ...]]:
    """Return the causing rank, waiting rank, cause, name and cost of each row."""
    return result.per_cause.select("cause_rank", "waiting_rank", "cause", "name", "cost_ns").rows()


def after_a_barrier(*gemm_us: int) -> TraceBuilder:
    """Return ranks that all-reduce from 10 to 20 µs, run a gemm (of `gemm_us[i]` on rank i), and all-reduce again."""
    builder = TraceBuilder()
    last, group = 20 + max(gemm_us), range(len(gemm_us))
    for rank, length_us in enumerate(gemm_us):
        builder.rank(rank).header(host_name="node-1").step(1, 0, last + 20)
        builder.collective(group_ranks=group, start_us=10, duration_us=10, launch_us=1, stream=7)
        builder.kernel("gemm", start_us=20, duration_us=length_us, launch_us=2, stream=7)
        start_us = 20 + length_us
        builder.collective(
            group_ranks=group, start_us=start_us, duration_us=last + 10 - start_us, launch_us=3, stream=7
        )
    return builder


def test_a_slow_kernel_costs_what_the_other_rank_waits():
    """The gemm takes 70 µs on rank 1 and 30 µs on rank 0, so rank 0 waits 40 µs because of the gemm."""
    assert costs(wait_causes(after_a_barrier(30, 70).build())) == [(1, 0, "computation", "gemm", 40_000)]


def test_every_rank_that_waits_has_its_own_cost():
    """Ranks 0, 1 and 2 compute for 30, 70 and 50 µs, so ranks 0 and 2 wait 40 and 20 µs because of rank 1."""
    result = wait_causes(after_a_barrier(30, 70, 50).build())
    assert costs(result) == [(1, 0, "computation", "gemm", 40_000), (1, 2, "computation", "gemm", 20_000)]
    assert result.per_pair.rows() == [(1, 0, 40_000), (1, 2, 20_000)]
    assert result.per_step.rows() == [(1, 0, 0, 40_000), (1, 1, 60_000, 0), (1, 2, 0, 20_000)]


def test_a_rank_that_waited_passes_the_cost_on():
    """Rank 2 computes 100 µs longer; rank 1 waits for rank 2 and makes rank 0 wait, but rank 2 causes both waits."""
    builder = TraceBuilder()
    for rank, length_us in ((0, 20), (1, 20), (2, 120)):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 200)
        builder.kernel("gemm", start_us=10, duration_us=length_us, launch_us=1, stream=7)
        if rank:
            members = {"group": "a", "group_ranks": (1, 2)}
            builder.collective(**members, start_us=10 + length_us, duration_us=130 - length_us, launch_us=2, stream=7)
        if rank < 2:
            members, start_us = {"group": "b", "group_ranks": (0, 1)}, 30 if rank == 0 else 140
            builder.collective(**members, start_us=start_us, duration_us=150 - start_us, launch_us=3, stream=7)
    result = wait_causes(builder.build())

    by_rank = result.per_cause.group_by("cause_rank", "waiting_rank").agg(pl.col("cost_ns").sum()).sort("waiting_rank")
    assert by_rank.filter(cause_rank=2).rows() == [(2, 0, 100_000), (2, 1, 100_000)]
    assert result.per_rank.select("rank", "role", "wait_ns", "passed_on_ns").rows() == [
        (0, "victim", 110_000, 0),
        (1, "victim", 100_000, 100_000),
        (2, "culprit", 0, 0),
    ]


@pytest.mark.slow
def test_costs_add_up_to_all_waiting_of_each_rank(tmp_path):
    """For each waiting rank, the costs add up exactly to the waiting time that `collectives` reports."""
    job = PlantedJob(
        PlantedOptions(data=2, pipeline=4, microbatches=4, layers=1, causes=(Cause("slow_kernel", 3, 5 * MS),))
    )
    trace = holotrace.open_trace(job.write(tmp_path), cache=False)
    waited = collectives(trace).per_rank.select("rank", "wait_ns").filter(pl.col("wait_ns") > 0)
    divided = wait_causes(trace).per_cause.group_by("waiting_rank").agg(pl.col("cost_ns").sum()).sort("waiting_rank")
    assert divided.rows() == waited.sort("rank").rows()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "cause", "name"),
    [
        ("slow_loading", "data_loading", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("garbage_collection", "garbage_collection", "Python GC"),
        ("python_function", "python", "<built-in function sleep>"),
        ("slow_kernel", "computation", "void at::native::index_put_with_sort_kernel<c10::BFloat16>(long*, long*)"),
        ("late_start", "launch_delay", None),
    ],
)
def test_a_planted_cause_is_named_with_its_cost(tmp_path, kind, cause, name):
    """Rank 2 is 5 ms late for a known reason, so the seven other ranks wait 35 ms in total."""
    options = PlantedOptions(layers=1, jitter=0, causes=(Cause(kind, 2, 5 * MS, step=FIRST_STEP + 1),))
    result = wait_causes(holotrace.open_trace(PlantedJob(options).write(tmp_path), cache=False))
    named = result.per_cause.filter(pl.col("name").eq_missing(name), cause=cause, cause_rank=2)
    cost_ns, error_ns = named.select(pl.col("cost_ns", "error_ns").sum()).row(0)
    assert abs(cost_ns - 35 * MS) <= max(error_ns, MS // 10)


@pytest.mark.slow
def test_the_pipeline_recording_blames_the_rank_that_sleeps():
    """Rank 2 sleeps in its forward passes and causes over 80 % of all waiting; the other ranks are victims."""
    result = wait_causes(opened(TRACES / "pipeline_gloo_4rank"))
    shares = dict(result.per_rank.select("rank", "cost_fraction").iter_rows())
    main = result.per_rank.row(2, named=True)
    assert shares[2] > 0.8
    assert result.per_rank["role"].to_list() == ["victim", "victim", "culprit", "victim"]
    assert (main["name"], main["frame"]) == ("<built-in function sleep>", "record_pipeline_gloo.py(12): forward")
    assert main["module"].startswith("Block_")


def test_the_data_parallel_recording_names_the_function_that_sleeps():
    """Rank 3 sleeps in its training loop and causes over 80 % of all waiting."""
    main = wait_causes(opened(TRACES / "ddp_gloo_4rank")).per_rank.row(3, named=True)
    assert main["role"] == "culprit"
    assert main["cost_fraction"] > 0.8
    assert (main["name"], main["frame"]) == ("<built-in function sleep>", "ddp.py(35): main")


def test_one_rank_alone_says_what_is_missing():
    """If only one of two ranks was recorded, the causes of its waits are unknown.

    A finding gives the rank's communication time, which may include waiting.
    """
    trace = after_a_barrier(30, 70).build().select([1])
    result = wait_causes(trace)
    assert result.per_cause.is_empty()
    assert result.answer.startswith("only rank 1 was recorded")
    assert any("20 µs of communication" in finding for finding in result.findings)


def test_steps_select_the_waits():
    """`steps` selects the steps whose waits are listed; an unknown step raises an error."""
    trace = after_a_barrier(30, 70).build()
    assert wait_causes(trace, steps=[1]).per_cause["cost_ns"].sum() == 40_000
    with pytest.raises(InvalidOptionError, match="step"):
        wait_causes(trace, steps=[7])


def test_what_happened_before_the_recording_is_unknown():
    """Rank 1 starts recording 60 µs after rank 0 starts waiting, so 60 of 70 µs have no known cause."""
    builder = TraceBuilder()
    for rank, start_us in ((0, 10), (1, 80)):
        builder.rank(rank).header(host_name="node-1")
        builder.kernel("gemm", start_us=max(start_us - 10, 1), duration_us=9, launch_us=max(start_us - 10, 0), stream=7)
        builder.collective(start_us=start_us, duration_us=90 - start_us, launch_us=start_us - 1, stream=7)
    result = wait_causes(builder.build())
    unknown = result.per_cause.filter(cause="unknown")
    assert unknown.select("cause_rank", "name", "cost_ns").rows() == [(None, "before the recording", 60_000)]
    assert result.per_cause["cost_ns"].sum() == 70_000


def test_the_tables_equal_their_golden_copies(tmp_path, golden):
    """The tables of a synthetic job on two hosts equal their golden copies."""
    write_job(tmp_path, ranks=4, steps=2, layers=2, ranks_per_host=2)
    result = wait_causes(holotrace.open_trace(tmp_path, cache=False))

    golden.check(result.per_cause.head(60), "wait_causes/synthetic_job.per_cause")
    golden.check(result.per_rank, "wait_causes/synthetic_job.per_rank")
    golden.check(result.per_pair, "wait_causes/synthetic_job.per_pair")


def test_a_long_gap_on_a_stream_without_a_known_reason_is_unknown():
    """Rank 1's gemm starts 80 µs after its stream is free and has no recorded launch, so the cause is unknown."""
    builder = TraceBuilder()
    for rank, start_us in ((0, 20), (1, 100)):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 200)
        builder.collective(group_ranks=(0, 1), start_us=10, duration_us=10, launch_us=1, stream=7)
        builder.kernel("gemm", start_us=start_us, duration_us=10, stream=7)
        end_us = start_us + 10
        builder.collective(group_ranks=(0, 1), start_us=end_us, duration_us=120 - end_us, launch_us=3, stream=7)
    name = "work or launches that were not recorded"
    assert costs(wait_causes(builder.build())) == [(1, 0, "unknown", name, 80_000)]


def test_a_short_gap_until_other_work_ends_is_unknown():
    """Rank 1's gemm starts soon after a copy, but no wait for the copy was recorded, so the cause is unknown."""
    builder = TraceBuilder()
    for rank, start_us in ((0, 20), (1, 40)):
        builder.rank(rank).header(host_name="node-1").step(1, 0, 200)
        builder.collective(group_ranks=(0, 1), start_us=10, duration_us=10, launch_us=1, stream=7)
        builder.copy("Memcpy HtoD", start_us=start_us - 5, duration_us=4, launch_us=2, stream=9)
        builder.kernel("gemm", start_us=start_us, duration_us=10, launch_us=3, stream=7)
        end_us = start_us + 10
        builder.collective(group_ranks=(0, 1), start_us=end_us, duration_us=120 - end_us, launch_us=4, stream=7)
    name = "work or launches that were not recorded"
    assert costs(wait_causes(builder.build())) == [(1, 0, "unknown", name, 20_000)]
