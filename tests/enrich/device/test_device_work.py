"""Tests of device work: kernels, copies and memsets."""

from __future__ import annotations

import pickle

import polars as pl

from holotrace.enrich.device.device_work import (
    by_device,
    device_work,
    no_device_work,
)
from holotrace.errors import MissingDataError
from holotrace.schema import KernelKind
from holotrace.testing.builder import TraceBuilder


def only_rank(builder: TraceBuilder):
    """Build the trace and return its only rank."""
    (rank_trace,) = builder.build().ranks.values()
    return rank_trace


def test_work_is_sorted_by_start_with_its_columns_and_types() -> None:
    """The copy is listed first because it starts first, although the kernel is first in the file."""
    rank_trace = only_rank(
        TraceBuilder()
        .kernel("gemm", start_us=10, duration_us=5.5, stream=7, device=1, correlation=42)
        .copy("Memcpy HtoD", start_us=2, duration_us=3, stream=8, device=0)
    )

    work = device_work(rank_trace)

    assert work.schema == {
        "event_index": pl.UInt32,
        "start_ns": pl.Int64,
        "end_ns": pl.Int64,
        "name": pl.UInt32,
        "kernel_kind": pl.UInt8,
        "device": pl.Int32,
        "stream": pl.Int64,
        "correlation": pl.Int64,
    }
    assert work.drop("name").rows() == [
        (1, 2_000, 5_000, KernelKind.MEMORY, 0, 8, -1),
        (0, 10_000, 15_500, KernelKind.COMPUTATION, 1, 7, 42),
    ]
    assert rank_trace.texts(work["name"]).to_list() == ["Memcpy HtoD", "gemm"]


def test_waits_markers_annotations_and_host_rows_are_not_work() -> None:
    """Synchronisations, GPU annotations, CUDA events, and host operators with a stream are not device work."""
    rank_trace = only_rank(
        TraceBuilder()
        .sync("Stream Sync", start_us=0, duration_us=9, stream=7)
        .sync("Context Sync", start_us=0, duration_us=9, stream=4294967295)
        .gpu_annotation("ProfilerStep#1", start_us=0, duration_us=9)
        .operator("triton_poi_fused_add_0", start_us=0, duration_us=9, args={"stream": 0})
        .runtime("cudaLaunchKernel", start_us=0, duration_us=1, correlation=3)
        .event(ph="X", cat="cuda_event", name="cudaEvent", pid=0, tid=7, ts=1, dur=0.001, args={"stream": 7})
        .kernel("gemm", start_us=4, duration_us=1)
    )

    work = device_work(rank_trace)

    assert rank_trace.texts(work["name"]).to_list() == ["gemm"]


def test_mtia_programs_are_work_and_waits_are_not() -> None:
    """Rows named event_wait and event_record in an MTIA queue are excluded."""
    builder = TraceBuilder()
    for place, name in enumerate(["event_wait", "merge", "event_record", "dma_request", "pe_exe"]):
        builder.event(ph="X", cat="mtia_ccp_events", name=name, pid=17, tid=3774, ts=place, dur=1, args={"stream": 108})
    rank_trace = only_rank(builder)

    work = device_work(rank_trace)

    assert rank_trace.texts(work["name"]).to_list() == ["merge", "dma_request", "pe_exe"]
    assert work["kernel_kind"].to_list() == [KernelKind.COMPUTATION, KernelKind.MEMORY, KernelKind.OTHER]
    assert work.select("device", "stream").unique().rows() == [(17, 108)]


def test_amd_work_on_stream_0_counts() -> None:
    """Work on stream 0, the default stream of ROCm, is included."""
    rank_trace = only_rank(TraceBuilder().kernel("Cijk_Alik", start_us=0, duration_us=2, stream=0))

    assert device_work(rank_trace)["stream"].to_list() == [0]


def test_a_selection_of_events_selects_the_work() -> None:
    """`where` filters device work."""
    trace = TraceBuilder().kernel("a", start_us=0, duration_us=1).kernel("b", start_us=5, duration_us=1).build()
    late = trace.where(lambda rank_trace: rank_trace.table("events")["start_ns"].to_numpy() >= 5_000)

    assert device_work(late.ranks[0])["start_ns"].to_list() == [5_000]


def test_without_device_rows_the_table_is_empty_but_typed() -> None:
    """For a rank with only operators, the table is empty but has the usual columns and types."""
    work = device_work(only_rank(TraceBuilder().operator("aten::mm", start_us=0, duration_us=1)))

    assert work.height == 0
    assert work["kernel_kind"].dtype == pl.UInt8


def test_work_divides_by_device() -> None:
    """`by_device` returns the devices in order, each with its rows."""
    work = device_work(
        only_rank(
            TraceBuilder()
            .kernel("gemm", start_us=0, duration_us=1, device=2)
            .kernel("ncclDevKernel", start_us=1, duration_us=1, device=0)
            .kernel("gemm", start_us=2, duration_us=1, device=0)
        )
    )

    assert [(device, part.height) for device, part in by_device(work)] == [(0, 2), (2, 1)]


def test_a_rank_without_device_work_is_an_error_with_a_finding() -> None:
    """The error and its finding state the rank, its file and its number of events; both survive pickling."""
    rank_trace = only_rank(TraceBuilder().rank(3).operator("aten::mm", start_us=0, duration_us=1))

    error = pickle.loads(pickle.dumps(no_device_work(rank_trace, "idle_time")))  # noqa: S301 -- our own

    assert isinstance(error, MissingDataError)
    assert str(error).startswith("idle_time: rank 3 has no GPU kernels to measure (")
    assert "1 CPU events, 0 GPU events" in str(error)
    assert (
        error.finding == f"rank 3 has no GPU kernels ({rank_trace.source}: 1 CPU events), so the result leaves it out"
    )
