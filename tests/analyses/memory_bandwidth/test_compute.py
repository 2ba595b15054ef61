"""Tests of memory_bandwidth: how fast data moves to, from and within devices."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.analyses.memory_bandwidth.compute import copy_kind, memory_bandwidth
from holotrace.errors import MissingDataError
from holotrace.testing.builder import TraceBuilder

LINK = {"rank": pl.Int32, "device": pl.Int32, "name": pl.String}
BANDWIDTH = "memory bandwidth (GB/s)"


def copied(builder: TraceBuilder, start: float, duration: float, gb_per_s: float | None, **options) -> TraceBuilder:
    """Add a copy from the host to the device with the given bandwidth."""
    return builder.copy("Memcpy HtoD", start_us=start, duration_us=duration, args={BANDWIDTH: gb_per_s}, **options)


def two_copies() -> TraceBuilder:
    """Return copies at 0.1 GB/s from 0 to 10 µs and at 0.2 GB/s from 5 to 20 µs."""
    return copied(copied(TraceBuilder(), 0, 10, 0.1), 5, 15, 0.2)


def changes(builder: TraceBuilder) -> list[tuple[int, int, int]]:
    """Return the time (µs), the number of running copies and the bandwidth (bytes/s) after each change."""
    series = memory_bandwidth(builder.build()).series
    return series.select(pl.col("time_ns") // 1_000, "active_count", "bytes_per_s").rows()


def test_the_bandwidths_of_copies_that_run_at_once_add_up() -> None:
    """Bandwidths add up exactly and return to 0; with doubles, 0.1 + 0.2 - 0.1 - 0.2 would be 2.8e-17."""
    assert changes(two_copies()) == [(0, 1, 10**8), (5, 2, 3 * 10**8), (10, 1, 2 * 10**8), (20, 0, 0)]


def test_bandwidths_count_as_long_as_they_last() -> None:
    """The mean of 0.1 GB/s for 5 µs, 0.3 GB/s for 5 µs and 0.2 GB/s for 10 µs is weighted by time: 0.2 GB/s."""
    builder = two_copies()
    result = memory_bandwidth(builder.build())

    row = result.time_weighted.row(0, named=True)
    assert row == {
        "rank": 0,
        "device": 0,
        "name": "Memcpy HtoD",
        "copy_count": 2,
        "bytes": 8_192,
        "busy_ns": 20_000,
        "mean_bytes_per_s": pytest.approx(2e8),
        "std_bytes_per_s": pytest.approx(0.5**0.5 * 1e8),
        "min_bytes_per_s": 10**8,
        "p25_bytes_per_s": 10**8,
        "median_bytes_per_s": 2 * 10**8,
        "p75_bytes_per_s": 2 * 10**8,
        "max_bytes_per_s": 3 * 10**8,
    }
    assert result.change_weighted.select("change_count", "mean_bytes_per_s").rows() == [(3, pytest.approx(2e8))]


def test_the_columns_and_their_types() -> None:
    """The tables' column names, order and types are part of the API."""
    result = memory_bandwidth(two_copies().build())
    names = [f"{name}_bytes_per_s" for name in ("mean", "std", "min", "p25", "median", "p75", "max")]

    whole = dict.fromkeys(("active_count", "bytes_per_s"), pl.Int64)
    assert result.series.schema == {**LINK, "time_ns": pl.Int64, "event_index": pl.UInt32, **whole}
    floats = {name for name in names if name[:3] not in {"min", "max"}}
    statistics = {name: pl.Float64 if name in floats else pl.Int64 for name in names}
    counts = dict.fromkeys(("copy_count", "bytes", "busy_ns"), pl.Int64)
    assert result.time_weighted.schema == {**LINK, **counts, **statistics}
    assert result.change_weighted.schema == {**LINK, "change_count": pl.Int64, **statistics}


def test_copies_that_touch_do_not_overlap() -> None:
    """The second copy begins when the first ends, so the bandwidth falls to 0 before it rises again."""
    assert changes(copied(copied(TraceBuilder(), 0, 10, 1), 10, 10, 1))[1:3] == [(10, 0, 0), (10, 1, 10**9)]


def test_a_copy_of_0_us_counts_as_one_microsecond() -> None:
    """Old files round durations to whole microseconds, so a copy of 0 µs is treated as a copy of 1 µs."""
    assert changes(copied(TraceBuilder(), 3, 0, 1)) == [(3, 1, 10**9), (4, 0, 0)]


def test_without_a_bandwidth_it_is_size_over_duration() -> None:
    """If no bandwidth was recorded, size / duration is used: 2.5 GB/s for 5,000 bytes in 2 µs; HTA would use 0."""
    builder = TraceBuilder().copy("Memcpy DtoH", start_us=0, duration_us=2, args={BANDWIDTH: None, "bytes": 5_000})
    assert changes(builder) == [(0, 1, 2_500_000_000), (2, 0, 0)]
    assert memory_bandwidth(builder.build()).time_weighted.select("name", "bytes").row(0) == ("Memcpy DtoH", 5_000)


@pytest.mark.parametrize("byte_count", [10**10, 10**15])
def test_large_copies_have_their_bandwidth(byte_count) -> None:
    """The bandwidth of copies of 10¹⁰ and 10¹⁵ bytes is exact, although bytes times 10⁹ exceeds 64 bits."""
    builder = TraceBuilder().copy(byte_count=byte_count, start_us=0, duration_us=1_000_000)
    assert memory_bandwidth(builder.build()).time_weighted["max_bytes_per_s"].to_list() == [byte_count]


def test_size_over_duration_replaces_an_impossible_bandwidth() -> None:
    """The recorded bandwidth of 1e300 GB/s is impossible, so the size divided by the duration is used."""
    assert changes(copied(TraceBuilder(), 0, 10, 1e300)) == [(0, 1, 409_600_000), (10, 0, 0)]


def test_a_copy_without_size_and_bandwidth_counts_0() -> None:
    """A copy with neither a size nor a bandwidth is counted; its bandwidth is 0 bytes/s, and its bytes are null."""
    builder = TraceBuilder().copy("Memcpy DtoH", start_us=0, duration_us=2, args={BANDWIDTH: None, "bytes": None})
    row = memory_bandwidth(builder.build()).time_weighted.row(0, named=True)
    assert (row["copy_count"], row["bytes"], row["busy_ns"], row["max_bytes_per_s"]) == (1, None, 2_000, 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"),
        ("Memcpy PtoP (Device -> Device)", "Memcpy PtoP"),
        ("Memset (Device)", "Memset"),
        ("hipMemcpy DtoH", "Memcpy DtoH"),
        ("CopyHostToDevice", "Memcpy HtoD"),
        ("CopyDeviceToDevice", "Memcpy DtoD"),
        ("FillBuffer", "Memset"),
        ("dma_request", "Memcpy Unknown"),
    ],
)
def test_the_kind_of_a_copy_is_in_its_name(name: str, kind: str) -> None:
    """The names of copies in CUDA, ROCm and MTIA map to the same kinds."""
    assert copy_kind(name) == kind


def test_devices_stay_apart() -> None:
    """The bandwidths of simultaneous copies to two devices are not added up: the maximum of each device is 1 GB/s."""
    builder = copied(copied(TraceBuilder(), 0, 10, 1, device=0), 0, 10, 1, device=1)
    table = memory_bandwidth(builder.build()).time_weighted
    assert table.select("device", "max_bytes_per_s").rows() == [(0, 10**9), (1, 10**9)]


def test_nothing_copied_is_an_empty_table() -> None:
    """For a job without copies, the tables are empty, and no error is raised."""
    result = memory_bandwidth(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build())
    assert (len(result.series), len(result.time_weighted), len(result.change_weighted)) == (0, 0, 0)


def test_a_rank_without_work_is_a_finding() -> None:
    """Rank 1 has operators but no GPU work, and a finding reports this."""
    builder = two_copies().rank(1).operator("aten::mm", start_us=0, duration_us=1)
    assert [finding[:6] for finding in memory_bandwidth(builder.build()).findings] == ["rank 1"]


@pytest.mark.parametrize("builder", [TraceBuilder(), TraceBuilder().operator("aten::mm", start_us=0, duration_us=1)])
def test_a_job_without_gpu_work_is_an_error(builder: TraceBuilder) -> None:
    """A trace without events, or with operators only, raises MissingDataError."""
    with pytest.raises(MissingDataError, match=r"^memory_bandwidth: rank 0 has no GPU kernels to measure"):
        memory_bandwidth(builder.build())


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.floats(0.001, 5)), min_size=1, max_size=10))
def test_bandwidth_is_always_the_sum_over_running_copies(copies: list[tuple[int, int, float]]) -> None:
    """For random copies, the bandwidth after each change is the sum over the running copies."""
    builder = TraceBuilder()
    for start, duration, bandwidth in copies:
        copied(builder, start / 1_000, duration / 1_000, bandwidth)

    series = memory_bandwidth(builder.build()).series

    for moment, total in dict(series.select("time_ns", "bytes_per_s").rows()).items():
        running = [bandwidth for start, duration, bandwidth in copies if start <= moment < start + duration]
        assert total == sum(round(bandwidth * 1e9) for bandwidth in running)


def test_the_answer_has_the_mean_of_the_table() -> None:
    """Two simultaneous copies at 10 GB/s give 20 GB/s, both in the table and in the answer."""
    builder = TraceBuilder()
    for stream in (7, 8):
        args = {"bytes": 1_000_000, "memory bandwidth (GB/s)": 10}
        builder.event(
            ph="X",
            cat="gpu_memcpy",
            name="Memcpy HtoD",
            pid=0,
            tid=stream,
            ts=0,
            dur=100,
            args={**args, "device": 0, "stream": stream},
        )
    result = memory_bandwidth(builder.build())

    assert result.time_weighted["mean_bytes_per_s"].to_list() == [20e9]
    assert result.answer.startswith("Memcpy HtoD moves 1.91 MiB, more than any other kind of copy, at 20 GB/s")
