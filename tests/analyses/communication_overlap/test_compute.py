"""Tests of communication_overlap: how much of the communication is hidden by computation."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.analyses.communication_overlap.compute import communication_overlap
from holotrace.errors import MissingDataError
from holotrace.testing.builder import TraceBuilder


def test_two_compute_kernels_hide_the_same_moment_once() -> None:
    """One kernel hides 6 µs of an all-reduce; another kernel hides 3 of the same 6 µs, so 6 µs are hidden, not 9."""
    trace = (
        TraceBuilder()
        .kernel("ncclDevKernel_AllReduce", stream=20, start_us=0, duration_us=10)
        .kernel("gemm", stream=7, start_us=4, duration_us=10)
        .kernel("relu", stream=8, start_us=4, duration_us=3)
        .build()
    )

    result = communication_overlap(trace)

    assert result.per_rank.to_dicts() == [
        {"rank": 0, "communication_ns": 10_000, "overlap_ns": 6_000, "exposed_ns": 4_000, "overlap_fraction": 0.6},
    ]
    assert result.findings == ()


def test_the_columns_and_their_types() -> None:
    """The table's column names, order and types are part of the API."""
    table = communication_overlap(TraceBuilder().kernel("nccl", start_us=0, duration_us=1).build()).per_rank

    lengths = dict.fromkeys(["communication_ns", "overlap_ns", "exposed_ns"], pl.Int64)
    assert table.schema == {"rank": pl.Int32, **lengths, "overlap_fraction": pl.Float64}


def test_copies_and_waits_hide_nothing() -> None:
    """A copy and a wait during an all-reduce do not hide it; only computation hides communication."""
    trace = (
        TraceBuilder()
        .collective("allreduce", start_us=0, duration_us=10)
        .copy(start_us=0, duration_us=10)
        .sync(start_us=0, duration_us=10)
        .build()
    )

    assert communication_overlap(trace).per_rank.row(0) == (0, 10_000, 0, 10_000, 0.0)


def test_devices_of_a_rank_are_added_up_and_hide_only_their_own() -> None:
    """Device 0 computes during 2 of its 4 µs of communication; this hides none of the 6 µs on device 1."""
    trace = (
        TraceBuilder()
        .kernel("ncclDevKernel", start_us=0, duration_us=4, device=0, stream=20)
        .kernel("gemm", start_us=2, duration_us=8, device=0)
        .kernel("ncclDevKernel", start_us=2, duration_us=6, device=1, stream=20)
        .build()
    )

    assert communication_overlap(trace).per_rank.row(0) == (0, 10_000, 2_000, 8_000, 0.2)


def test_a_rank_that_does_not_communicate_has_no_fraction() -> None:
    """Rank 0 does not communicate, so its overlap fraction is null, and a finding says why."""
    builder = TraceBuilder()
    builder.rank(0).kernel("gemm", start_us=0, duration_us=1)
    builder.rank(1).kernel("ncclDevKernel", start_us=0, duration_us=1)

    result = communication_overlap(builder.build())

    assert result.per_rank.rows() == [(0, 0, 0, 0, None), (1, 1_000, 0, 1_000, 0.0)]
    assert result.findings == ("rank 0: no communication kernels ran, so nothing can overlap",)


def test_a_rank_without_device_work_is_left_out() -> None:
    """Rank 0 has only operators, so it has a finding instead of a row."""
    builder = TraceBuilder()
    builder.rank(0).operator("aten::mm", start_us=0, duration_us=1)
    builder.rank(1).kernel("ncclDevKernel", start_us=0, duration_us=1)

    result = communication_overlap(builder.build())

    assert result.per_rank["rank"].to_list() == [1]
    assert [finding[:6] for finding in result.findings] == ["rank 0"]


@pytest.mark.parametrize("builder", [TraceBuilder(), TraceBuilder().operator("aten::mm", start_us=0, duration_us=1)])
def test_a_job_without_gpu_work_is_an_error(builder: TraceBuilder) -> None:
    """A trace without events, or with operators only, raises MissingDataError."""
    with pytest.raises(MissingDataError, match=r"^communication_overlap: rank 0 has no GPU kernels to measure"):
        communication_overlap(builder.build())
