"""Tests of queue_length: the amount of launched work that waits in the queue of each stream."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.analyses.queue_length.compute import queue_length
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.testing.builder import TraceBuilder

STREAM = {"rank": pl.Int32, "device": pl.Int32, "stream": pl.Int64}


def changes(builder: TraceBuilder) -> list[tuple[int, int, int]]:
    """Return the stream, the time (µs) and the queue length after every change."""
    series = queue_length(builder.build()).series
    return series.select("stream", pl.col("time_ns") // 1_000, "queue_length").rows()


def three_kernels() -> TraceBuilder:
    """Return three kernels launched at 0, 2 and 4 µs that start at 10, 20 and 30 µs."""
    builder = TraceBuilder()
    for launch, start in ((0, 10), (2, 20), (4, 30)):
        builder.kernel("k", start_us=start, duration_us=10, launch_us=launch)
    return builder


def test_work_waits_from_its_launch_to_its_start() -> None:
    """Three launches raise the queue length to 3; then each start of a kernel lowers it by 1."""
    assert changes(three_kernels()) == [(7, 0, 1), (7, 2, 2), (7, 4, 3), (7, 10, 2), (7, 20, 1), (7, 30, 0)]


def test_lengths_count_as_long_as_they_last() -> None:
    """Lengths of 1 for 12 µs, 2 for 12 µs and 3 for 6 µs have the mean 1.8; HTA's mean over the six changes is 1.5."""
    result = queue_length(three_kernels().build(), full_length=3)

    assert result.time_weighted.to_dicts() == [
        {
            "rank": 0,
            "device": 0,
            "stream": 7,
            "work_count": 3,
            "unknown_launch_count": 0,
            "early_start_count": 0,
            "window_ns": 30_000,
            "waiting_fraction": 1.0,
            "mean_length": pytest.approx(1.8),
            "std_length": pytest.approx(0.56**0.5),
            "p25_length": 1,
            "median_length": 2,
            "p75_length": 2,
            "max_length": 3,
            "full_ns": 6_000,
            "full_fraction": 0.2,
        }
    ]
    assert result.change_weighted.select("change_count", "mean_length", "min_length", "max_length").rows() == [
        (6, 1.5, 0, 3)
    ]
    assert result.findings == ()


def test_the_columns_and_their_types() -> None:
    """The tables' column names, order and types are part of the API."""
    result = queue_length(three_kernels().build())
    quartiles = ("p25_length", "median_length", "p75_length")

    assert result.series.schema == {
        **STREAM,
        "time_ns": pl.Int64,
        "event_index": pl.UInt32,
        "work_index": pl.UInt32,
        "queue_length": pl.Int64,
    }
    assert result.time_weighted.schema == {
        **STREAM,
        **dict.fromkeys(("work_count", "unknown_launch_count", "early_start_count", "window_ns"), pl.Int64),
        **dict.fromkeys(("waiting_fraction", "mean_length", "std_length"), pl.Float64),
        **dict.fromkeys(quartiles, pl.Float64),
        **dict.fromkeys(("max_length", "full_ns"), pl.Int64),
        "full_fraction": pl.Float64,
    }
    assert result.change_weighted.schema == {
        **STREAM,
        "change_count": pl.Int64,
        **dict.fromkeys(("mean_length", "std_length"), pl.Float64),
        "min_length": pl.Int64,
        **dict.fromkeys(quartiles, pl.Float64),
        "max_length": pl.Int64,
    }


def test_work_that_seems_to_begin_before_its_launch_does_not_wait() -> None:
    """A kernel that starts before its launch enters and at once leaves the queue at the launch; HTA would count -1."""
    builder = TraceBuilder().kernel("k", start_us=5, duration_us=9, launch_us=8)

    assert changes(builder) == [(7, 8, 1), (7, 8, 0)]
    row = queue_length(builder.build()).time_weighted.row(0, named=True)
    assert (row["early_start_count"], row["window_ns"], row["max_length"], row["full_ns"]) == (1, 0, None, 0)


def test_at_equal_times_work_leaves_before_other_work_enters() -> None:
    """A kernel starts at the time when the next is launched: the length first falls to 0 and then rises to 1."""
    builder = (
        TraceBuilder()
        .kernel("a", start_us=10, duration_us=1, launch_us=0)
        .kernel("b", start_us=20, duration_us=1, launch_us=10)
    )

    assert changes(builder) == [(7, 0, 1), (7, 10, 0), (7, 10, 1), (7, 20, 0)]


def test_every_kernel_of_a_graph_waits_from_the_launch_of_the_graph() -> None:
    """One cudaGraphLaunch adds three kernels to the queue; HTA raises an AssertionError."""
    builder = TraceBuilder().runtime("cudaGraphLaunch", start_us=0, duration_us=5, correlation=9)
    for start in (10, 21, 32):
        builder.kernel("k", start_us=start, duration_us=10, correlation=9)

    assert [length for _, _, length in changes(builder)] == [1, 2, 3, 2, 1, 0]


def test_every_stream_of_every_device_has_its_own_queue() -> None:
    """Streams 7 and 20 on two devices are four queues."""
    builder = TraceBuilder()
    for device in (0, 1):
        for stream in (7, 20):
            builder.kernel("k", start_us=5, duration_us=1, launch_us=0, device=device, stream=stream)

    table = queue_length(builder.build()).time_weighted
    assert table.select("device", "stream", "max_length").rows() == [(0, 7, 1), (0, 20, 1), (1, 7, 1), (1, 20, 1)]


def test_work_without_a_known_launch_is_counted_but_not_queued() -> None:
    """If no launch of a stream was recorded, the stream has a row with null queue lengths."""
    result = queue_length(TraceBuilder().kernel("k", start_us=0, duration_us=1).build())

    assert result.series.is_empty()
    assert result.change_weighted.is_empty()
    assert result.time_weighted.row(0) == (0, 0, 7, 1, 1, 0, 0, *[None] * 7, 0, None)


def test_copies_and_memsets_wait_too() -> None:
    """Like a kernel, a copy launched at 1 µs waits in the queue until it starts at 10 µs."""
    builder = TraceBuilder().copy("Memcpy HtoD", start_us=10, duration_us=5, launch_us=1, stream=7)

    assert changes(builder) == [(7, 1, 1), (7, 10, 0)]


def test_ranks_stay_apart_and_a_rank_without_work_is_a_finding() -> None:
    """Ranks 0 and 1 have windows of 5 and 4 µs; rank 2 has only operators, and a finding says so."""
    builder = TraceBuilder()
    for rank in (1, 0):
        builder.rank(rank).kernel("k", start_us=5, duration_us=1, launch_us=rank)
    builder.rank(2).operator("aten::mm", start_us=0, duration_us=1)

    result = queue_length(builder.build())

    assert result.time_weighted.select("rank", "window_ns").rows() == [(0, 5_000), (1, 4_000)]
    assert [finding[:6] for finding in result.findings] == ["rank 2"]


@pytest.mark.parametrize("builder", [TraceBuilder(), TraceBuilder().operator("aten::mm", start_us=0, duration_us=1)])
def test_a_job_without_gpu_work_is_an_error(builder: TraceBuilder) -> None:
    """A trace without events, or with operators only, raises MissingDataError."""
    with pytest.raises(MissingDataError, match=r"^queue_length: rank 0 has no GPU kernels to measure"):
        queue_length(builder.build())


def test_a_queue_that_is_full_when_empty_is_refused() -> None:
    """With `full_length=0`, even an empty queue would be full, so an error is raised."""
    with pytest.raises(InvalidOptionError, match="full_length=0"):
        queue_length(three_kernels().build(), full_length=0)


works = st.lists(st.tuples(st.integers(7, 8), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=12)


@given(works)
def test_the_queue_always_holds_the_work_launched_and_not_begun(work: list[tuple[int, int, int]]) -> None:
    """For random kernels, the length after each change is the number of kernels launched but not started."""
    builder = TraceBuilder()
    for stream, launch, start in work:
        builder.kernel("k", stream=stream, start_us=start / 1_000, duration_us=1, launch_us=launch / 1_000)

    series = queue_length(builder.build()).series

    assert series["queue_length"].min() >= 0
    for stream in {stream for stream, _, _ in work}:
        after = dict(series.filter(stream=stream).select("time_ns", "queue_length").rows())
        for time, length in after.items():
            waiting = [own for own, launch, start in work if own == stream and launch <= time < start]
            assert length == len(waiting)
