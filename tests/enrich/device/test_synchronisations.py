"""Tests of synchronisations: event records, and waits of streams and of the host."""

from __future__ import annotations

import pytest

from holotrace.enrich.device.synchronisations import (
    event_records,
    has_recorded_waits,
    host_synchronisations,
    stream_waits,
)
from holotrace.testing.builder import TraceBuilder
from recordings import opened


def only_rank(builder: TraceBuilder):
    """Build the trace and return its one rank."""
    (rank_trace,) = builder.build().ranks.values()
    return rank_trace


def two_streams() -> TraceBuilder:
    """Return a trace in which stream 20 waits for a CUDA event that the host records on stream 7 at 3 µs.

    The tests use row 1 (the kernel before the record), row 2 (the record), row 5 (the call that waits), row 7 (the
    kernel that waits) and row 8 (the wait).
    """
    return (
        TraceBuilder()
        .kernel("producer", start_us=10, duration_us=20, stream=7, launch_us=0)
        .runtime("cudaEventRecord", start_us=3, duration_us=1, correlation=50)
        .kernel("later", start_us=30, duration_us=5, stream=7, launch_us=4)
        .runtime("cudaStreamWaitEvent", start_us=6, duration_us=1, correlation=51)
        .kernel("consumer", start_us=31, duration_us=20, stream=20, launch_us=8)
        .sync(
            "Stream Wait Event",
            start_us=6,
            duration_us=1,
            stream=20,
            correlation=51,
            args={"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 50},
        )
    )


def test_a_stream_waits_for_work_launched_before_the_record() -> None:
    """The next kernel of stream 20 waits for the kernel in row 1, not for the one launched after the event record."""
    assert stream_waits(only_rank(two_streams())).to_dicts() == [
        {
            "event_index": 8,
            "call_index": 5,
            "device": 0,
            "stream": 20,
            "waited_stream": 7,
            "record_index": 2,
            "source_index": 1,
            "target_index": 7,
        }
    ]


def test_without_a_record_the_stream_waits_for_work_launched_before_the_call() -> None:
    """Older profilers write no event records; the stream is assumed to wait for all work launched before the call."""
    builder = (
        TraceBuilder()
        .kernel("producer", start_us=10, duration_us=20, stream=7, launch_us=0)
        .runtime("cudaStreamWaitEvent", start_us=6, duration_us=1, correlation=51)
        .sync("Stream Wait Event", start_us=6, duration_us=1, stream=20, correlation=51, args={"wait_on_stream": 7})
    )

    (row,) = stream_waits(only_rank(builder)).to_dicts()

    assert (row["record_index"], row["source_index"], row["target_index"]) == (None, 1, None)


def test_a_record_knows_its_stream_from_the_wait_for_it() -> None:
    """The stream of the record at 3 µs is known from the wait that refers to this record.

    No wait refers to the record at 20 µs, so the stream of this record is null.
    """
    builder = two_streams().runtime("hipEventRecord", start_us=20, duration_us=1, correlation=60)

    assert event_records(only_rank(builder)).rows() == [
        (2, 3_000, 50, 0, 7, 1),
        (9, 20_000, 60, None, None, None),
    ]


def test_a_record_knows_its_stream_from_the_row_of_the_event() -> None:
    """Profilers since 2025 write a device row for each record; the row gives the record's stream."""
    builder = (
        TraceBuilder()
        .kernel("gemm", start_us=10, duration_us=20, stream=7, launch_us=0)
        .runtime("someRecordCall", start_us=3, duration_us=1, correlation=50)
        .event(
            ph="X",
            cat="cuda_event",
            name="cudaEvent",
            pid=0,
            tid=7,
            ts=30,
            dur=0.001,
            args={"event_id": 4, "stream": 7, "correlation": 50, "device": 0},
        )
    )

    assert event_records(only_rank(builder)).rows() == [(2, 3_000, 50, 0, 7, 1)]


def waits_of(builder: TraceBuilder) -> list[tuple[int | str | None, ...]]:
    """Return the host synchronisations: indexes of call and wait, scope, stream, and indexes of record and source."""
    table = host_synchronisations(only_rank(builder))
    return table.select("event_index", "sync_index", "scope", "stream", "record_index", "source_index").rows()


def test_the_host_waits_for_the_last_work_of_its_stream() -> None:
    """A wait for stream 7 depends on the last of the stream's two kernels, not on the kernel of stream 20."""
    builder = (
        TraceBuilder()
        .kernel("first", start_us=10, duration_us=2, stream=7, launch_us=0)
        .kernel("last", start_us=12, duration_us=8, stream=7, launch_us=2)
        .kernel("other", start_us=12, duration_us=30, stream=20, launch_us=4)
        .runtime("cudaStreamSynchronize", start_us=6, duration_us=15, correlation=9)
        .sync("Stream Sync", start_us=6, duration_us=15, stream=7, correlation=9)
    )

    assert waits_of(builder) == [(6, 7, "stream", 7, None, 3)]


@pytest.mark.parametrize("row", [7, None])
def test_a_device_wait_covers_all_streams(row: int | None) -> None:
    """A device wait depends on the last work launched on each stream before it.

    This holds even if the profiler recorded only the runtime call, without a synchronisation event for it.
    """
    builder = (
        TraceBuilder()
        .kernel("a", start_us=10, duration_us=2, stream=7, launch_us=0)
        .kernel("b", start_us=12, duration_us=8, stream=20, launch_us=2)
        .runtime("hipDeviceSynchronize", start_us=6, duration_us=15, correlation=9)
        .kernel("c", start_us=30, duration_us=8, stream=20, launch_us=25)
    )
    if row is not None:
        builder.sync("Context Sync", start_us=6, duration_us=15, stream=-1, correlation=9)

    assert waits_of(builder) == [(4, row, "device", 7, None, 1), (4, row, "device", 20, None, 3)]


def test_the_host_waits_for_an_event_up_to_its_record() -> None:
    """The wait depends on the kernel launched before the event record, not on the kernel launched after it."""
    builder = (
        TraceBuilder()
        .kernel("before", start_us=10, duration_us=20, stream=7, launch_us=0)
        .runtime("cudaEventRecord", start_us=3, duration_us=1, correlation=50)
        .kernel("after", start_us=30, duration_us=5, stream=7, launch_us=4)
        .runtime("cudaEventSynchronize", start_us=6, duration_us=25, correlation=51)
        .sync(
            "Event Sync",
            start_us=6,
            duration_us=25,
            stream=-1,
            correlation=51,
            args={"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 50},
        )
    )

    assert waits_of(builder) == [(5, 6, "event", 7, 2, 1)]


def test_without_rows_the_stream_is_inferred_from_work_that_ended_before_the_call() -> None:
    """Stream 20 is still busy when the call returns at 21 µs, so the call must have waited for stream 7."""
    builder = (
        TraceBuilder()
        .kernel("waited for", start_us=10, duration_us=10, stream=7, launch_us=0)
        .kernel("runs on", start_us=12, duration_us=30, stream=20, launch_us=4)
        .runtime("cudaStreamSynchronize", start_us=6, duration_us=15)
    )

    assert waits_of(builder) == [(4, None, "stream", 7, None, 1)]


def test_a_wait_with_nothing_launched_before_has_no_source() -> None:
    """If no work was launched before a cudaDeviceSynchronize, its row has a null source."""
    assert waits_of(TraceBuilder().runtime("cudaDeviceSynchronize", start_us=6, duration_us=15)) == [
        (0, None, "device", None, None, None)
    ]


def test_a_copy_that_ends_within_its_call_blocked_it() -> None:
    """If a copy ends before its call returns, the copy blocked the call; a kernel never blocks its call."""
    builder = (
        TraceBuilder()
        .copy(start_us=4, duration_us=10, launch_us=2, launch_duration_us=1)
        .copy(start_us=22, duration_us=10, launch_us=20, launch_duration_us=13)
        .kernel("gemm", start_us=42, duration_us=1, launch_us=40, launch_duration_us=10)
    )

    assert waits_of(builder) == [(2, None, "copy", 7, None, 3)]


def test_only_rows_of_the_profiler_count_as_recorded_waits() -> None:
    """A call named cudaDeviceSynchronize is not a recorded wait if the profiler wrote no row for the wait."""
    assert has_recorded_waits(only_rank(two_streams()))
    assert not has_recorded_waits(only_rank(TraceBuilder().runtime("cudaDeviceSynchronize", start_us=6, duration_us=1)))


def test_a_trace_without_calls_has_empty_tables_of_the_same_types() -> None:
    """Without calls, all three tables are empty and keep their column types."""
    empty, full = only_rank(TraceBuilder()), only_rank(two_streams())
    for table in (event_records, stream_waits, host_synchronisations):
        assert table(empty).is_empty()
        assert table(empty).schema == table(full).schema


def test_waits_of_a_real_trace_are_linked(real_traces) -> None:
    """In the recording `event_sync`, both event waits refer to the same `cudaEventRecord`; all host waits have a source."""
    (rank_trace,) = opened(real_traces / "critical_path" / "event_sync").ranks.values()
    table = host_synchronisations(rank_trace)

    assert table["scope"].sort().to_list() == ["copy", "device", "event", "event", "stream"]
    assert table["source_index"].null_count() == 0
    assert table.filter(table["scope"] == "event")["record_index"].n_unique() == 1
