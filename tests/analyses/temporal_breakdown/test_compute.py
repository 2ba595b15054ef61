"""Tests of temporal_breakdown: the computation, other work and idle time of each device."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.analyses.temporal_breakdown.compute import temporal_breakdown
from holotrace.enrich.kernels.kernel_kind import add_rule, remove_added_rules
from holotrace.errors import MissingDataError
from holotrace.execution.processes import processes
from holotrace.testing.builder import TraceBuilder
from oracles import covered
from recordings import opened


def row(rank: int, device: int, start_ns: int, times: tuple[int, int, int]) -> dict[str, object]:
    """Return the row expected for `times`: computation, other work and idle time, in ns."""
    compute, non_compute, idle = times
    window = compute + non_compute + idle
    return {
        "rank": rank,
        "device": device,
        "window_ns": window,
        "computation_ns": compute,
        "non_computation_ns": non_compute,
        "idle_ns": idle,
        "unknown_ns": 0,
        "computation_fraction": compute / window if window else None,
        "non_computation_fraction": non_compute / window if window else None,
        "idle_fraction": idle / window if window else None,
        "unknown_fraction": 0.0 if window else None,
        "start_ns": start_ns,
    }


def breakdown(builder: TraceBuilder) -> list[dict[str, object]]:
    """Build the trace and return the rows of its breakdown."""
    return temporal_breakdown(builder.build()).per_device.to_dicts()


def test_compute_other_work_and_idle_share_the_window() -> None:
    """Of 35 µs, two kernels take 15 µs, a copy takes 5 µs in which no kernel runs, and 15 µs are idle."""
    builder = (
        TraceBuilder(base_time_ns=1_700_000_000_000_000_000)
        .kernel("gemm", start_us=10, duration_us=10)
        .copy(start_us=15, duration_us=10, stream=8)
        .kernel("relu", start_us=40, duration_us=5)
    )

    assert breakdown(builder) == [row(0, 0, 1_700_000_000_000_010_000, (15_000, 5_000, 15_000))]


def test_the_columns_and_their_types() -> None:
    """The table's column names, order and types are part of the API."""
    table = temporal_breakdown(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build()).per_device

    parts = ["computation", "non_computation", "idle", "unknown"]
    times = dict.fromkeys(["window_ns", *(f"{part}_ns" for part in parts)], pl.Int64)
    fractions = dict.fromkeys([f"{part}_fraction" for part in parts], pl.Float64)
    assert table.schema == {"rank": pl.Int32, "device": pl.Int32, **times, **fractions, "start_ns": pl.Int64}


def test_overlapping_work_counts_once() -> None:
    """Three kernels within the same 10 µs, on two streams, count as 10 µs of computation."""
    builder = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=10)
        .kernel("b", start_us=2, duration_us=3)
        .kernel("c", start_us=0, duration_us=10, stream=9)
    )

    assert breakdown(builder) == [row(0, 0, 0, (10_000, 0, 0))]


def test_one_event_fills_its_own_window() -> None:
    """With a single kernel, the window is the time of this kernel, so there is no idle time."""
    assert breakdown(TraceBuilder().kernel("gemm", start_us=3.5, duration_us=0.25)) == [row(0, 0, 3_500, (250, 0, 0))]


def test_a_window_without_length_has_no_fractions() -> None:
    """With a single kernel of 0 ns, the fractions are null, not 0."""
    assert breakdown(TraceBuilder().kernel("gemm", start_us=3, duration_us=0)) == [row(0, 0, 3_000, (0, 0, 0))]


def test_each_device_of_a_rank_has_its_own_row() -> None:
    """Device 0 computes for its whole window of 20 µs; device 1 is idle for 10 of 30 µs."""
    builder = (
        TraceBuilder()
        .kernel("gemm", start_us=0, duration_us=10, device=1)
        .kernel("gemm", start_us=20, duration_us=10, device=1)
        .kernel("gemm", start_us=5, duration_us=20, device=0)
    )

    assert breakdown(builder) == [row(0, 0, 5_000, (20_000, 0, 0)), row(0, 1, 0, (20_000, 0, 10_000))]


def test_ranks_come_in_order_and_one_without_work_is_a_finding() -> None:
    """Rows are sorted by rank; rank 5 has only operators, and a finding says so."""
    builder = (
        TraceBuilder()
        .rank(12)
        .kernel("gemm", start_us=0, duration_us=1)
        .rank(3)
        .kernel("gemm", start_us=0, duration_us=2)
        .rank(5)
        .operator("aten::mm", start_us=0, duration_us=1)
    )

    result = temporal_breakdown(builder.build())

    assert result.per_device.to_dicts() == [row(3, 0, 0, (2_000, 0, 0)), row(12, 0, 0, (1_000, 0, 0))]
    assert len(result.findings) == 1
    assert result.findings[0].startswith("rank 5 has no GPU kernels (")


@pytest.mark.parametrize("builder", [TraceBuilder(), TraceBuilder().operator("aten::mm", start_us=0, duration_us=1)])
def test_a_job_without_gpu_work_is_an_error(builder: TraceBuilder) -> None:
    """If the trace has no events or only operators, the error names the analysis and the rank."""
    with pytest.raises(MissingDataError, match=r"^temporal_breakdown: rank 0 has no GPU kernels to measure"):
        temporal_breakdown(builder.build())


def test_a_job_on_cpus_alone_is_an_error_that_says_so(real_traces) -> None:
    """For a DDP job on CPUs, the error gives the numbers of CPU and GPU events of rank 0."""
    with pytest.raises(MissingDataError, match=r"rank 0 has no GPU kernels .* CPU events, 0 GPU events"):
        temporal_breakdown(opened(real_traces / "ddp_gloo_4rank"))


def test_waiting_is_idle() -> None:
    """Synchronisation between two kernels counts as idle time; the window ends with the last kernel."""
    builder = (
        TraceBuilder()
        .kernel("a", start_us=0, duration_us=10)
        .sync("Stream Sync", start_us=10, duration_us=80)
        .kernel("b", start_us=90, duration_us=10)
        .sync("Context Sync", start_us=100, duration_us=900, stream=4294967295)
    )

    assert breakdown(builder) == [row(0, 0, 0, (20_000, 0, 80_000))]


def test_amd_stream_0_is_measured() -> None:
    """On ROCm's stream 0, a matrix product of 5 µs counts as computation, and a copy kernel of 2 µs as other work."""
    builder = (
        TraceBuilder()
        .kernel("Cijk_Alik_Bljk", start_us=0, duration_us=5, stream=0, launch_us=-3, launch_name="hipLaunchKernel")
        .kernel("__amd_rocclr_copyBuffer", start_us=5, duration_us=2, stream=0)
    )

    assert breakdown(builder) == [row(0, 0, 0, (5_000, 2_000, 0))]


def test_processes_give_the_same_table() -> None:
    """Kernel rules added in this process also apply in worker processes, so the table is the same with workers."""
    builder = TraceBuilder()
    for rank in range(3):
        builder.rank(rank).kernel("my_ring", start_us=rank, duration_us=2).kernel("gemm", start_us=9, duration_us=1)
    trace = builder.build()
    add_rule("my_ring", "communication")

    try:
        with processes(2) as pool:
            apart = temporal_breakdown(trace, executor=pool)
        together = temporal_breakdown(trace)
    finally:
        remove_added_rules()

    assert apart.per_device.equals(together.per_device)
    assert apart.per_device["non_computation_ns"].to_list() == [2_000, 2_000, 2_000]


works = st.lists(
    st.tuples(st.sampled_from(["gemm", "ncclDevKernel"]), st.integers(0, 60), st.integers(0, 12)),
    min_size=1,
    max_size=12,
)


@given(works)
def test_the_parts_are_the_nanoseconds_that_an_oracle_counts(work: list[tuple[str, int, int]]) -> None:
    """For random kernels, the computation, other work and idle time equal those of an oracle that checks every ns."""
    builder = TraceBuilder()
    for name, start, duration in work:
        builder.kernel(name, start_us=start / 1000, duration_us=duration / 1000)

    (result,) = breakdown(builder)

    pairs = [(name, start, start + duration) for name, start, duration in work]
    compute = len(covered((start, end) for name, start, end in pairs if name == "gemm"))
    busy = len(covered((start, end) for _, start, end in pairs))
    window = max(end for _, _, end in pairs) - min(start for _, start, _ in pairs)
    assert result == row(0, 0, min(start for _, start, _ in pairs), (compute, busy - compute, window - busy))
