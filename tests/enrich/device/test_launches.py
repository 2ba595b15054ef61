"""Tests of launches, which link device work to the calls that launched it."""

from __future__ import annotations

import pytest

from holotrace.enrich.device.launches import asked_for, launched_work, launches
from holotrace.testing.builder import TraceBuilder

COLUMNS = ["event_index", "launch_index", "launch_name", "launch_start_ns", "launch_end_ns"]


def rows_of(builder: TraceBuilder) -> list[tuple[int | None, ...]]:
    """Build the trace and return its launches without their names."""
    (rank_trace,) = builder.build().ranks.values()
    table = launches(rank_trace)
    assert table.columns == COLUMNS
    names = rank_trace.table("events", ["name"])["name"]
    assert table["launch_name"].to_list() == names.gather(table["launch_index"]).to_list()
    return table.drop("launch_name").rows()


def test_a_kernel_is_joined_to_its_call_by_correlation() -> None:
    """The kernels in rows 1 and 3 were launched by the calls in rows 0 and 2."""
    builder = (
        TraceBuilder()
        .kernel("gemm", start_us=10, duration_us=1, launch_us=2)
        .kernel("relu", start_us=12, duration_us=1, launch_us=4, launch_duration_us=2)
    )

    assert rows_of(builder) == [(1, 0, 2_000, 3_000), (3, 2, 4_000, 6_000)]


def test_one_graph_launch_owns_all_its_kernels() -> None:
    """A cudaGraphLaunch is the launch of all three kernels that have its correlation."""
    builder = TraceBuilder().runtime("cudaGraphLaunch", start_us=1, duration_us=3, correlation=9)
    for place in range(3):
        builder.kernel(f"k{place}", start_us=10 + place, duration_us=1, correlation=9)

    assert rows_of(builder) == [(1, 0, 1_000, 4_000), (2, 0, 1_000, 4_000), (3, 0, 1_000, 4_000)]


@pytest.mark.parametrize("correlation", [None, 0, -1, 77])
def test_without_a_call_of_the_same_correlation_the_launch_is_unknown(correlation: int | None) -> None:
    """A kernel has no launch if its correlation is missing, 0, -1 or unknown."""
    builder = (
        TraceBuilder()
        .runtime("cudaDeviceSynchronize", start_us=0, duration_us=1, correlation=0)
        .runtime("cudaFree", start_us=0, duration_us=1, correlation=-1)
        .kernel("gemm", start_us=10, duration_us=1, correlation=correlation)
    )

    assert rows_of(builder) == [(2, None, None, None)]


def test_only_calls_launch_work() -> None:
    """Only a call is a kernel's launch, even if a synchronisation, operator or copy has the same correlation number."""
    builder = (
        TraceBuilder()
        .sync("Stream Sync", start_us=0, duration_us=1, correlation=5)
        .operator("aten::mm", start_us=0, duration_us=1, args={"correlation": 5})
        .kernel("gemm", start_us=10, duration_us=1, correlation=5)
        .copy(start_us=11, duration_us=1, correlation=5)
    )

    assert rows_of(builder) == [(2, None, None, None), (3, None, None, None)]


def test_sync_rows_have_no_launch_of_their_own() -> None:
    """A synchronisation is not device work, so it has no row in the table."""
    builder = (
        TraceBuilder()
        .runtime("cudaStreamSynchronize", start_us=0, duration_us=9, correlation=5)
        .sync("Stream Sync", start_us=0, duration_us=9, correlation=5)
    )

    assert rows_of(builder) == []


def test_driver_amd_and_mtia_calls_launch() -> None:
    """Work is launched by driver calls in Triton, by hip calls on ROCm, and by the calls of MTIA's own runtime."""
    builder = (
        TraceBuilder()
        .kernel("triton_poi_fused_add_0", start_us=10, duration_us=1, launch_us=1, launch_name="cuLaunchKernelEx")
        .kernel("Cijk", start_us=20, duration_us=1, stream=0, launch_us=2, launch_name="hipExtModuleLaunchKernel")
        .event(ph="X", cat="mtia_runtime", name="runFunction", pid=8, tid=1, ts=3, dur=1, args={"correlation": 7})
        .event(ph="X", cat="mtia_ccp_events", name="merge", pid=17, tid=1, ts=30, dur=1, args={"correlation": 7})
    )

    assert rows_of(builder) == [(1, 0, 1_000, 2_000), (3, 2, 2_000, 3_000), (5, 4, 3_000, 4_000)]


def test_a_runtime_call_is_preferred_to_the_driver_call_inside_it() -> None:
    """If a cuLaunchKernel inside a cudaLaunchKernel has the same correlation, the outer call is the launch."""
    builder = (
        TraceBuilder()
        .runtime("cuLaunchKernel", start_us=2, duration_us=2, correlation=5)
        .runtime("cudaLaunchKernel", start_us=1, duration_us=4, correlation=5)
        .kernel("gemm", start_us=10, duration_us=1, correlation=5)
    )

    assert rows_of(builder) == [(2, 1, 1_000, 5_000)]


def test_the_call_of_the_same_operator_is_preferred() -> None:
    """If several calls have a kernel's correlation, its launch is the call with its external id."""
    builder = (
        TraceBuilder()
        .runtime("cudaLaunchKernel", start_us=1, duration_us=1, correlation=5, args={"External id": 70})
        .runtime("cudaLaunchKernel", start_us=2, duration_us=1, correlation=5, args={"External id": 80})
        .kernel("a", start_us=10, duration_us=1, correlation=5, args={"External id": 70})
        .kernel("b", start_us=11, duration_us=1, correlation=5, args={"External id": 80})
    )

    assert rows_of(builder) == [(2, 0, 1_000, 2_000), (3, 1, 2_000, 3_000)]


def test_a_call_that_begins_after_the_work_is_the_last_choice() -> None:
    """Calls at 1, 5 and 30 µs share the correlation of a kernel at 10 µs; the last call before it is its launch."""
    builder = TraceBuilder()
    for start in (1, 5, 30):
        builder.runtime("cudaLaunchKernel", start_us=start, duration_us=1, correlation=5)
    builder.kernel("gemm", start_us=10, duration_us=1, correlation=5)

    assert rows_of(builder) == [(3, 1, 5_000, 6_000)]


def test_a_kernel_may_begin_before_its_only_call() -> None:
    """In old traces, host and device clocks differ by microseconds, so a kernel may start before its launch call."""
    builder = TraceBuilder().kernel("gemm", start_us=10, duration_us=1, launch_us=12)

    assert rows_of(builder) == [(1, 0, 12_000, 13_000)]


def test_rows_come_in_the_order_of_the_work() -> None:
    """Rows are sorted by the start of the work, not by their order in the file, even if launches are ambiguous."""
    builder = (
        TraceBuilder()
        .runtime("cudaLaunchKernel", start_us=0, duration_us=1, correlation=1)
        .runtime("cudaLaunchKernel", start_us=1, duration_us=1, correlation=2)
        .runtime("cudaLaunchKernel", start_us=2, duration_us=1, correlation=2)
        .kernel("c", start_us=30, duration_us=1, correlation=2)
        .kernel("b", start_us=20, duration_us=1)
        .kernel("a", start_us=10, duration_us=1, correlation=1)
    )

    assert rows_of(builder) == [(5, 0, 0, 1_000), (4, None, None, None), (3, 2, 2_000, 3_000)]


def test_work_with_its_launches_excludes_waits() -> None:
    """A wait in an MTIA queue has a launch but is not device work."""
    builder = TraceBuilder().runtime("runFunction", start_us=1, duration_us=1, correlation=4)
    for place, name in enumerate(["event_wait", "merge"]):
        args = {"stream": 108, "correlation": 4}
        builder.event(ph="X", cat="mtia_ccp_events", name=name, pid=17, tid=3774, ts=10 + place, dur=1, args=args)
    (rank_trace,) = builder.kernel("gemm", start_us=20, duration_us=1).build().ranks.values()

    columns = ["event_index", "start_ns", "launch_index", "launch_start_ns"]
    assert launched_work(rank_trace).select(columns).rows() == [(2, 11_000, 0, 1_000), (3, 20_000, None, None)]


def asked_us(builder: TraceBuilder) -> dict[str, float | None]:
    """Return {name: time in µs at which the host requested the work}."""
    (rank_trace,) = builder.build().ranks.values()
    names = rank_trace.texts(rank_trace.table("events", ["name"])["name"])
    rows = asked_for(rank_trace)
    asked = [None if time_ns is None else time_ns / 1_000 for time_ns in rows["asked_ns"]]
    return dict(zip(names.gather(rows["event_index"]), asked, strict=True))


def test_work_was_asked_for_when_its_launch_began() -> None:
    """Work is requested when its launch call starts, or, if the launch is unknown, when the work itself starts."""
    builder = TraceBuilder().kernel("launched", start_us=10, duration_us=5, launch_us=2)
    assert asked_us(builder.kernel("unknown", start_us=20, duration_us=5)) == {"launched": 2, "unknown": 20}


def test_work_before_the_first_launch_of_its_stream_was_launched_before_the_recording() -> None:
    """Kernels that start before the first kernel with a recorded launch were launched before the recording.

    Each stream is treated separately. Here, the kernels `left 1` and `left 2` start before `first`, the first kernel on
    stream 20 whose launch was recorded.
    """
    builder = TraceBuilder().kernel("early", start_us=5, duration_us=5, launch_us=1)
    builder.kernel("left 1", start_us=0, duration_us=9, stream=20).kernel(
        "left 2", start_us=10, duration_us=9, stream=20
    )
    builder.kernel("first", start_us=30, duration_us=5, stream=20, launch_us=3)
    builder.kernel("lost", start_us=50, duration_us=5, stream=20)

    assert asked_us(builder) == {"left 1": None, "early": 1, "left 2": None, "first": 3, "lost": 50}


def test_on_a_stream_without_launches_only_work_before_all_launches_is_from_before_the_recording() -> None:
    """Some profiler versions do not record the launches of NCCL's kernels, here those on stream 20.

    On a stream without recorded launches, only work that starts before the first launch on any stream was launched
    before the recording.
    """
    builder = TraceBuilder().kernel("gemm", start_us=15, duration_us=5, launch_us=10)
    builder.kernel("left", start_us=0, duration_us=30, stream=20).kernel("later", start_us=40, duration_us=9, stream=20)

    assert asked_us(builder) == {"left": None, "gemm": 10, "later": 40}


def test_without_any_launch_the_start_counts() -> None:
    """Without recorded host calls, the start of each kernel is also its request time."""
    builder = TraceBuilder().kernel("a", start_us=0, duration_us=5).kernel("b", start_us=8, duration_us=5)
    assert asked_us(builder) == {"a": 0, "b": 8}
