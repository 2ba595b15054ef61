"""Tests of memory_timeline: allocated memory over time, and the operators that allocated it at the peak."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from holotrace import open_trace
from holotrace.analyses.memory_timeline.compute import memory_timeline
from holotrace.analyses.memory_timeline.tables import memory_at_peak, memory_per_device
from holotrace.testing.builder import TraceBuilder
from recordings import opened

DDP = Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank"
PROCESS = 42


class Job:
    """A trace builder that also writes memory events, on the same thread as the operators."""

    def __init__(self) -> None:
        self.builder = TraceBuilder()

    def operator(self, name: str, start_us: float, duration_us: float) -> Job:
        """Add an operator."""
        times = {"ts": start_us, "dur": duration_us}
        self.builder.event(ph="X", cat="cpu_op", name=name, pid=PROCESS, tid=1, **times)
        return self

    def change(self, time_us: float, size: int, address: int | None, total: int | None = None, device: int = 0) -> Job:
        """Add an allocation, or a free if `size` is negative."""
        args = {"Device Type": 1, "Device Id": device, "Bytes": size, "Addr": address}
        args |= {} if total is None else {"Total Allocated": total, "Total Reserved": 4_096}
        event = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": PROCESS, "tid": 1}
        kept = {key: value for key, value in args.items() if value is not None}
        self.builder.event(**event, ts=time_us, args=kept)
        return self


def peak_job() -> Job:
    """Return a job that starts with 100 B, allocates 60 B in addmm and 55 B outside operators, then frees 60 B."""
    return (
        Job()
        .operator("aten::linear", 0, 10)
        .operator("aten::addmm", 2, 4)
        .change(3, 60, 0x10, 160)
        .change(4, 40, 0x20, 200)
        .change(5, -40, 0x20, 160)
        .change(20, 30, 0x20, 190)
        .change(21, 25, 0x30, 215)
        .change(22, -60, 0x10, 155)
    )


def test_the_peak_and_its_operators() -> None:
    """The peak consists of 100 B from before the recording, 60 B of addmm, and 55 B outside operators."""
    result = memory_timeline(peak_job().builder.build())

    assert result.per_device.rows() == [(0, "cuda", 0, 6, 4, 100, 215, 21_000, 155, 4_096, None)]
    assert result.at_peak.drop("fraction").rows() == [
        (0, "cuda", 0, "(before the recording)", None, None, 100),
        (0, "cuda", 0, "aten::addmm", "aten::linear", 1, 60),
        (0, "cuda", 0, "(outside operators)", None, 2, 55),
    ]
    assert result.at_peak["fraction"].sum() == 1
    assert result.series.row(0) == (0, "cuda", 0, 3_000, 60, 160, 4_096)
    assert result.findings == ()


def test_the_columns_and_their_types() -> None:
    """Empty tables have the same columns and types as tables with rows."""
    full, empty = (memory_timeline(builder.build()) for builder in (peak_job().builder, TraceBuilder()))
    for name in ("per_device", "at_peak", "series"):
        assert getattr(full, name).schema == getattr(empty, name).schema
    assert full.at_peak.schema["fraction"] == pl.Float64


def test_without_memory_events_a_finding_says_why() -> None:
    """Without memory events, the tables are empty, and a finding advises `profile_memory=True`."""
    result = memory_timeline(TraceBuilder().operator("aten::mm", start_us=0, duration_us=1).build())
    assert result.per_device.is_empty()
    assert "record with profile_memory=True" in result.findings[0]


def test_events_without_totals_are_added_up() -> None:
    """Without totals, sizes are added up. The first event frees 10 B, so at least 10 B were allocated before it."""
    result = memory_timeline(Job().change(0, -10, None).change(1, 30, None).builder.build())
    assert result.series["allocated_bytes"].to_list() == [0, 30]
    assert result.per_device.select("first_bytes", "peak_bytes", "peak_reserved_bytes").row(0) == (10, 30, None)
    assert result.at_peak.is_empty()
    assert result.findings == (
        "rank 0: memory events have no totals, so memory allocated before the first event is unknown",
        "rank 0: memory events have no addresses, so the memory in use at the peak is unknown",
    )


def test_events_count_in_the_order_of_their_times() -> None:
    """The file lists a free before its allocation, but events are processed in order of time."""
    result = memory_timeline(Job().change(5, -8, 1, 0).change(1, 8, 1, 8).builder.build())
    assert result.series["allocated_bytes"].to_list() == [8, 0]
    assert result.at_peak["bytes"].to_list() == [8]


def test_devices_have_their_own_memory() -> None:
    """The same address on two devices refers to two different blocks of memory."""
    result = memory_timeline(Job().change(0, 5, 1, 5).change(1, 7, 1, 7, device=1).builder.build())
    assert result.per_device.select("device", "peak_bytes").rows() == [(0, 5), (1, 7)]
    assert result.at_peak.select("device", "bytes").rows() == [(0, 5), (1, 7)]


@pytest.mark.parametrize("number", [1, 6, 12])
def test_a_device_has_the_capacity_listed_for_its_id(number: int) -> None:
    """A CUDA, HIP or XPU device gets the capacity listed for its id; the host (id -1) gets none."""
    properties = [{"id": 0, "totalGlobalMem": 1_000}, {"id": 1, "totalGlobalMem": 2_000}]
    builder = TraceBuilder().header(deviceProperties=properties)
    for device in ((0, -1), (number, 1)):
        args = {"Device Type": device[0], "Device Id": device[1], "Bytes": 8, "Addr": 1}
        builder.event(ph="i", s="t", cat="cpu_instant_event", name="[memory]", pid=PROCESS, tid=1, ts=1, args=args)

    result = memory_timeline(builder.build())

    assert result.per_device["capacity_bytes"].to_list() == [None, 2_000]


def test_the_gpu_of_a_real_amd_trace(real_traces) -> None:
    """The memory events of an MI300X have device type 6; the device has 191 GiB of memory."""
    per_device = memory_timeline(opened(real_traces / "models/mi300_bert.json.gz")).per_device
    assert per_device.select("device_type", "device", "capacity_bytes").rows() == [
        ("cpu", -1, None),
        ("cuda", 0, 205_571_227_648),
    ]


def test_memory_from_before_the_recording_matches_the_file(real_traces) -> None:
    """Of the memory at the peak, the part allocated before the recording equals `first_bytes`."""
    result = memory_timeline(opened(real_traces / "single_v100"))
    before = result.at_peak.filter(pl.col("operator") == "(before the recording)")
    assert before["bytes"].to_list() == [4_096_614_400]
    assert result.per_device.filter(device_type="cuda")["first_bytes"].to_list() == [4_096_614_400]


def test_the_tables_equal_their_golden_copies(golden) -> None:
    """Both tables of the example job of four CPU ranks equal their golden copies."""
    result = memory_timeline(open_trace(DDP, cache=False))
    golden.check(result.per_device, "memory_timeline/ddp_gloo_4rank.per_device")
    golden.check(result.at_peak, "memory_timeline/ddp_gloo_4rank.at_peak")


def test_a_gpu_comes_before_the_host() -> None:
    """More memory is allocated on the host than on the GPU, but the answer and the tables start with the GPU."""
    job = peak_job()
    args = {"Device Type": 0, "Device Id": -1, "Bytes": 9_000, "Addr": 1, "Total Allocated": 9_000}
    job.builder.event(ph="i", s="t", cat="cpu_instant_event", name="[memory]", pid=PROCESS, tid=1, ts=30, args=args)
    result = memory_timeline(job.builder.build())

    assert result.answer.startswith("Memory peaks at 215 B on rank 0 (cuda)")
    assert memory_per_device(result)["device_type"].to_list() == ["cuda", "cpu"]
    assert memory_at_peak(result)["device_type"].to_list()[-1] == "cpu"
