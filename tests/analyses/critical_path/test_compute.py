"""Tests of critical_path: it finds known paths exactly, and every path covers its whole window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.graphs.longest_path import earliest_times
from holotrace.analyses.critical_path.compute import critical_path
from holotrace.enrich.critical_path.path_graph import PathGraph, critical_path_graph
from holotrace.errors import HolotraceError, InvalidOptionError, MissingDataError, NotATraceError
from holotrace.ingest.open_trace import open_trace
from holotrace.schema import DEVICE_WORK_KINDS, EventKind
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.strategies import trace_documents
from recordings import opened

Segment = tuple[str, str, float, float]


def path_of(builder: TraceBuilder, **options) -> list[Segment]:
    """Return the class, name, start (µs) and end (µs) of each segment of the path."""
    path = critical_path(builder.build(), **options).path
    microseconds = pl.col("start_ns", "end_ns") / 1_000
    return path.select("path_class", "name", microseconds).rows()


def test_a_host_that_is_busy_bounds_the_step() -> None:
    """The only kernel ends at 35 µs, but host operators run until 95 µs, so the path stays on the host."""
    builder = (
        TraceBuilder()
        .step(1, 0, 100)
        .operator("aten::mm", start_us=10, duration_us=30)
        .operator("aten::relu", start_us=50, duration_us=45)
        .kernel("gemm", start_us=30, duration_us=5, launch_us=20, launch_duration_us=4)
    )

    assert path_of(builder) == [
        ("host_gap", "host gap", 0, 10),
        ("cpu_operator", "aten::mm", 10, 20),
        ("cpu_operator", "cudaLaunchKernel", 20, 24),
        ("cpu_operator", "aten::mm", 24, 40),
        ("host_gap", "host gap", 40, 50),
        ("cpu_operator", "aten::relu", 50, 95),
        ("host_gap", "host gap", 95, 100),
    ]


def gpu_bound() -> TraceBuilder:
    """Return a step that launches three kernels of 100 µs and ends at 40 µs, long before the last kernel."""
    builder = TraceBuilder().step(1, 0, 40)
    for place in range(3):
        builder.kernel(f"k{place}", start_us=10 + 101 * place, duration_us=100, launch_us=5 + 10 * place)
    return builder


def test_a_device_that_is_busy_bounds_the_step() -> None:
    """After the first launch the path stays on the stream, and the window ends with the last kernel."""
    assert path_of(gpu_bound()) == [
        ("host_gap", "host gap", 0, 5),
        ("cpu_operator", "cudaLaunchKernel", 5, 6),
        ("launch_delay", "k0", 6, 10),
        ("computation", "k0", 10, 110),
        ("kernel_kernel_delay", "k1", 110, 111),
        ("computation", "k1", 111, 211),
        ("kernel_kernel_delay", "k2", 211, 212),
        ("computation", "k2", 212, 312),
    ]


def test_communication_that_computation_waits_for_bounds_the_step() -> None:
    """The all-reduce waits for the backward kernel, and the optimizer's kernel waits for the all-reduce."""
    builder = (
        TraceBuilder()
        .step(1, 0, 30)
        .kernel("backward", start_us=5, duration_us=20, launch_us=1)
        .collective(start_us=28, duration_us=200, launch_us=4)
        .kernel("adam", start_us=230, duration_us=10, launch_us=7)
        .runtime("cudaEventRecord", start_us=2, duration_us=0, correlation=50)
        .runtime("cudaStreamWaitEvent", start_us=3, duration_us=0, correlation=51)
        .runtime("cudaEventRecord", start_us=5, duration_us=0, correlation=52)
        .runtime("cudaStreamWaitEvent", start_us=6, duration_us=0, correlation=53)
        .sync("Stream Wait Event", start_us=3, duration_us=0, stream=20, correlation=51, args=waits(7, 50))
        .sync("Stream Wait Event", start_us=6, duration_us=0, stream=7, correlation=53, args=waits(20, 52))
    )

    assert path_of(builder) == [
        ("host_gap", "host gap", 0, 1),
        ("cpu_operator", "cudaLaunchKernel", 1, 2),
        ("launch_delay", "backward", 2, 5),
        ("computation", "backward", 5, 25),
        ("synchronisation_wait", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 25, 28),
        ("communication", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 28, 228),
        ("synchronisation_wait", "adam", 228, 230),
        ("computation", "adam", 230, 240),
    ]


def waits(stream: int, record: int) -> dict[str, int]:
    """Return the args of a Stream Wait Event; it makes another stream wait for a CUDA event recorded on `stream`."""
    return {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": record}


def joined_streams() -> TraceBuilder:
    """Return a trace: stream 7 is busy until 105 µs; stream 20 waits for it and is idle from 45 to 108 µs."""
    return (
        TraceBuilder()
        .step(1, 0, 30)
        .kernel("long", start_us=5, duration_us=100, stream=7, launch_us=1)
        .kernel("short", start_us=5, duration_us=40, stream=20, launch_us=3)
        .runtime("cudaEventRecord", start_us=5, duration_us=1, correlation=50)
        .runtime("cudaStreamWaitEvent", start_us=6, duration_us=1, correlation=51)
        .kernel("joined", start_us=108, duration_us=10, stream=20, launch_us=8)
    )


def test_a_stream_that_waits_for_an_event_follows_the_other_stream() -> None:
    """If the wait is recorded, the path goes through the long kernel of the other stream."""
    builder = joined_streams().sync(
        "Stream Wait Event", start_us=6, duration_us=1, stream=20, correlation=51, args=waits(7, 50)
    )

    assert path_of(builder)[-3:] == [
        ("computation", "long", 5, 105),
        ("synchronisation_wait", "joined", 105, 108),
        ("computation", "joined", 108, 118),
    ]


def test_unrecorded_waits_are_inferred_from_timing_with_a_finding() -> None:
    """A kernel starts 3 µs after a kernel on another stream ended, so a wait is assumed, and a finding says so."""
    result = critical_path(joined_streams().build())

    assert result.path.filter(pl.col("name") == "long")["duration_ns"].to_list() == [3_000, 100_000]
    assert any("no synchronisation events" in finding for finding in result.findings)
    assert any("timing alone suggests 1 wait between streams" in finding for finding in result.findings)
    assert not result.per_rank["waits_recorded"][0]


def test_kernels_of_a_graph_follow_each_other_across_streams() -> None:
    """One graph launch runs two kernels on stream 7, then two on stream 8; the path follows all four."""
    builder = TraceBuilder().step(1, 0, 20).runtime("cudaGraphLaunch", start_us=2, duration_us=5, correlation=9)
    for name, stream, start, duration in (("a", 7, 10, 30), ("b", 7, 41, 20), ("c", 8, 62, 50), ("d", 8, 113, 7)):
        builder.kernel(name, stream=stream, start_us=start, duration_us=duration, correlation=9)

    assert path_of(builder) == [
        ("host_gap", "host gap", 0, 2),
        ("cpu_operator", "cudaGraphLaunch", 2, 7),
        ("launch_delay", "a", 7, 10),
        ("computation", "a", 10, 40),
        ("kernel_kernel_delay", "b", 40, 41),
        ("computation", "b", 41, 61),
        ("kernel_kernel_delay", "c", 61, 62),
        ("computation", "c", 62, 112),
        ("kernel_kernel_delay", "d", 112, 113),
        ("computation", "d", 113, 120),
    ]


def test_the_main_thread_hands_over_to_the_backward_thread_and_waits() -> None:
    """Thread 2 runs the backward operators while thread 1 is idle, so the path goes through thread 2."""
    builder = (
        TraceBuilder()
        .step(1, 0, 100)
        .operator("aten::linear", start_us=0, duration_us=20, args={"Sequence number": 5, "Fwd thread id": 0})
        .operator("LossBackward", start_us=25, duration_us=30, thread=2, args={"Sequence number": 6})
        .operator(
            "LinearBackward", start_us=57, duration_us=21, thread=2, args={"Sequence number": 5, "Fwd thread id": 1}
        )
        .operator("optimizer", start_us=80, duration_us=20)
    )

    assert path_of(builder) == [
        ("cpu_operator", "aten::linear", 0, 20),
        ("host_gap", "host gap", 20, 25),
        ("cpu_operator", "LossBackward", 25, 55),
        ("host_gap", "host gap", 55, 57),
        ("cpu_operator", "LinearBackward", 57, 78),
        ("host_gap", "host gap", 78, 80),
        ("cpu_operator", "optimizer", 80, 100),
    ]


def test_a_thread_that_does_little_in_a_gap_is_not_waited_for() -> None:
    """A watchdog thread runs for only 1 µs in a gap of 60 µs, so the path stays on the main thread."""
    builder = (
        TraceBuilder()
        .step(1, 0, 100)
        .operator("forward", start_us=0, duration_us=20)
        .operator("watchdog", start_us=30, duration_us=1, thread=2)
        .operator("optimizer", start_us=80, duration_us=20)
    )

    assert path_of(builder) == [
        ("cpu_operator", "forward", 0, 20),
        ("host_gap", "host gap", 20, 80),
        ("cpu_operator", "optimizer", 80, 100),
    ]


def test_an_operator_that_a_backward_thread_works_in_waits_for_it() -> None:
    """A compiled region waits for its backward pass on thread 2, so the path goes through this pass."""
    builder = (
        TraceBuilder()
        .step(1, 0, 70)
        .operator("aten::linear", start_us=0, duration_us=10, args={"Sequence number": 5, "Fwd thread id": 0})
        .operator("compiled region", start_us=10, duration_us=60)
        .operator(
            "LinearBackward", start_us=15, duration_us=50, thread=2, args={"Sequence number": 5, "Fwd thread id": 1}
        )
    )

    assert path_of(builder)[1:] == [
        ("host_gap", "host gap", 10, 15),
        ("cpu_operator", "LinearBackward", 15, 65),
        ("host_gap", "host gap", 65, 70),
    ]


@pytest.mark.parametrize("recorded", ["with rows", "by name"])
def test_a_call_that_waits_follows_the_device(recorded: str) -> None:
    """A cudaDeviceSynchronize from 10 to 62 µs waits for the kernel that ends at 60 µs; then the host continues."""
    builder = (
        TraceBuilder()
        .step(1, 0, 100)
        .kernel("gemm", start_us=8, duration_us=52, launch_us=2, launch_duration_us=3)
        .runtime("cudaDeviceSynchronize", start_us=10, duration_us=52, correlation=77)
        .operator("aten::item", start_us=62, duration_us=38)
    )
    if recorded == "with rows":
        builder.sync("Context Sync", start_us=10, duration_us=52, stream=-1, correlation=77)

    assert path_of(builder) == [
        ("host_gap", "host gap", 0, 2),
        ("cpu_operator", "cudaLaunchKernel", 2, 5),
        ("launch_delay", "gemm", 5, 8),
        ("computation", "gemm", 8, 60),
        ("synchronisation_wait", "cudaDeviceSynchronize", 60, 62),
        ("cpu_operator", "aten::item", 62, 100),
    ]


def test_a_synchronisation_with_nothing_to_wait_for_keeps_its_time() -> None:
    """A call that begins after the only kernel ended waits for nothing, so the path contains all 60 µs of the call."""
    builder = (
        TraceBuilder()
        .step(1, 0, 100)
        .kernel("gemm", start_us=8, duration_us=10, launch_us=2)
        .operator("work", start_us=4, duration_us=36)
        .runtime("cudaStreamSynchronize", start_us=40, duration_us=60)
    )

    assert path_of(builder)[-1] == ("synchronisation_wait", "cudaStreamSynchronize", 40, 100)


def test_a_query_waits_for_nothing() -> None:
    """A cudaEventQuery does not wait, although the profiler records a synchronisation event for it."""
    builder = (
        TraceBuilder()
        .step(1, 0, 30)
        .kernel("gemm", start_us=8, duration_us=12, launch_us=2)
        .runtime("cudaEventRecord", start_us=4, duration_us=1, correlation=50)
        .runtime("cudaEventQuery", start_us=9, duration_us=1, correlation=51)
        .sync("Event Sync", start_us=9, duration_us=1, stream=-1, correlation=51, args=waits(7, 50))
        .operator("aten::add", start_us=10, duration_us=20)
    )

    assert path_of(builder)[4:] == [
        ("host_gap", "host gap", 5, 9),
        ("cpu_operator", "cudaEventQuery", 9, 10),
        ("cpu_operator", "aten::add", 10, 30),
    ]


def test_a_blocking_copy_is_on_the_path() -> None:
    """A copy call of 20 µs returns 5 µs after its copy ended, so the path goes through the copy."""
    builder = TraceBuilder().step(1, 0, 60).copy(start_us=25, duration_us=10, launch_us=20, launch_duration_us=20)

    assert path_of(builder) == [
        ("host_gap", "host gap", 0, 20),
        ("cpu_operator", "cudaMemcpyAsync", 20, 25),
        ("copy", "Memcpy HtoD (Pinned -> Device)", 25, 35),
        ("synchronisation_wait", "cudaMemcpyAsync", 35, 40),
        ("host_gap", "host gap", 40, 60),
    ]


def test_data_loading_is_recognised_by_name() -> None:
    """By default, a DataLoader range and its operators belong to data loading.

    The option `data_loading` replaces the default name patterns.
    """
    builder = (
        TraceBuilder()
        .step(1, 0, 50)
        .annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start_us=0, duration_us=20)
        .operator("aten::stack", start_us=5, duration_us=5)
        .operator("read", start_us=20, duration_us=30)
    )
    by_default = critical_path(builder.build()).per_class
    by_name = critical_path(builder.build(), data_loading=["^read$"]).per_class

    assert classes(by_default) == {"data_loading": 20_000, "cpu_operator": 30_000}
    assert classes(by_name) == {"data_loading": 30_000, "cpu_operator": 5_000, "host_gap": 15_000}


def test_an_invalid_pattern_is_an_error() -> None:
    """A pattern that is not a regular expression raises an error that quotes the pattern."""
    with pytest.raises(InvalidOptionError, match=r"'\(read' is not a regular expression"):
        critical_path(TraceBuilder().step(1, 0, 50).build(), data_loading=["(read"])


def classes(per_class: pl.DataFrame) -> dict[str, int]:
    """Return the time (ns) of each path class that occurs on the path."""
    return dict(per_class.filter(pl.col("total_ns") > 0).select("path_class", "total_ns").iter_rows())


def test_collectives_of_the_host_are_communication() -> None:
    """The main thread waits while another thread runs a gloo all-reduce for 70 µs; this time is communication."""
    builder = (
        TraceBuilder()
        .step(1, 0, 100)
        .operator("forward", start_us=0, duration_us=20)
        .annotation("gloo:all_reduce", start_us=22, duration_us=70, thread=3)
        .operator("optimizer", start_us=94, duration_us=6)
    )

    assert classes(critical_path(builder.build()).per_class) == {
        "cpu_operator": 26_000,
        "host_gap": 4_000,
        "communication": 70_000,
    }


def test_work_from_before_the_window_is_cut_to_it() -> None:
    """A kernel launched in step 1 runs until 130 µs; the path of step 2 contains it from 100 µs on."""
    builder = (
        TraceBuilder()
        .step(1, 0, 100)
        .step(2, 100, 20)
        .kernel("old", start_us=50, duration_us=80, launch_us=10)
        .kernel("new", start_us=132, duration_us=10, launch_us=105)
    )

    assert path_of(builder, instance=2) == [
        ("computation", "old", 100, 130),
        ("kernel_kernel_delay", "new", 130, 132),
        ("computation", "new", 132, 142),
    ]


def test_times_that_contradict_by_clock_noise_cut_the_path_and_are_counted() -> None:
    """A synchronisation returns 1 µs before the end of the kernel that it waits for.

    The path goes from the kernel to the host when the call returns, and a finding reports the contradiction.
    """
    builder = (
        TraceBuilder()
        .step(1, 0, 60)
        .kernel("gemm", start_us=8, duration_us=43, launch_us=2)
        .runtime("cudaDeviceSynchronize", start_us=10, duration_us=40)
    )
    result = critical_path(builder.build())

    assert path_of(builder)[-2:] == [("computation", "gemm", 8, 50), ("host_gap", "host gap", 50, 60)]
    assert any("1 dependency would lead backwards in time" in finding for finding in result.findings)


def test_kernels_that_overlap_on_one_stream_run_at_once() -> None:
    """The second kernel starts while the first runs, so it depends on the start of the first, not on its end."""
    builder = (
        TraceBuilder()
        .step(1, 0, 20)
        .kernel("first", start_us=10, duration_us=50, launch_us=2)
        .kernel("second", start_us=40, duration_us=50, launch_us=5)
    )

    assert path_of(builder)[-2:] == [("kernel_kernel_delay", "second", 10, 40), ("computation", "second", 40, 90)]


def test_kernels_without_recorded_launches_are_on_the_path() -> None:
    """The launches of two kernels were not recorded, so the 15 µs before the first kernel are unknown."""
    builder = (
        TraceBuilder().step(1, 0, 38).kernel("a", start_us=15, duration_us=20).kernel("b", start_us=36, duration_us=4)
    )
    result = critical_path(builder.build())

    assert path_of(builder) == [
        ("unknown", "a", 0, 15),
        ("computation", "a", 15, 35),
        ("kernel_kernel_delay", "b", 35, 36),
        ("computation", "b", 36, 40),
    ]
    assert any("the launch of 2 pieces of device work was not recorded" in finding for finding in result.findings)


def served(first_start_us: int) -> TraceBuilder:
    """Return a trace whose only kernel is launched at 10 µs, starts at `first_start_us` and takes 20 µs."""
    builder = TraceBuilder().operator("aten::mm", start_us=8, duration_us=10)
    return builder.kernel("decode", start_us=first_start_us, duration_us=20, launch_us=10, launch_duration_us=4)


def test_what_a_stream_did_before_its_first_recorded_work_is_unknown() -> None:
    """The first kernel starts 386 µs after its launch; work that was not recorded may have delayed it."""
    result = critical_path(served(400).build())

    assert result.path.select("path_class", "name", "duration_ns").rows() == [
        ("cpu_operator", "aten::mm", 2_000),
        ("cpu_operator", "cudaLaunchKernel", 4_000),
        ("unknown", "decode", 386_000),
        ("computation", "decode", 20_000),
    ]
    unknown = (
        "rank 0: the cause of 386 µs of the path is unknown, because a stream was busy before its first recorded work"
    )
    assert sum(finding.startswith(f"{unknown}; call torch.cuda.synchronize()") for finding in result.findings) == 1


def test_a_first_kernel_that_begins_at_once_has_a_launch_delay() -> None:
    """The first kernel starts only 26 µs after its launch, so this time is classified as launch delay."""
    result = critical_path(served(40).build())

    assert result.path.row(2, named=True)["path_class"] == "launch_delay"
    assert not any("before its first recorded work" in finding for finding in result.findings)


def test_a_stream_that_was_recorded_before_the_window_is_known_to_be_idle() -> None:
    """A kernel recorded 5 ms earlier shows that no unrecorded work kept the stream busy: this is a launch delay."""
    builder = TraceBuilder().kernel("earlier", start_us=5, duration_us=1, launch_us=2).step(1, 5_000, 500)
    builder.kernel("late", start_us=5_400, duration_us=200, launch_us=5_010)

    classes = critical_path(builder.build()).path["path_class"].to_list()

    assert ("launch_delay" in classes, "unknown" in classes) == (True, False)


def test_a_synchronisation_before_the_launch_rules_out_earlier_work() -> None:
    """After hipDeviceSynchronize, the device has no earlier work to finish, so the delay is a launch delay."""
    builder = served(400).runtime("hipDeviceSynchronize", start_us=1, duration_us=5)

    assert "launch_delay" in critical_path(builder.build()).path["path_class"].to_list()


def test_a_first_kernel_may_wait_for_another_stream_of_its_device() -> None:
    """Stream 7 may have waited for stream 8, which is busy for 300 of the 386 µs, so no time on the path is unknown."""
    builder = served(400).kernel("forward", start_us=12, duration_us=300, launch_us=8, stream=8)

    assert "unknown" not in critical_path(builder.build()).path["path_class"].to_list()


@pytest.mark.parametrize("place", [{"device": 1}, {"stream": 8}])
def test_each_stream_has_its_own_first_work(place: dict[str, int]) -> None:
    """Earlier work on another device or stream does not show that this stream was idle, so the cause is unknown."""
    builder = served(400).kernel("elsewhere", start_us=9, duration_us=1, launch_us=8, **place)

    assert "unknown" in critical_path(builder.build()).path["path_class"].to_list()


@pytest.mark.parametrize(
    ("name", "unknown"),
    [("sglang_decode/sglang_Qwen3-8B_decode", 0.978), ("vllm_prefilldecode_piecewise/graph_execution", 0.484)],
)
def test_the_beginning_of_real_inference_windows(name: str, unknown: float, real_traces: Path) -> None:
    """Two recordings begin while the device still runs earlier work, so 98 % and 48 % of their paths are unknown."""
    per_class = critical_path(opened(real_traces / "inference" / f"{name}.json.gz")).per_class
    fractions = dict(per_class.select("path_class", "fraction").iter_rows())
    assert fractions["unknown"] == pytest.approx(unknown, abs=0.001)
    assert fractions["launch_delay"] < 0.001


def test_work_launched_before_the_recording_does_not_extend_the_window() -> None:
    """A kernel without a recorded launch runs until 200 µs, but the window ends with the step's kernel, at 60 µs."""
    builder = TraceBuilder().step(1, 0, 50).kernel("own", start_us=20, duration_us=40, launch_us=10)
    builder.kernel("left", start_us=5, duration_us=195, stream=20)
    builder.kernel("later", start_us=300, duration_us=5, stream=20, launch_us=250).step(2, 240, 80)

    row = critical_path(builder.build(), instance=1).per_rank.row(0, named=True)

    assert (row["duration_ns"], row["unknown_launch_count"]) == (60_000, 1)


def test_a_rank_without_device_work_has_the_path_of_its_host() -> None:
    """Without device work, the path consists of host time only, and a finding says so."""
    result = critical_path(TraceBuilder().step(1, 0, 20).operator("a", start_us=5, duration_us=10).build())

    assert classes(result.per_class) == {"host_gap": 10_000, "cpu_operator": 10_000}
    assert result.findings == ("rank 0: the window has no device work, so the path stays on the host",)


def test_every_rank_has_its_path() -> None:
    """The tables are sorted by rank, and each rank has rows for all ten path classes."""
    builder = TraceBuilder()
    for rank in (1, 0):
        builder.rank(rank).step(4, 0, 10 * (rank + 1)).operator("a", start_us=0, duration_us=10 * (rank + 1))
    result = critical_path(builder.build())

    assert result.per_rank.select("rank", "window", "duration_ns", "segment_count").rows() == [
        (0, "ProfilerStep#4", 10_000, 1),
        (1, "ProfilerStep#4", 20_000, 1),
    ]
    assert result.per_class["rank"].to_list() == [0] * 10 + [1] * 10
    assert result.per_name.select("rank", "name", "total_ns", "fraction", "segment_count").rows() == [
        (0, "a", 10_000, 1.0, 1),
        (1, "a", 20_000, 1.0, 1),
    ]


def test_an_empty_rank_has_a_finding_instead_of_rows() -> None:
    """Rank 1 has no events, so it has a finding but no row; the other ranks share a second finding."""
    builder = TraceBuilder()
    for rank in range(12):
        builder.rank(rank)
        if rank != 1:
            builder.step(1, 0, 20).operator("a", start_us=5, duration_us=10)
    result = critical_path(builder.build())

    assert result.per_rank["rank"].to_list() == [0, *range(2, 12)]
    assert [finding.partition(": ")[0] for finding in result.findings] == [
        "critical_path",
        "ranks 0, 2-11",
    ]


def test_only_the_longest_segments_are_listed() -> None:
    """`segment_limit=3` lists the longest 3 of 8 segments in time order; the class totals include all 8."""
    result = critical_path(gpu_bound().build(), segment_limit=3)

    assert result.path["name"].to_list() == ["k0", "k1", "k2"]
    assert result.per_class["total_ns"].sum() == 312_000
    with pytest.raises(InvalidOptionError, match="is below 1"):
        critical_path(gpu_bound().build(), segment_limit=0)


def test_slack_is_the_delay_a_node_can_have() -> None:
    """The short kernel could end 63 µs later, at 108 µs, without delaying the kernel `joined`."""
    builder = joined_streams().sync(
        "Stream Wait Event", start_us=6, duration_us=1, stream=20, correlation=51, args=waits(7, 50)
    )
    (rank_trace,) = builder.build().ranks.values()
    path_graph = critical_path_graph(rank_trace)
    names = dict(path_graph.names.iter_rows())
    nodes = path_graph.graph.nodes.with_columns(path_graph.slack_ns)
    slack = {
        (names[path_graph.graph.activities["name"][activity]], is_start): slack
        for activity, is_start, _, slack in nodes.drop_nulls("activity").iter_rows()
    }

    assert slack["long", True] == slack["long", False] == slack["joined", False] == 0
    assert slack["short", False] == 63_000
    assert slack["short", True] == 63_000


def test_an_empty_rank_is_an_error() -> None:
    """If the only rank has no events, MissingDataError is raised."""
    with pytest.raises(MissingDataError, match="no operators, calls or device work"):
        critical_path(TraceBuilder().build())


def assert_accounts_for_its_window(path_graph: PathGraph) -> None:
    """Assert that the path fills its window and has no slack, and that a replay takes as long as the window."""
    graph, segments = path_graph.graph, path_graph.segments
    start_ns, end_ns = segments["start_ns"].to_numpy(), segments["end_ns"].to_numpy()
    assert (start_ns[0], end_ns[-1]) == (graph.window_start_ns, graph.window_end_ns)
    assert (start_ns[1:] == end_ns[:-1]).all()
    assert (start_ns <= end_ns).all()
    path_edges = segments["edge"].to_numpy()
    source, target = graph.edges["source"].to_numpy()[path_edges], graph.edges["target"].to_numpy()[path_edges]
    assert (source[1:] == target[:-1]).all()
    assert (source[0], target[-1]) == (0, len(graph.nodes) - 1)
    slack = path_graph.slack_ns.to_numpy()
    assert slack.min() >= 0
    assert not slack[np.append(source, target)].any()
    times = graph.nodes["time_ns"].to_numpy()
    assert (np.diff(times) >= 0).all()
    spent = graph.edges.select(pl.col("weight_ns") + pl.col("delay_ns")).to_series().to_numpy()
    replayed = earliest_times(graph.order(), spent)[-1]
    assert replayed >= graph.window_end_ns - graph.window_start_ns
    if not graph.contradicted_count:
        assert replayed == graph.window_end_ns - graph.window_start_ns


@st.composite
def jobs(draw: st.DrawFn) -> TraceBuilder:
    """Generate traces: overlapping ranges and kernels, waits, copies and kernels that start before their launch."""
    builder = TraceBuilder().step(0, 0, draw(st.integers(1, 60)))
    times = st.tuples(st.integers(0, 60), st.integers(0, 25))
    for correlation in range(1, draw(st.integers(0, 8))):
        start, duration = draw(times)
        builder.runtime("launch", start_us=start, duration_us=duration, correlation=correlation, thread=draw(_THREADS))
    for _ in range(draw(st.integers(0, 12))):
        start, duration = draw(times)
        kind = draw(st.sampled_from(["operator", "kernel", "copy", "wait", "record", "stream wait", "host wait"]))
        _add(draw, builder, kind, {"start_us": start, "duration_us": duration})
    return builder


_THREADS = st.integers(1, 3)
_STREAMS = st.sampled_from([7, 8, 20])
_CORRELATIONS = st.integers(1, 9)


def _add(draw: st.DrawFn, builder: TraceBuilder, kind: str, times: dict[str, int]) -> None:
    correlation, stream = draw(_CORRELATIONS), draw(_STREAMS)
    match kind:
        case "operator":
            args = {"Sequence number": draw(st.integers(0, 3)), "Fwd thread id": draw(st.integers(0, 1))}
            builder.operator("op", thread=draw(_THREADS), args=args, **times)
        case "kernel":
            builder.kernel("k", stream=stream, correlation=correlation, **times)
        case "copy":
            builder.copy(stream=stream, correlation=correlation, **times)
        case "wait":
            builder.runtime("cudaDeviceSynchronize", thread=draw(_THREADS), **times)
        case "record":
            builder.runtime("cudaEventRecord", correlation=correlation + 20, thread=draw(_THREADS), **times)
        case "stream wait":
            args = waits(draw(_STREAMS), draw(_CORRELATIONS) + 20)
            builder.sync("Stream Wait Event", stream=stream, correlation=correlation, args=args, **times)
        case _:
            builder.sync("Stream Sync", stream=stream, correlation=correlation, **times)


@pytest.mark.slow
@given(jobs(), st.integers(0, 50_000), st.integers(1, 50_000))
def test_every_path_accounts_for_its_window(builder: TraceBuilder, start_ns: int, length_ns: int) -> None:
    """The path's segments fill the window without gaps and have a slack of 0, and no slack is negative."""
    (rank_trace,) = builder.build().ranks.values()
    for annotation in (None, ""):
        assert_accounts_for_its_window(critical_path_graph(rank_trace, annotation=annotation))
    with suppress(InvalidOptionError):  # the range may start after the recording ends
        time_range_ns = (start_ns, start_ns + length_ns)
        assert_accounts_for_its_window(critical_path_graph(rank_trace, time_range_ns=time_range_ns))


@pytest.mark.slow
@given(jobs())
def test_classes_sum_to_the_window(builder: TraceBuilder) -> None:
    """Whether time is summed over classes, names or segments, the sum is the length of the window."""
    result = critical_path(builder.build())

    assert result.per_class["total_ns"].sum() == result.per_rank["duration_ns"].sum()
    assert result.per_name["total_ns"].sum() == result.per_rank["duration_ns"].sum()
    assert result.path["duration_ns"].sum() == result.per_rank["duration_ns"].sum()


def _all_ranks(folder: Path) -> Iterator[RankTrace]:
    """Yield the ranks of every trace file, opened one by one because the files come from different jobs."""
    for path in sorted({*folder.rglob("*.json"), *folder.rglob("*.json.gz")}):
        with suppress(NotATraceError):
            yield from open_trace(path, cache=False).ranks.values()


@pytest.mark.slow
@given(trace_documents())
def test_any_legal_file_has_a_path_or_says_why_not(document: bytes) -> None:
    """Any valid trace file, whatever its times, ids and categories, gives either a path or a HolotraceError."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        path.write_bytes(document)
        with suppress(HolotraceError):
            (rank_trace,) = open_trace(path, cache=False).ranks.values()
            assert_accounts_for_its_window(critical_path_graph(rank_trace, annotation=""))


_WORKING_KINDS = (EventKind.CPU_OP, *DEVICE_WORK_KINDS)


@pytest.mark.slow
def test_every_real_trace_with_operators_or_kernels_has_a_path(real_traces) -> None:
    """Each rank has a path for a step and a path for the whole recording.

    The duration that a replay of the dependency graph predicts is at most 1 % longer than the window.
    """
    count = 0
    for rank_trace in _all_ranks(real_traces):
        counts = rank_trace.event_counts()
        if not any(counts.get(kind) for kind in _WORKING_KINDS):
            continue
        for annotation in (None, ""):
            path_graph = critical_path_graph(rank_trace, annotation=annotation)
            assert_accounts_for_its_window(path_graph)
            spent = path_graph.graph.edges.select(pl.col("weight_ns") + pl.col("delay_ns")).to_series().to_numpy()
            window_ns = path_graph.graph.window_end_ns - path_graph.graph.window_start_ns
            assert earliest_times(path_graph.graph.order(), spent)[-1] <= 1.01 * window_ns
        count += 1
        rank_trace.forget()

    assert count >= 25


def test_a_real_trace_without_synchronisation_events_says_so(real_traces) -> None:
    """`diff/control` has no synchronisation events, and a finding says so.

    `critical_path/event_sync` has such events and no such finding.
    """
    without = critical_path(opened(real_traces / "diff" / "control"))
    with_events = critical_path(opened(real_traces / "critical_path" / "event_sync"))

    assert any("no synchronisation events" in finding for finding in without.findings)
    assert not any("no synchronisation events" in finding for finding in with_events.findings)
