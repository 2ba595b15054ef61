"""Tests of idle_time: why devices and streams are idle."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.analyses.idle_time.compute import CATEGORIES, idle_time
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.testing.builder import TraceBuilder
from oracles import gap_lengths, holes

KEYS = {"rank": pl.Int32, "device": pl.Int32}
TOTALS = {"category": pl.String, "idle_ns": pl.Int64, "gap_count": pl.Int64, "fraction": pl.Float64}


def stream_totals(builder: TraceBuilder, **options: int) -> list[tuple[object, ...]]:
    """Return the stream, category, idle_ns and gap_count of every row with at least one gap."""
    table = idle_time(builder.build(), **options).per_stream
    return table.filter(pl.col("gap_count") > 0).select("stream", "category", "idle_ns", "gap_count").rows()


def test_a_gap_is_divided_at_the_launch_of_the_work_that_ends_it() -> None:
    """A stream is idle from 10 to 50 µs; the launch at 35 µs divides this into `host_wait` and `kernel_wait`."""
    trace = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=10, launch_us=-5)
        .kernel("b", start_us=50, duration_us=10, launch_us=35)
        .build()
    )

    result = idle_time(trace)

    assert result.per_stream.to_dicts() == [
        {
            "rank": 0,
            "device": 0,
            "stream": 7,
            "category": "host_wait",
            "idle_ns": 25_000,
            "gap_count": 1,
            "fraction": 0.625,
        },
        {
            "rank": 0,
            "device": 0,
            "stream": 7,
            "category": "kernel_wait",
            "idle_ns": 15_000,
            "gap_count": 1,
            "fraction": 0.375,
        },
        {"rank": 0, "device": 0, "stream": 7, "category": "other", "idle_ns": 0, "gap_count": 0, "fraction": 0.0},
    ]
    assert result.per_device.equals(result.per_stream.drop("stream"))
    assert result.findings == ()


def test_the_columns_and_their_types() -> None:
    """The tables' column names, order and types are part of the API."""
    result = idle_time(TraceBuilder().kernel("a", start_us=0, duration_us=1).build())

    assert result.per_stream.schema == {**KEYS, "stream": pl.Int64, **TOTALS}
    assert result.per_device.schema == {**KEYS, **TOTALS}
    assert result.statistics.schema == {
        **KEYS,
        "stream": pl.Int64,
        "category": pl.String,
        "gap_count": pl.Int64,
        "mean_ns": pl.Float64,
        "std_ns": pl.Float64,
        "min_ns": pl.Int64,
        "p25_ns": pl.Float64,
        "median_ns": pl.Float64,
        "p75_ns": pl.Float64,
        "max_ns": pl.Int64,
    }


def test_work_launched_before_the_gap_waited_for_the_kernel_or_for_something_else() -> None:
    """With a threshold of 30 µs, a gap of 29 µs is `kernel_wait` and a gap of 30 µs is `other`."""
    builder = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=10, launch_us=-5)
        .kernel("b", start_us=39, duration_us=1, launch_us=-4)
        .kernel("c", start_us=70, duration_us=1, launch_us=-3)
    )

    assert stream_totals(builder) == [(7, "kernel_wait", 29_000, 1), (7, "other", 30_000, 1)]
    assert stream_totals(builder, gap_threshold_ns=30_001) == [(7, "kernel_wait", 59_000, 2)]
    assert stream_totals(builder, gap_threshold_ns=0) == [(7, "other", 59_000, 2)]


def test_the_threshold_measures_the_wait_from_the_launch_on() -> None:
    """A gap takes 100 µs, but only the 20 µs after the launch are compared with the threshold: they are `kernel_wait`."""
    builder = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=10, launch_us=-5)
        .kernel("b", start_us=110, duration_us=1, launch_us=90)
    )

    assert stream_totals(builder) == [(7, "host_wait", 80_000, 1), (7, "kernel_wait", 20_000, 1)]


def test_a_launch_after_the_start_leaves_no_negative_wait() -> None:
    """If the clocks disagree and the launch seems to be after the kernel's start, the whole gap is `host_wait`."""
    builder = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=10, launch_us=-5)
        .kernel("b", start_us=40, duration_us=1, launch_us=41)
    )

    assert stream_totals(builder) == [(7, "host_wait", 30_000, 1)]


def test_without_a_known_launch_nothing_is_blamed_on_the_host() -> None:
    """If launches are unknown, a gap of 5 µs is `kernel_wait` and a gap of 500 µs is `other`, never `host_wait`."""
    builder = TraceBuilder()
    for start in (0, 6, 507):
        builder.kernel("k", start_us=start, duration_us=1)

    assert stream_totals(builder) == [(7, "kernel_wait", 5_000, 1), (7, "other", 500_000, 1)]


def test_overlapping_work_leaves_no_gap_and_hides_those_inside() -> None:
    """A short kernel runs during a long one; the only gap starts when the long kernel ends and lasts 10 µs."""
    builder = (
        TraceBuilder()
        .kernel("long", start_us=0, duration_us=100)
        .kernel("inside", start_us=10, duration_us=10)
        .kernel("next", start_us=110, duration_us=5)
    )

    assert stream_totals(builder) == [(7, "kernel_wait", 10_000, 1)]


def test_one_kernel_has_no_gap_and_every_category_is_0() -> None:
    """The time before the first kernel is not a gap, so idle times are 0 and fractions are null."""
    result = idle_time(TraceBuilder().kernel("a", start_us=5, duration_us=1, launch_us=1).build())

    assert result.per_stream.rows() == [(0, 0, 7, category, 0, 0, None) for category in CATEGORIES]
    assert result.per_device.rows() == [(0, 0, category, 0, 0, None) for category in CATEGORIES]
    assert result.statistics.rows() == [(0, 0, 7, category, 0, *[None] * 7) for category in CATEGORIES]


def test_the_device_is_idle_only_when_all_its_streams_are() -> None:
    """Stream 7 is idle from 10 to 40 µs, but stream 8 is busy until 30 µs, so the device is idle for 10 µs."""
    trace = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=10, stream=7, launch_us=-9)
        .kernel("b", start_us=10, duration_us=20, stream=8, launch_us=-8)
        .kernel("c", start_us=40, duration_us=10, stream=7, launch_us=36)
        .build()
    )

    result = idle_time(trace)

    assert result.per_stream["idle_ns"].to_list() == [26_000, 4_000, 0, 0, 0, 0]
    assert result.per_device.select("category", "idle_ns").rows() == [
        ("host_wait", 6_000),
        ("kernel_wait", 4_000),
        ("other", 0),
    ]


def test_streams_of_the_same_number_on_two_devices_are_two() -> None:
    """Stream 7 of device 0 is idle for 2 µs, and stream 7 of device 1 for 4 µs."""
    trace = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=1, device=0)
        .kernel("a", start_us=3, duration_us=1, device=0)
        .kernel("a", start_us=0, duration_us=1, device=1)
        .kernel("a", start_us=5, duration_us=1, device=1)
        .build()
    )

    table = idle_time(trace).per_stream.filter(category="kernel_wait")

    assert table.select("device", "stream", "idle_ns").rows() == [(0, 7, 2_000), (1, 7, 4_000)]


def test_kernels_of_a_graph_wait_for_the_device_not_for_the_host() -> None:
    """One cudaGraphLaunch starts three kernels; it precedes the gaps between them, so no idle time is `host_wait`."""
    builder = TraceBuilder().runtime("cudaGraphLaunch", start_us=0, duration_us=5, correlation=9)
    for start in (10, 21, 32):
        builder.kernel("k", start_us=start, duration_us=10, correlation=9)

    assert stream_totals(builder) == [(7, "kernel_wait", 2_000, 2)]


def test_amd_launches_are_known() -> None:
    """A hipLaunchKernel at 30 µs divides a gap from 10 to 40 µs into `host_wait` and `kernel_wait`."""
    builder = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=10, stream=0, launch_us=-3, launch_name="hipLaunchKernel")
        .kernel("b", start_us=40, duration_us=1, stream=0, launch_us=30, launch_name="hipLaunchKernel")
    )

    assert stream_totals(builder) == [(0, "host_wait", 20_000, 1), (0, "kernel_wait", 10_000, 1)]


def test_a_synchronisation_does_not_end_a_gap() -> None:
    """A stream sync in the middle of a gap is not work, so the gap stays one gap."""
    builder = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=10)
        .sync(start_us=20, duration_us=5)
        .kernel("b", start_us=30, duration_us=1)
    )

    assert stream_totals(builder) == [(7, "kernel_wait", 20_000, 1)]


def test_statistics_are_those_of_the_parts() -> None:
    """For waits of 1, 2, 4 and 9 µs, the table has the count, mean, standard deviation, quartiles and extremes."""
    builder, start = TraceBuilder().kernel("k", start_us=0, duration_us=1), 1
    for wait in (1, 4, 2, 9):
        builder.kernel("k", start_us=start + wait, duration_us=1)
        start += wait + 1

    table = idle_time(builder.build()).statistics

    assert table.filter(category="kernel_wait").row(0) == (
        *(0, 0, 7, "kernel_wait", 4, 4_000.0, pytest.approx((38e6 / 3) ** 0.5)),
        *(1_000, 1_750.0, 3_000.0, 5_250.0, 9_000),
    )


def test_ranks_stay_apart_and_a_rank_without_work_is_a_finding() -> None:
    """Ranks 0 and 1 have gaps of 1 and 2 µs; rank 2 has only operators, and a finding says so."""
    builder = TraceBuilder()
    for rank, start in ((1, 3), (0, 2)):
        builder.rank(rank).kernel("k", start_us=0, duration_us=1).kernel("k", start_us=start, duration_us=1)
    builder.rank(2).operator("aten::mm", start_us=0, duration_us=1)

    result = idle_time(builder.build())

    assert result.per_device.filter(category="kernel_wait").select("rank", "idle_ns").rows() == [(0, 1_000), (1, 2_000)]
    assert [finding[:6] for finding in result.findings] == ["rank 2"]


@pytest.mark.parametrize("builder", [TraceBuilder(), TraceBuilder().operator("aten::mm", start_us=0, duration_us=1)])
def test_a_job_without_gpu_work_is_an_error(builder: TraceBuilder) -> None:
    """A trace without events, or with operators only, raises MissingDataError."""
    with pytest.raises(MissingDataError, match=r"^idle_time: rank 0 has no GPU kernels to measure"):
        idle_time(builder.build())


def test_a_negative_threshold_is_refused() -> None:
    """A negative threshold raises an error."""
    with pytest.raises(InvalidOptionError, match="gap_threshold_ns=-1"):
        idle_time(TraceBuilder().kernel("k", start_us=0, duration_us=1).build(), gap_threshold_ns=-1)


works = st.lists(
    st.tuples(st.integers(7, 9), st.integers(0, 60), st.integers(1, 12), st.none() | st.integers(-20, 80)),
    min_size=1,
    max_size=12,
)


@given(works)
def test_the_categories_add_up_to_the_gaps(work: list[tuple[int, int, int, int | None]]) -> None:
    """For random kernels, no category is negative, and the categories add up to the idle time."""
    builder = TraceBuilder()
    for stream, start, duration, launch in work:
        at = None if launch is None else launch / 1000
        builder.kernel("k", stream=stream, start_us=start / 1000, duration_us=duration / 1000, launch_us=at)

    result = idle_time(builder.build(), gap_threshold_ns=10)

    assert result.per_stream["idle_ns"].min() >= 0
    totals = dict(result.per_stream.group_by("stream").agg(pl.col("idle_ns").sum()).rows())
    for stream, total in totals.items():
        pairs = sorted((start, start + duration) for its_stream, start, duration, _ in work if its_stream == stream)
        assert total == sum(gap_lengths(pairs)) == len(holes(pairs))
    assert result.per_device["idle_ns"].sum() == len(holes((start, start + span) for _, start, span, _ in work))
