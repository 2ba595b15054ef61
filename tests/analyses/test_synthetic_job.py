"""Tests of six analyses on a synthetic job, against the job's plan and against golden tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holotrace import open_trace
from holotrace.analyses.communication_overlap.compute import communication_overlap
from holotrace.analyses.idle_time.compute import CATEGORIES, idle_time
from holotrace.analyses.kernel_breakdown.compute import kernel_breakdown
from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.analyses.queue_length.compute import queue_length
from holotrace.analyses.temporal_breakdown.compute import temporal_breakdown
from holotrace.testing.synthetic import write_job

if TYPE_CHECKING:
    from holotrace.store.trace import Trace
    from holotrace.testing.job_truth import JobTruth

RANKS = 3


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> tuple[Trace, JobTruth]:
    """Return the trace and the plan (the true times) of a job of three ranks, of which the last is slow."""
    folder = tmp_path_factory.mktemp("job")
    truth = write_job(folder, ranks=RANKS, steps=2, layers=2, seed=1)
    return open_trace(folder, cache=False), truth


def test_temporal_breakdown_finds_the_truth(job) -> None:
    """The start, window, computation and idle time of every rank equal the plan exactly."""
    trace, truth = job

    table = temporal_breakdown(trace).per_device

    columns = ["rank", "device", "start_ns", "window_ns", "computation_ns", "idle_ns"]
    assert table.select(columns).rows() == [tuple(getattr(rank, column) for column in columns) for rank in truth.ranks]


def test_kernel_breakdown_finds_the_truth(job) -> None:
    """For each rank, the time of each state and the number of kernels of each kind equal the plan."""
    trace, truth = job

    result = kernel_breakdown(trace)

    for rank in truth.ranks:
        states = result.per_state.filter(rank=rank.rank).select("state", "total_ns").rows()
        assert dict(states) == {state: length for state, length in rank.states_ns.items() if length}
        calls = result.per_kernel.filter(rank=rank.rank).group_by("kernel_kind").agg(count="call_count")
        assert {kind: sum(counts) for kind, counts in calls.rows()} == rank.kernel_counts


def test_communication_overlap_finds_the_truth(job) -> None:
    """For each rank, the communication time and the overlap equal the plan exactly."""
    trace, truth = job

    table = communication_overlap(trace).per_rank

    assert table.select("rank", "communication_ns", "overlap_ns").rows() == [
        (rank.rank, rank.communication_ns, rank.overlap_ns) for rank in truth.ranks
    ]


def test_idle_time_finds_the_truth(job) -> None:
    """The idle time of each stream and device in each category equals the plan exactly."""
    trace, truth = job

    result = idle_time(trace)

    for rank in truth.ranks:
        for stream, expected in rank.idle_by_stream_ns.items():
            by_stream = result.per_stream.filter(rank=rank.rank, stream=int(stream))
            assert dict(by_stream.select("category", "idle_ns").rows()) == expected
        device = result.per_device.filter(rank=rank.rank)
        assert dict(device.select("category", "idle_ns").rows()) == rank.idle_of_device_ns
        assert device["category"].to_list() == list(CATEGORIES)


def test_the_tables_equal_their_golden_copies(job, golden) -> None:
    """The tables of six analyses equal their golden copies; the long time series are not compared."""
    trace, _ = job
    idle = idle_time(trace)
    kernels = kernel_breakdown(trace)
    queues, copies = queue_length(trace), memory_bandwidth(trace)

    golden.check(temporal_breakdown(trace).per_device, "temporal_breakdown/synthetic_job")
    golden.check(kernels.per_state, "kernel_breakdown/synthetic_job.per_state")
    golden.check(kernels.per_kernel, "kernel_breakdown/synthetic_job.per_kernel")
    golden.check(communication_overlap(trace).per_rank, "communication_overlap/synthetic_job")
    golden.check(idle.per_stream, "idle_time/synthetic_job.per_stream")
    golden.check(idle.per_device, "idle_time/synthetic_job.per_device")
    golden.check(idle.statistics, "idle_time/synthetic_job.statistics")
    golden.check(queues.time_weighted, "queue_length/synthetic_job.time_weighted")
    golden.check(queues.change_weighted, "queue_length/synthetic_job.change_weighted")
    golden.check(copies.time_weighted, "memory_bandwidth/synthetic_job.time_weighted")
    golden.check(copies.change_weighted, "memory_bandwidth/synthetic_job.change_weighted")
