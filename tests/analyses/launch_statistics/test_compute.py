"""Tests of launch_statistics: launch calls, their delays, and the kernels they launch."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace import open_trace
from holotrace.analyses.launch_statistics.compute import launch_statistics
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job


def launched() -> TraceBuilder:
    """Return a 3 µs kernel with a 5 µs launch call, a copy with a 60 µs call, and a kernel that starts 195 µs late."""
    return (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=10)
        .kernel("short", start_us=8, duration_us=3, launch_us=1, launch_duration_us=5)
        .copy(start_us=90, duration_us=100, launch_us=20, launch_duration_us=60, stream=9)
        .kernel(
            "late", start_us=300, duration_us=50, launch_us=100, launch_duration_us=5, launch_name="cuLaunchKernelEx"
        )
    )


def test_every_launch_is_judged() -> None:
    """One short kernel, one slow call and one late start are counted; the calls take 70 µs in total."""
    assert launch_statistics(launched().build()).per_rank.to_dicts() == [
        {
            "rank": 0,
            "call_count": 3,
            "kernel_count": 3,
            "total_call_ns": 70_000,
            "mean_call_ns": pytest.approx(70_000 / 3),
            "median_launch_delay_ns": 10_000.0,
            "max_launch_delay_ns": 195_000,
            "short_kernel_count": 1,
            "slow_call_count": 1,
            "late_start_count": 1,
            "unknown_launch_count": 0,
        }
    ]


def test_every_function_that_launches_has_a_row() -> None:
    """Each runtime or driver function has a row, sorted by total time."""
    columns = ("call", "call_count", "total_call_ns", "short_kernel_count", "slow_call_count", "late_start_count")
    assert launch_statistics(launched().build()).per_call.select(columns).rows() == [
        ("cudaMemcpyAsync", 1, 60_000, 0, 1, 0),
        ("cuLaunchKernelEx", 1, 5_000, 0, 0, 1),
        ("cudaLaunchKernel", 1, 5_000, 1, 0, 0),
    ]


def test_lengths_are_counted_in_classes() -> None:
    """Durations are counted in bins: 3 µs in the bin from 2 to 5 µs, 60 µs in the bin from 50 to 100 µs, and so on."""
    assert launch_statistics(launched().build()).lengths.rows() == [
        (0, "short_kernel", 2_000, 5_000, 1),
        (0, "slow_call", 50_000, 100_000, 1),
        (0, "late_start", 100_000, 200_000, 1),
    ]


def test_launches_are_listed_when_asked_for() -> None:
    """With `include_launches`, every launch has a row; by default, the table is empty."""
    listed = launch_statistics(launched().build(), include_launches=True).per_launch

    assert listed.row(0, named=True) == {
        "rank": 0,
        "device": 0,
        "stream": 7,
        "correlation": 100_001,
        "call": "cudaLaunchKernel",
        "kernel": "short",
        "kernel_kind": "computation",
        "operator": "aten::mm",
        "launch_start_ns": 1_000,
        "call_ns": 5_000,
        "kernel_start_ns": 8_000,
        "kernel_ns": 3_000,
        "launch_delay_ns": 2_000,
    }
    assert listed.select("stream", "operator", "launch_delay_ns").rows()[1:] == [(9, None, 10_000), (7, None, 195_000)]
    empty = launch_statistics(launched().build()).per_launch
    assert empty.is_empty()
    assert empty.schema == listed.schema


def test_a_value_equal_to_its_cutoff_is_fine() -> None:
    """A call whose duration equals its cutoff is not slow; a start whose delay equals its cutoff is not late."""
    result = launch_statistics(launched().build(), runtime_cutoff_ns=60_000, delay_cutoff_ns=195_000)

    counts = result.per_rank.select("slow_call_count", "late_start_count").row(0)
    assert counts == (0, 0)


def test_a_graph_is_one_call_for_many_kernels() -> None:
    """A cudaGraphLaunch of 70 µs runs two kernels; each kernel has a delay, but the slow call counts once."""
    trace = (
        TraceBuilder()
        .kernel(
            "a",
            start_us=80,
            duration_us=5,
            launch_us=0,
            launch_duration_us=70,
            launch_name="cudaGraphLaunch",
            correlation=9,
        )
        .kernel("b", start_us=90, duration_us=5, correlation=9)
        .build()
    )

    result = launch_statistics(trace, include_launches=True)

    columns = ("call_count", "kernel_count", "total_call_ns", "slow_call_count")
    assert result.per_rank.select(columns).row(0) == (1, 2, 70_000, 1)
    assert result.per_launch.select("kernel", "launch_delay_ns").rows() == [("a", 10_000), ("b", 20_000)]


@pytest.mark.parametrize(
    ("call", "category"),
    [
        ("hipLaunchKernel", "cuda_runtime"),
        ("hipExtModuleLaunchKernel", "cuda_runtime"),
        ("cudaLaunchCooperativeKernel", "cuda_runtime"),
        ("runFunction - job_prep_and_submit_for_execution", "mtia_runtime"),
        ("urEnqueueKernelLaunch", "xpu_runtime"),
    ],
)
def test_the_name_of_the_call_does_not_matter(call, category) -> None:
    """A HIP, MTIA or XPU call of any name launches the kernel that has the same correlation, even on stream 0."""
    trace = (
        TraceBuilder()
        .event(ph="X", cat=category, name=call, pid=1, tid=1, ts=0, dur=2, args={"correlation": 5})
        .kernel("k", start_us=5, duration_us=9, correlation=5, stream=0)
        .build()
    )

    assert launch_statistics(trace).per_call.select("call", "kernel_count").rows() == [(call, 1)]


def test_work_may_start_before_its_call_ends() -> None:
    """A kernel that starts 6 µs before its call ends has a delay of -6 µs, and does not count as late."""
    trace = TraceBuilder().kernel("k", start_us=4, duration_us=20, launch_us=0, launch_duration_us=10).build()

    row = launch_statistics(trace).per_rank.row(0, named=True)
    assert (row["max_launch_delay_ns"], row["late_start_count"]) == (-6_000, 0)


def test_waiting_is_not_launched() -> None:
    """A Stream Sync event with the same correlation as a launch is not device work."""
    trace = launched().sync(start_us=0, duration_us=5, correlation=100_001).build()

    assert launch_statistics(trace).per_rank["kernel_count"].item() == 3


def test_unknown_launches_are_counted_and_noticed() -> None:
    """The launch of a kernel was not recorded; it is counted as unknown, and a finding says so."""
    result = launch_statistics(TraceBuilder().kernel("k", start_us=0, duration_us=5).build())

    row = result.per_rank.row(0, named=True)
    assert (row["kernel_count"], row["unknown_launch_count"], row["median_launch_delay_ns"]) == (0, 1, None)
    assert result.per_call.is_empty()
    assert result.findings == ("rank 0: the launch of 1 of 1 kernels, copies and memsets was not recorded",)


def test_ranks_without_device_work_are_left_out() -> None:
    """Rank 1 has only an operator, so it has a finding instead of a row."""
    result = launch_statistics(launched().rank(1).operator("aten::mm", start_us=0, duration_us=5).build())

    assert result.per_rank["rank"].to_list() == [0]
    assert "rank 1 has no GPU kernels" in result.findings[0]


def test_a_job_without_gpu_work_is_an_error() -> None:
    """If the trace has only operators, MissingDataError is raised."""
    with pytest.raises(MissingDataError, match=r"^launch_statistics: rank 0 has no GPU kernels"):
        launch_statistics(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build())


@pytest.mark.parametrize("option", ["runtime_cutoff_ns", "delay_cutoff_ns"])
def test_a_cutoff_is_not_negative(option) -> None:
    """A negative cutoff raises an error that names the option."""
    with pytest.raises(InvalidOptionError, match=f"^{option}=-1"):
        launch_statistics(launched().build(), **{option: -1})


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """Every table of a synthetic job equals its golden copy."""
    write_job(tmp_path, ranks=2, steps=2, layers=2, seed=1)
    result = launch_statistics(open_trace(tmp_path, cache=False), include_launches=True)

    golden.check(result.per_rank, "launch_statistics/synthetic_job.per_rank")
    golden.check(result.per_call, "launch_statistics/synthetic_job.per_call")
    golden.check(result.lengths, "launch_statistics/synthetic_job.lengths")
    golden.check(result.per_launch.filter(pl.col("rank") == 0).head(40), "launch_statistics/synthetic_job.per_launch")
