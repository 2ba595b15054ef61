"""Tests of what_if, which predicts the length of a window after changes."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.enrich.critical_path.path_graph import PathGraph, critical_path_graph
from holotrace.enrich.critical_path.what_if import (
    Change,
    NoLaunchOverhead,
    PerfectOverlap,
    Remove,
    Replace,
    Scale,
    WhatIf,
    what_if,
)
from holotrace.errors import InconsistentTimesError, InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from recordings import opened


def path_graph(builder: TraceBuilder) -> PathGraph:
    """Build the trace and return the path graph of its only rank."""
    (rank_trace,) = builder.build().ranks.values()
    return critical_path_graph(rank_trace)


def predicted_us(builder: TraceBuilder, *changes: Change) -> float:
    """Return the predicted length of the window in µs."""
    return what_if(path_graph(builder), changes).predicted_ns / 1_000


def gpu_bound() -> TraceBuilder:
    """Return a host step of 40 µs that launches the kernels gemm (10 to 110 µs) and relu (111 to 211 µs)."""
    return (
        TraceBuilder()
        .step(1, 0, 40)
        .operator("aten::linear", start_us=4, duration_us=20)
        .kernel("gemm", start_us=10, duration_us=100, launch_us=5)
        .kernel("relu", start_us=111, duration_us=100, launch_us=20)
    )


def is_named(name: str) -> pl.Expr:
    """Select the activities called `name`."""
    return pl.col("name") == name


@pytest.mark.parametrize(
    ("changes", "expected_us"),
    [
        ((), 211),
        ((Scale(is_named("gemm"), 0.5),), 161),
        ((Scale(pl.col("device").is_not_null(), 2),), 411),
        ((Remove(is_named("gemm")),), 121),
        ((Replace(is_named("relu"), 20_000),), 131),
        ((Remove(is_named("gemm")), Replace(is_named("relu"), 20_000)), 41),
        ((NoLaunchOverhead(),), 206),
    ],
    ids=["nothing", "faster", "slower", "removed", "replaced", "two changes", "no launch overhead"],
)
def test_a_device_bound_window_follows_its_kernels(changes: tuple[Change, ...], expected_us: float) -> None:
    """Without gemm, relu starts when its launch call returns, at 21 µs.

    Without launch overhead, gemm starts when its launch call starts, at 5 µs.
    """
    assert predicted_us(gpu_bound(), *changes) == expected_us


def test_time_of_unknown_cause_stays_without_launches() -> None:
    """NoLaunchOverhead removes the call of 4 µs, but not the 386 µs of unknown cause before the first kernel."""
    builder = TraceBuilder().step(1, 0, 40)
    builder.kernel("decode", start_us=400, duration_us=20, launch_us=10, launch_duration_us=4)
    assert (predicted_us(builder), predicted_us(builder, NoLaunchOverhead())) == (420, 416)


def test_a_prediction_never_undercuts_the_host() -> None:
    """If kernels take no time, the host still needs 40 µs."""
    assert predicted_us(gpu_bound(), Remove(pl.col("device").is_not_null())) == 40


def test_host_ranges_change_outside_inner_ranges() -> None:
    """Halving `outer` saves half of its 30 µs of self time; `inner` does not change."""
    builder = (
        TraceBuilder()
        .step(1, 0, 60)
        .operator("outer", start_us=0, duration_us=60)
        .operator("inner", start_us=10, duration_us=30)
    )

    assert predicted_us(builder, Scale(is_named("outer"), 0.5)) == 45
    assert predicted_us(builder, Replace(is_named("outer"), 3_000)) == 33
    assert predicted_us(builder, Remove(is_named("inner"))) == 30


def test_a_shorter_wait_lets_the_host_continue_earlier() -> None:
    """Halving gemm saves 26 of 100 µs, because the host waits for gemm before it runs its last operator."""
    builder = (
        TraceBuilder()
        .step(1, 0, 100)
        .kernel("gemm", start_us=8, duration_us=52, launch_us=2, launch_duration_us=3)
        .runtime("cudaDeviceSynchronize", start_us=10, duration_us=52)
        .operator("aten::add", start_us=62, duration_us=38)
    )

    assert predicted_us(builder, Scale(is_named("gemm"), 0.5)) == 74


def exposed_communication() -> TraceBuilder:
    """Return backward (5 to 25 µs), an all-reduce (25 to 125 µs) that waits for it, and then adam (125 to 145 µs)."""
    waits = [(7, 50, 51, 20, 2), (20, 52, 53, 7, 6)]
    builder = (
        TraceBuilder()
        .step(1, 0, 30)
        .kernel("backward", start_us=5, duration_us=20, launch_us=1)
        .collective(start_us=25, duration_us=100, launch_us=4)
        .kernel("adam", start_us=125, duration_us=20, launch_us=8)
    )
    for waited, record, wait, stream, start in waits:
        args = {"wait_on_stream": waited, "wait_on_cuda_event_record_corr_id": record}
        builder.runtime("cudaEventRecord", start_us=start, duration_us=0, correlation=record)
        builder.runtime("cudaStreamWaitEvent", start_us=start + 1, duration_us=0, correlation=wait)
        builder.sync("Stream Wait Event", start_us=start + 1, duration_us=0, stream=stream, correlation=wait, args=args)
    return builder


def test_perfect_overlap_hides_communication_but_does_not_shorten_it() -> None:
    """With perfect overlap, the window ends with the all-reduce at 125 µs; without the all-reduce, it ends at 45 µs."""
    assert predicted_us(exposed_communication()) == 145
    assert predicted_us(exposed_communication(), PerfectOverlap()) == 125
    assert predicted_us(exposed_communication(), Remove(pl.col("kernel_kind") == 1)) == 45
    assert predicted_us(exposed_communication(), PerfectOverlap(), Scale(pl.col("kernel_kind") == 1, 0.1)) == 45


def test_savings_are_reported() -> None:
    """Making gemm twice as fast saves 50 of 211 µs."""
    answer = what_if(path_graph(gpu_bound()), [Scale(is_named("gemm"), 0.5)])

    assert (answer.saved_ns, answer.saved_fraction) == (50_000, pytest.approx(50 / 211))
    assert answer.replayed_ns == answer.measured_ns == 211_000
    assert WhatIf(0, 0, 0).saved_fraction is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Remove(is_named("no such kernel")), "none of the 5 activities"),
        (Scale(is_named("gemm"), -1), "-1 is negative"),
        (Replace(is_named("gemm"), -5), "-5 is negative"),
    ],
)
def test_a_change_that_selects_nothing_or_is_negative_is_an_error(change: Change, message: str) -> None:
    """A change that selects nothing, or has a negative factor or time, raises an error instead of misleading users."""
    with pytest.raises(InvalidOptionError, match=message):
        what_if(path_graph(gpu_bound()), [change])


def test_large_contradictions_prevent_a_prediction() -> None:
    """If kernels start 40 µs before the calls that launched them, the window cannot be replayed."""
    builder = TraceBuilder().step(1, 0, 300)
    for place in range(3):
        start = 100 * place
        builder.kernel(f"k{place}", start_us=start + 10, duration_us=45, launch_us=start + 50)
        builder.runtime("cudaDeviceSynchronize", start_us=start + 52, duration_us=3)

    with pytest.raises(InconsistentTimesError, match="without any change the replay takes"):
        what_if(path_graph(builder), [])


@given(st.floats(0, 3), st.sampled_from(["aten::linear", "gemm", "relu", "cudaLaunchKernel"]))
def test_more_time_never_makes_a_window_shorter(factor: float, name: str) -> None:
    """Longer activities never shorten the window, and shorter ones never lengthen it."""
    answer = what_if(GPU_BOUND, [Scale(is_named(name), factor)])

    assert answer.saved_ns <= 0 if factor >= 1 else answer.saved_ns >= 0


GPU_BOUND = path_graph(gpu_bound())


@pytest.mark.slow
def test_faster_kernels_of_a_real_step_are_predicted(real_traces) -> None:
    """The device limits the step in `diff/test`, so making kernels twice as fast saves 25 to 50 % of the step."""
    (rank_trace,) = opened(real_traces / "diff" / "test").ranks.values()
    graph = critical_path_graph(rank_trace)

    assert 0.25 < (what_if(graph, [Scale(pl.col("device").is_not_null(), 0.5)]).saved_fraction or 0) < 0.5
    assert what_if(graph, []).saved_ns == 0
