"""Tests of kernel_breakdown: how much time each kind of kernel and each kernel takes."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.analyses.kernel_breakdown.compute import kernel_breakdown
from holotrace.errors import MissingDataError
from holotrace.testing.builder import TraceBuilder
from oracles import state_lengths


def test_all_busy_time_belongs_to_one_combination_of_kinds() -> None:
    """A gemm (0 to 10 µs), an all-reduce (4 to 14 µs) and a copy (12 to 20 µs) overlap, which gives five states."""
    trace = (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=10)
        .kernel("ncclDevKernel_AllReduce", start_us=4, duration_us=10, stream=20)
        .copy(start_us=12, duration_us=8, stream=8)
        .build()
    )

    assert kernel_breakdown(trace).per_state.to_dicts() == [
        {"rank": 0, "device": 0, "state": "computation + communication", "total_ns": 6_000, "fraction": 0.3},
        {"rank": 0, "device": 0, "state": "memory", "total_ns": 6_000, "fraction": 0.3},
        {"rank": 0, "device": 0, "state": "computation", "total_ns": 4_000, "fraction": 0.2},
        {"rank": 0, "device": 0, "state": "communication", "total_ns": 2_000, "fraction": 0.1},
        {"rank": 0, "device": 0, "state": "communication + memory", "total_ns": 2_000, "fraction": 0.1},
    ]


def test_statistics_of_each_kernel_are_those_of_its_calls() -> None:
    """The table has the statistics of gemms of 2, 4 and 9 µs and of an all-reduce of 5 µs."""
    trace = (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=2)
        .kernel("gemm", start_us=10, duration_us=4)
        .kernel("gemm", start_us=20, duration_us=9)
        .kernel("ncclDevKernel_AllReduce", start_us=21, duration_us=5, stream=20)
        .build()
    )

    assert kernel_breakdown(trace).per_kernel.to_dicts() == [
        {
            "rank": 0,
            "kernel_kind": "computation",
            "name": "gemm",
            "call_count": 3,
            "total_ns": 15_000,
            "mean_ns": 5_000.0,
            "std_ns": pytest.approx((13e6) ** 0.5),
            "min_ns": 2_000,
            "median_ns": 4_000.0,
            "max_ns": 9_000,
            "fraction": 0.75,
        },
        {
            "rank": 0,
            "kernel_kind": "communication",
            "name": "ncclDevKernel_AllReduce",
            "call_count": 1,
            "total_ns": 5_000,
            "mean_ns": 5_000.0,
            "std_ns": 0.0,
            "min_ns": 5_000,
            "median_ns": 5_000.0,
            "max_ns": 5_000,
            "fraction": 0.25,
        },
    ]


def test_the_columns_and_their_types() -> None:
    """The tables' column names, order and types are part of the API."""
    result = kernel_breakdown(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build())

    assert result.per_state.schema == {
        "rank": pl.Int32,
        "device": pl.Int32,
        "state": pl.String,
        "total_ns": pl.Int64,
        "fraction": pl.Float64,
    }
    assert result.per_kernel.schema == {
        "rank": pl.Int32,
        "kernel_kind": pl.String,
        "name": pl.String,
        "call_count": pl.Int64,
        "total_ns": pl.Int64,
        "mean_ns": pl.Float64,
        "std_ns": pl.Float64,
        "min_ns": pl.Int64,
        "median_ns": pl.Float64,
        "max_ns": pl.Int64,
        "fraction": pl.Float64,
    }


def test_one_name_of_two_kinds_is_two_kernels() -> None:
    """Two kernels have the same name: one has the args of a collective and is communication, one is computation."""
    trace = (
        TraceBuilder()
        .kernel("fused", start_us=0, duration_us=3, args={"Collective name": "allreduce"})
        .kernel("fused", start_us=5, duration_us=1)
        .build()
    )

    table = kernel_breakdown(trace).per_kernel

    assert table.select("kernel_kind", "name", "total_ns").rows() == [
        ("communication", "fused", 3_000),
        ("computation", "fused", 1_000),
    ]


def test_states_are_per_device_and_kernels_per_rank() -> None:
    """Each device has its own states, but a kernel has one row per rank, with its calls on all devices."""
    trace = (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=10, device=0)
        .kernel("ncclDevKernel_AllReduce", start_us=0, duration_us=4, device=1)
        .kernel("gemm", start_us=4, duration_us=1, device=1)
        .build()
    )

    result = kernel_breakdown(trace)

    assert result.per_state.rows() == [
        (0, 0, "computation", 10_000, 1.0),
        (0, 1, "communication", 4_000, 0.8),
        (0, 1, "computation", 1_000, 0.2),
    ]
    assert result.per_kernel.select("name", "call_count", "total_ns").rows() == [
        ("gemm", 2, 11_000),
        ("ncclDevKernel_AllReduce", 1, 4_000),
    ]


def test_ranks_stay_apart_and_a_rank_without_work_is_a_finding() -> None:
    """A kernel that runs on two ranks has two rows; the third rank has only operators, and a finding says so."""
    builder = TraceBuilder()
    builder.rank(1).kernel("gemm", start_us=0, duration_us=1)
    builder.rank(0).kernel("gemm", start_us=0, duration_us=3)
    builder.rank(2).operator("aten::mm", start_us=0, duration_us=1)

    result = kernel_breakdown(builder.build())

    assert result.per_state.select("rank", "total_ns").rows() == [(0, 3_000), (1, 1_000)]
    assert result.per_kernel.select("rank", "total_ns", "fraction").rows() == [(0, 3_000, 1.0), (1, 1_000, 1.0)]
    assert [finding[:6] for finding in result.findings] == ["rank 2"]


def test_equal_sums_are_ordered_by_kind_and_name() -> None:
    """Rows with equal times are sorted by kind and name, not by the order of the events."""
    builder = TraceBuilder()
    for start, name in enumerate(["b", "ncclKernel", "a"]):
        builder.kernel(name, start_us=start, duration_us=1)

    assert kernel_breakdown(builder.build()).per_kernel["name"].to_list() == ["ncclKernel", "a", "b"]


def test_kernels_of_no_length_have_no_share() -> None:
    """A kernel of 0 µs has a null fraction and no state."""
    result = kernel_breakdown(TraceBuilder().kernel("gemm", start_us=0, duration_us=0).build())

    assert result.per_state.height == 0
    assert result.per_kernel.select("call_count", "total_ns", "fraction").rows() == [(1, 0, None)]


@pytest.mark.parametrize("builder", [TraceBuilder(), TraceBuilder().sync(start_us=0, duration_us=1)])
def test_a_job_without_gpu_work_is_an_error(builder: TraceBuilder) -> None:
    """A trace without events, or with only a synchronisation, raises MissingDataError."""
    with pytest.raises(MissingDataError, match=r"^kernel_breakdown: rank 0 has no GPU kernels to measure"):
        kernel_breakdown(builder.build())


works = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.integers(0, 50), st.integers(0, 12)), min_size=1, max_size=12)
NAMES = ("gemm", "ncclDevKernel", "Memcpy")


@given(works)
def test_states_last_as_long_as_an_oracle_counts(work: list[tuple[int, int, int]]) -> None:
    """For random work, the time of each state equals that from a simple reference count of every nanosecond."""
    builder = TraceBuilder()
    for kind, start, duration in work:
        builder.kernel(NAMES[kind], start_us=start / 1000, duration_us=duration / 1000)

    table = kernel_breakdown(builder.build()).per_state

    expected = state_lengths(
        [[(start, start + span) for which, start, span in work if which == kind] for kind in range(3)]
    )
    bits = {"computation": 1, "communication": 2, "memory": 4}
    state_ns = {
        sum(bits[name] for name in state.split(" + ")): length
        for state, length in table.select("state", "total_ns").rows()
    }
    assert state_ns == {mask: length for mask, length in expected.items() if mask and length}
