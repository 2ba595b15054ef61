"""Tests of what_if_across_ranks: its predictions are compared with jobs in which the change was really made."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from holotrace.analyses.critical_path.compute import critical_path
from holotrace.enrich.critical_path.what_if import NoLaunchOverhead, Remove, Replace, Scale
from holotrace.enrich.job_graph.what_if.job_what_if import FasterLink, JobChange, what_if_across_ranks
from holotrace.enrich.job_graph.what_if.peers_median import PeersMedian
from holotrace.errors import InvalidOptionError
from holotrace.schema import EventKind
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from recordings import opened

TRACES = Path(__file__).parents[3] / "reference" / "traces"
TRANSFER_US = 10


def job(busy_us: tuple[int, ...], *, transfer_us: float = TRANSFER_US) -> Trace:
    """Return a job: each rank computes for its time in `busy_us`, runs a collective, and computes for 20 µs more."""
    builder = TraceBuilder()
    ranks = range(len(busy_us))
    arrived_us = 5 + max(busy_us)
    for rank, busy in enumerate(busy_us):
        builder.rank(rank).header(host_name="one", distributedInfo={"rank": rank, "world_size": len(busy_us)})
        builder.step(1, 0, 8, rank=rank)
        builder.kernel("gemm", start_us=5, duration_us=busy, launch_us=1, launch_duration_us=1, rank=rank)
        builder.collective(
            group_ranks=ranks,
            start_us=5 + busy,
            duration_us=arrived_us - 5 - busy + transfer_us,
            launch_us=3,
            launch_duration_us=1,
            stream=7,
            rank=rank,
        )
        builder.kernel(
            "relu", start_us=arrived_us + transfer_us, duration_us=20, launch_us=5, launch_duration_us=1, rank=rank
        )
    return builder.build()


def step_ns(trace: Trace) -> int:
    """Return the measured length of the job's step."""
    return critical_path(trace, across_ranks=True).steps["duration_ns"][0]


GEMM, REDUCE = pl.col("name") == "gemm", pl.col("name").str.contains("AllReduce")


@pytest.mark.parametrize(
    ("changes", "made_again"),
    [
        ([Scale(GEMM, 0.5)], job((10, 25))),
        ([Remove(GEMM)], job((0, 0))),
        ([Replace(GEMM, 30_000)], job((30, 30))),
        ([Scale(REDUCE, 0.5)], job((20, 50), transfer_us=5)),
        ([Replace(REDUCE, 4_000)], job((20, 50), transfer_us=4)),
        ([FasterLink(bandwidth_factor=2)], job((20, 50), transfer_us=5)),
        ([PeersMedian([1])], job((20, 20))),
        ([Scale(GEMM, 0.5), FasterLink(bandwidth_factor=2)], job((10, 25), transfer_us=5)),
    ],
    ids=["scale", "remove", "replace", "scale transfer", "replace transfer", "link", "peers", "both"],
)
def test_predictions_equal_the_job_made_again(changes: list[JobChange], made_again: Trace) -> None:
    """The predicted step time equals the step time of a job that is built with the change from the start.

    In the job without the change, rank 0 computes for 20 µs and rank 1 for 50 µs.
    """
    answer = what_if_across_ranks(job((20, 50)), changes)
    assert answer.measured_ns == answer.replayed_ns == 85_000
    assert answer.predicted_ns == step_ns(made_again)


def test_a_rank_that_nobody_waits_for_saves_nothing() -> None:
    """Rank 0 waits 30 µs for rank 1, so making rank 0 faster, or up to 30 µs slower, does not change the step."""
    trace = job((20, 50))
    only_rank_0 = GEMM & (pl.col("duration_ns") == 20_000)
    for factor in (0, 1, 2.5):
        assert what_if_across_ranks(trace, [Scale(only_rank_0, factor)]).saved_ns == 0
    assert what_if_across_ranks(trace, [Scale(only_rank_0, 3)]).saved_ns == -10_000


def test_all_ranks_like_the_median() -> None:
    """If ranks compute for 20, 50 and 90 µs, `PeersMedian` makes all of them compute for 50 µs."""
    assert what_if_across_ranks(job((20, 50, 90)), [PeersMedian()]).predicted_ns == step_ns(job((50, 50, 50)))


def test_a_call_that_only_one_rank_has_in_the_window_does_not_matter() -> None:
    """On rank 1, the window includes the last 2 µs of the previous step's all-reduce; on rank 0, no part of it."""
    builder = TraceBuilder()
    for rank, (busy_us, ends_us) in enumerate([(20, -5), (50, 2)]):
        builder.rank(rank).header(host_name="one", distributedInfo={"rank": rank, "world_size": 2})
        builder.step(1, 0, 100)
        builder.collective(
            start_us=-40, duration_us=ends_us + 40, group_ranks=[0, 1], launch_us=-45, sequence=1, stream=9
        )
        builder.kernel("gemm", start_us=5, duration_us=busy_us, launch_us=1)
        reduce_us = {"start_us": 5 + busy_us, "duration_us": 60 - busy_us}
        builder.collective(**reduce_us, group_ranks=[0, 1], launch_us=3, sequence=2, stream=9)
        builder.runtime("cudaDeviceSynchronize", start_us=4, duration_us=62)

    assert what_if_across_ranks(builder.build(), [PeersMedian([1])]).saved_ns == 30_000


def test_launches_without_overhead_start_work_at_once() -> None:
    """Without launch overhead, both ranks start to compute at 1 µs, when the host launches the kernel, not at 5 µs."""
    assert what_if_across_ranks(job((20, 50)), [NoLaunchOverhead()]).saved_ns == 4_000


def test_changes_that_select_nothing_are_errors() -> None:
    """An unknown name or rank, a group without calls, a bandwidth factor of 0 and a negative scale raise errors."""
    for change in (
        Remove(pl.col("name") == "none"),
        PeersMedian([7]),
        FasterLink(process_group="other"),
        FasterLink(bandwidth_factor=0),
        Scale(GEMM, -1),
    ):
        with pytest.raises(InvalidOptionError):
            what_if_across_ranks(job((20, 50)), [change])


def test_a_rank_without_peers_is_an_error() -> None:
    """In a job of one rank, the rank has no peers to compare it with."""
    with pytest.raises(InvalidOptionError, match="no peers"):
        what_if_across_ranks(job((20,)), [PeersMedian([0])])


def sleeping_ranks() -> Trace:
    """Return two ranks without GPU work; rank 1 sleeps from 10 to 40 µs in a function that also runs `aten::mm`."""
    builder = TraceBuilder()
    frame = {"ph": "X", "cat": "python_function", "tid": 1, "args": {"Python id": 1, "Python parent id": None}}
    for rank, sleep_us in ((0, 0), (1, 30)):
        builder.rank(rank).header(host_name="one", distributedInfo={"rank": rank, "world_size": 2})
        builder.step(1, 0, 60 + sleep_us).operator("aten::add", start_us=0, duration_us=10)
        builder.operator("aten::mm", start_us=10 + sleep_us, duration_us=20)
        if sleep_us:
            pid = 1000 + rank
            for name, start_us, end_us in (("model.py(1): load", 10, 60), ("<built-in function sleep>", 10, 40)):
                builder.event(**frame, name=name, pid=pid, ts=start_us, dur=end_us - start_us)
    return builder.build()


def test_python_functions_can_be_removed_without_what_they_call() -> None:
    """Without the 30 µs of sleep, rank 1 ends together with rank 0; `aten::mm` in the same function still runs."""
    trace = sleeping_ranks()
    if not trace.ranks[1].events_of([EventKind.PYTHON_FUNCTION], ["event_index"]).height:
        pytest.fail("the functions were not read")
    for name in ("sleep", "load"):
        answer = what_if_across_ranks(trace, [Remove(pl.col("name").str.contains(name))])
        assert (answer.measured_ns, answer.predicted_ns) == (90_000, 60_000)
    half = what_if_across_ranks(trace, [Scale(pl.col("name") == "<built-in function sleep>", 0.5)])
    assert half.predicted_ns == 75_000
    replaced = what_if_across_ranks(trace, [Replace(pl.col("name") == "<built-in function sleep>", 10_000)])
    assert replaced.predicted_ns == 70_000


def test_python_functions_after_the_last_operator_can_be_removed() -> None:
    """Without the 40 µs of garbage collection before the end of rank 1's step, the step takes 60 µs, as on rank 0."""
    builder = TraceBuilder()
    for rank, collection_us in ((0, 0), (1, 40)):
        builder.rank(rank).header(host_name="one", distributedInfo={"rank": rank, "world_size": 2})
        builder.step(1, 0, 60 + collection_us).operator("aten::add", start_us=0, duration_us=50)
    builder.event(ph="X", cat="python_function", name="Python GC", pid=1001, tid=1, ts=55, dur=40, args={})
    answer = what_if_across_ranks(builder.build(), [Remove(pl.col("name") == "Python GC")])
    assert (answer.measured_ns, answer.predicted_ns) == (100_000, 60_000)


MULTI_RANK = ("ddp_gloo_4rank", "pipeline_gloo_4rank", "dlrm_8rank", "two_rank_128")


@pytest.mark.parametrize("name", MULTI_RANK)
def test_an_unchanged_replay_takes_as_long_as_the_recorded_step(real_traces: Path, name: str) -> None:
    """For recorded jobs, the unchanged replay differs from the measured step by at most 3 %."""
    everything = pl.col("duration_ns") >= 0
    answer = what_if_across_ranks(opened(real_traces / name), [Scale(everything, 1.0)])
    assert abs(answer.replayed_ns - answer.measured_ns) <= 0.03 * answer.measured_ns
    assert abs(answer.saved_ns) <= 0.001 * answer.measured_ns, "a change that changes nothing saves nothing"


@pytest.mark.parametrize(("name", "slow"), [("pipeline_gloo_4rank", 2), ("ddp_gloo_4rank", 3)])
def test_a_slow_rank_that_works_like_its_peers_saves_its_delay(real_traces: Path, name: str, slow: int) -> None:
    """Making the slow rank as fast as its peers saves over 10 % of the step.

    Making rank 0 as fast as its peers saves less than 10 %, because rank 0 waits for the slow rank.
    """
    trace = opened(real_traces / name)
    assert what_if_across_ranks(trace, [PeersMedian([slow])]).saved_fraction > 0.1
    other = what_if_across_ranks(trace, [PeersMedian([0])])
    assert other.saved_fraction < 0.1


@pytest.mark.slow
def test_sends_that_end_when_their_thread_looks_at_them_delay_nobody() -> None:
    """In a zero-bubble pipeline, threads notice the end of most sends long after the messages have arrived.

    In one job, rank 0 waits 5 ms in each forward pass. If these waits are removed, the predicted steps are 12 to 17 %
    longer than the steps of a job that was recorded without such waits.
    """
    jobs = [opened(TRACES / f"planted_causes/zero_bubble_{name}") for name in ("slow_rank", "healthy")]
    wait = Remove(pl.col("name").str.contains("wait_in_forward"))
    for step in (3, 4, 5):
        predicted_ns = what_if_across_ranks(jobs[0], [wait], instance=step).predicted_ns
        steps = critical_path(jobs[1], across_ranks=True, instance=step).steps
        assert predicted_ns == pytest.approx(steps["duration_ns"][0], rel=0.2)
