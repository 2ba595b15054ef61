"""Tests of operator_kernels: each operator's kernels, launch delays, forward operator and module."""

from __future__ import annotations

import pytest

from holotrace import open_trace
from holotrace.analyses.operator_kernels.compute import operator_kernels, operators_over_ranks
from holotrace.errors import MissingDataError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job


def training() -> TraceBuilder:
    """Return aten::mm in Linear_0 with a kernel of 4 µs, and its backward operator with kernels of 3 and 2 µs."""
    place = {"ph": "X", "pid": 1000, "tid": 1, "cat": "python_function"}
    numbers = {"Sequence number": 7}
    return (
        TraceBuilder()
        .event(name="nn.Module: Linear_0", ts=0, dur=20, args={"Python id": 1}, **place)
        .operator("aten::mm", start_us=1, duration_us=10, args={**numbers, "Fwd thread id": 0})
        .kernel("gemm", start_us=30, duration_us=4, launch_us=3)
        .operator("MmBackward0", start_us=50, duration_us=20, thread=2, args={**numbers, "Fwd thread id": 1})
        .operator("aten::mm", start_us=52, duration_us=10, thread=2)
        .kernel("gemm_t", start_us=80, duration_us=3, launch_us=53, thread=2)
        .operator("aten::add", start_us=63, duration_us=5, thread=2)
        .kernel("add", start_us=90, duration_us=2, launch_us=64, thread=2)
    )


def test_kernels_belong_to_the_innermost_operator() -> None:
    """Each innermost operator has a row with its kernels and two mean delays.

    The first delay lasts from the start of the operator to the start of the launch call.
    The second delay lasts from the start of the launch call to the start of the kernel.
    """
    assert operator_kernels(training().build()).per_sequence.to_dicts() == [
        {
            "rank": 0,
            "operator": operator,
            "kernels": kernel,
            "call_count": 1,
            "kernel_ns": 1_000 * length,
            "mean_operator_to_launch_ns": 1_000.0 * to_launch,
            "mean_launch_to_kernel_ns": 1_000.0 * to_start,
        }
        for operator, kernel, length, to_launch, to_start in (
            ("aten::add", "add", 2, 1, 26),
            ("aten::mm", "gemm", 4, 2, 27),
            ("aten::mm", "gemm_t", 3, 1, 27),
        )
    ]


def test_backward_kernels_belong_to_the_forward_operator_too() -> None:
    """aten::mm has 4 µs of forward kernels and 5 µs of backward kernels, which were launched inside MmBackward0."""
    assert operator_kernels(training().build()).per_forward.to_dicts() == [
        {
            "rank": 0,
            "operator": "aten::mm",
            "module": "Linear_0",
            "forward_kernel_count": 1,
            "forward_kernel_ns": 4_000,
            "backward_kernel_count": 2,
            "backward_kernel_ns": 5_000,
            "kernel_ns": 9_000,
        }
    ]


def test_kernels_are_in_the_order_of_their_launches() -> None:
    """Each of two calls launches the kernels a and b; the mean delays are those of a, the first kernel of each call."""
    builder = TraceBuilder()
    for begin, to_launch in ((0, 1), (100, 3)):
        builder.operator("aten::sum", start_us=begin, duration_us=20)
        builder.kernel("a", start_us=begin + 30, duration_us=2, launch_us=begin + to_launch)
        builder.kernel("b", start_us=begin + 40, duration_us=2, launch_us=begin + 6)

    columns = ("kernels", "call_count", "mean_operator_to_launch_ns", "mean_launch_to_kernel_ns")
    assert operator_kernels(builder.build()).per_sequence.select(columns).rows() == [("a -> b", 2, 2_000.0, 28_000.0)]


def test_copies_count_when_asked_for() -> None:
    """With `include_memory`, the sequence includes the copy that aten::copy_ launches."""
    builder = (
        TraceBuilder()
        .operator("aten::copy_", start_us=0, duration_us=10)
        .copy(start_us=20, duration_us=5, launch_us=1)
        .kernel("k", start_us=30, duration_us=5, launch_us=2)
    )

    def kernels(*, include_memory: bool) -> list[str]:
        return operator_kernels(builder.build(), include_memory=include_memory).per_sequence["kernels"].to_list()

    assert kernels(include_memory=False) == ["k"]
    assert kernels(include_memory=True) == ["Memcpy HtoD (Pinned -> Device) -> k"]


def test_all_kernels_of_a_graph_count() -> None:
    """An operator launches a graph of two kernels; its row lists both kernels as one sequence."""
    builder = (
        TraceBuilder()
        .operator("CompiledFunction", start_us=0, duration_us=10)
        .kernel("a", start_us=20, duration_us=5, launch_us=1, launch_name="cudaGraphLaunch", correlation=3)
        .kernel("b", start_us=30, duration_us=5, correlation=3)
    )

    table = operator_kernels(builder.build()).per_sequence
    assert table.select("operator", "kernels").rows() == [("CompiledFunction", "a -> b")]


def test_kernels_without_an_operator_are_noticed() -> None:
    """A kernel launched outside operators and a kernel without a launch have no row, but a finding counts them."""
    builder = (
        TraceBuilder().kernel("a", start_us=20, duration_us=5, launch_us=1).kernel("b", start_us=40, duration_us=5)
    )

    result = operator_kernels(builder.build())

    assert (result.per_sequence.height, result.per_forward.height) == (0, 0)
    assert result.findings == ("rank 0: 2 of 2 kernels have no known operator",)


def test_ranks_are_summed_for_people() -> None:
    """An operator with a kernel of 5 µs on each of two ranks becomes one row with 10 µs."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).operator("op", start_us=0, duration_us=10).kernel(
            "k", start_us=20, duration_us=5, launch_us=1
        )

    result = operator_kernels(builder.build())

    assert result.per_forward["rank"].to_list() == [0, 1]
    assert operators_over_ranks(result)["kernel_ns"].to_list() == [10_000]


def test_a_job_without_gpu_work_is_an_error() -> None:
    """If the trace has only operators, MissingDataError is raised."""
    with pytest.raises(MissingDataError, match=r"^operator_kernels: rank 0"):
        operator_kernels(TraceBuilder().operator("op", start_us=0, duration_us=5).build())


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """Both tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=2, steps=2, layers=2, seed=1)
    result = operator_kernels(open_trace(tmp_path, cache=False))

    golden.check(result.per_sequence, "operator_kernels/synthetic_job.per_sequence")
    golden.check(result.per_forward, "operator_kernels/synthetic_job.per_forward")
