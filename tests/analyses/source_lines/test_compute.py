"""Tests of source_lines: the host and device time of each line of user code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import holotrace
from holotrace.algorithms.covered_by_group import covered_by_number
from holotrace.analyses.source_lines.compute import source_lines
from holotrace.analyses.source_lines.tables import VIEWS
from holotrace.enrich.host.source_lines import host_lines
from holotrace.testing.builder import TraceBuilder

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests" / "reference" / "traces"
EXAMPLES = ROOT / "examples" / "gpu" / "traces"
FUNCTION = "autograd::engine::evaluate_function: "
ENGINE = "<built-in method run_backward of torch._C._EngineBase object at 0x7f12>"


def training() -> TraceBuilder:
    """Return a step of 180 µs: `main` sleeps, calls a model, runs the backward pass, and waits for the device.

    Autograd's thread 2 computes the gradient, and then launches work that belongs to no forward operator.
    """
    builder = TraceBuilder().python("train.py(5): main", start_us=0, duration_us=200).step(1, 10, 180)
    builder.python("<built-in function sleep>", start_us=20, duration_us=30)
    builder.python("torch/nn/modules/module.py(9): _call_impl", start_us=60, duration_us=40)
    builder.python("model.py(2): forward", start_us=62, duration_us=36)
    builder.python("nn.Module: Linear_3", start_us=65, duration_us=25)
    builder.operator("aten::mm", start_us=66, duration_us=22, args={"Sequence number": 7, "Fwd thread id": 0})
    builder.kernel("gemm", start_us=100, duration_us=10, launch_us=70, launch_duration_us=2)
    builder.python("torch/_tensor.py(1): backward", start_us=110, duration_us=50)
    builder.python(ENGINE, start_us=112, duration_us=46)
    builder.operator(f"{FUNCTION}MmBackward0", start_us=115, duration_us=25, thread=2)
    backward = {"Sequence number": 7, "Fwd thread id": 1}
    builder.operator("MmBackward0", start_us=116, duration_us=23, thread=2, args=backward)
    builder.kernel("gemm_t", start_us=130, duration_us=20, launch_us=120, launch_duration_us=2, thread=2)
    builder.operator("FSDP::post_backward", start_us=145, duration_us=5, thread=2)
    builder.kernel("reduce", start_us=152, duration_us=8, launch_us=146, launch_duration_us=1, thread=2)
    return builder.runtime("cudaDeviceSynchronize", start_us=165, duration_us=20)


def rows(table, *columns: str) -> list[tuple]:
    """Return the chosen columns of a table as tuples."""
    return table.select(columns).rows()


def test_host_time_belongs_to_the_innermost_line() -> None:
    """`forward` takes 36 µs in the forward pass and 25 µs in the backward pass; `main` takes the other 169 µs.

    `main` waits for 66 of its 169 µs.
    """
    result = source_lines(training().build())

    columns = ("function", "call_count", "host_self_ns", "host_python_ns", "host_blocked_ns", "backward_host_self_ns")
    assert rows(result.per_line, "file", "line", *columns, "host_total_ns") == [
        ("train.py", 5, "main", 1, 169_000, 98_000, 66_000, 5_000, 200_000),
        ("model.py", 2, "forward", 1, 61_000, 14_000, 0, 25_000, 36_000),
    ]
    assert result.per_line["step_fraction"].to_list() == pytest.approx([144 / 180, 61 / 180])
    assert result.findings == ()


def test_device_time_belongs_to_the_line_that_launched_the_work_or_called_its_forward_operator() -> None:
    """`forward` gets 30 µs of kernel time, 20 µs of it in the backward pass; `main`, which calls backward, gets 8 µs.

    The device is idle from 110 to 122 µs: the first 5 µs, before autograd's thread starts, count toward `main`,
    and the rest toward `forward`.
    """
    result = source_lines(training().build())

    columns = ("device_self_ns", "device_self_busy_ns", "backward_device_self_ns", "device_total_ns", "device_idle_ns")
    assert rows(result.per_line, "function", *columns) == [
        ("main", 8_000, 8_000, 8_000, 38_000, 5_000),
        ("forward", 30_000, 30_000, 20_000, 30_000, 7_000),
    ]
    assert (
        result.answer
        == "78.9 % of the device time (30 µs) comes from model.py(2): forward, more than from any other line."
    )


def test_a_line_lists_what_it_called() -> None:
    """Callees are listed without object addresses and module numbers; a null callee means the line's own code."""
    result = source_lines(training().build())

    columns = ("callee", "call_count", "host_self_ns", "host_blocked_ns", "device_self_ns")
    assert rows(result.per_callee, "function", *columns) == [
        ("main", None, None, 60_000, 0, 0),
        ("main", "torch/_tensor.py(1): backward", 1, 50_000, 46_000, 0),
        ("main", "<built-in function sleep>", 1, 30_000, 0, 0),
        ("main", "cudaDeviceSynchronize", 1, 20_000, 20_000, 0),
        ("main", "FSDP::post_backward", 1, 5_000, 0, 8_000),
        ("main", "torch/nn/modules/module.py(9): _call_impl", 1, 4_000, 0, 0),
        ("forward", "MmBackward0", 1, 25_000, 0, 20_000),
        ("forward", "nn.Module: Linear", 1, 25_000, 0, 10_000),
        ("forward", None, None, 11_000, 0, 0),
    ]
    assert result.per_line["callees"].to_list() == [
        "torch/_tensor.py(1): backward; <built-in function sleep>; cudaDeviceSynchronize",
        "MmBackward0; nn.Module: Linear",
    ]


def test_more_libraries_can_be_named() -> None:
    """If `model` is named as a library, the time of its functions counts toward the line that called them."""
    builder = TraceBuilder().python("train.py(5): main", start_us=0, duration_us=50)
    builder.python("model/net.py(2): forward", start_us=10, duration_us=30).python(
        "models.py(1): g", start_us=15, duration_us=5
    )
    trace = builder.build()

    def lines(libraries: list[str]) -> list[tuple]:
        return rows(source_lines(trace, libraries=libraries).per_line, "file", "host_self_ns")

    assert lines([]) == [("model/net.py", 25_000), ("train.py", 20_000), ("models.py", 5_000)]
    assert lines(["model"]) == lines(["model/"]) == [("train.py", 45_000), ("models.py", 5_000)]
    assert lines(["models"]) == [("model/net.py", 30_000), ("train.py", 20_000)]


def test_recursive_calls_count_once_in_totals() -> None:
    """A function of 50 µs calls itself for 20 µs; its total is 50 µs, and the kernel of the inner call counts once."""
    builder = TraceBuilder().python("tree.py(1): walk", start_us=0, duration_us=50)
    builder.python("tree.py(1): walk", start_us=10, duration_us=20)
    builder.kernel("gemm", start_us=40, duration_us=5, launch_us=15, launch_duration_us=1)

    columns = ("call_count", "host_self_ns", "host_total_ns", "device_self_ns", "device_total_ns")
    assert rows(source_lines(builder.build()).per_line, *columns) == [(2, 50_000, 50_000, 5_000, 5_000)]


def test_time_and_work_without_a_line_have_a_row_of_their_own() -> None:
    """Operators outside Python functions, and kernels without a launch, have no line, and a finding says so."""
    builder = TraceBuilder().python("a.py(1): f", start_us=0, duration_us=10)
    builder.operator("aten::mul", start_us=0, duration_us=7, thread=5).kernel("gemm", start_us=3, duration_us=9)
    result = source_lines(builder.build())

    columns = ("file", "callees", "host_self_ns", "device_self_ns", "call_count", "host_total_ns")
    assert rows(result.per_line, *columns) == [
        ("a.py", None, 10_000, 0, 1, 10_000),
        (None, "aten::mul", 7_000, 9_000, None, None),
    ]
    assert result.findings == (
        "rank 0: 100.0 % of the device time has no line, because no user code launched the work, or its launch is unknown",
    )


def test_waiting_for_a_data_loader_counts_as_the_time_of_the_line() -> None:
    """Time in `acquire` counts as waiting, except inside the `__next__` of a data loader."""
    builder = TraceBuilder().python("a.py(1): f", start_us=0, duration_us=100)
    loader = "torch/utils/data/dataloader.py(8): __next__"
    builder.python(loader, start_us=10, duration_us=30)
    for start_us in (20, 60):
        builder.python("<built-in method acquire of lock>", start_us=start_us, duration_us=15)

    assert rows(source_lines(builder.build()).per_line, "host_self_ns", "host_blocked_ns") == [(100_000, 15_000)]


def test_stacks_of_operators_give_lines_without_python_functions() -> None:
    """Up to PyTorch 1.12, only operators have call stacks, so time outside operators has no line."""
    stack = "torch/nn/functional.py(1848): linear;/home/me/model.py(42): forward;/home/me/train.py(7): <module>"
    builder = TraceBuilder().operator("aten::linear", start_us=0, duration_us=20, args={"Call stack": stack})
    builder.operator("aten::addmm", start_us=5, duration_us=10, args={"Call stack": stack})
    builder.kernel("gemm", start_us=30, duration_us=5, launch_us=6, launch_duration_us=1)
    builder.annotation("loading", start_us=50, duration_us=9)
    result = source_lines(builder.build())

    columns = ("file", "line", "function", "callees", "call_count", "host_self_ns", "host_total_ns", "device_self_ns")
    assert rows(result.per_line, *columns, "device_total_ns") == [
        ("/home/me/model.py", 42, "forward", "aten::linear", None, 20_000, None, 5_000, None),
        (None, None, None, None, None, 9_000, None, 0, None),
    ]
    assert result.findings == ("rank 0: only operators have call stacks, so time outside operators has no line",)


def test_without_stacks_the_tables_are_empty() -> None:
    """If no Python functions were recorded, the answer says how to record them."""
    result = source_lines(TraceBuilder().operator("aten::mul", start_us=0, duration_us=5).build())

    assert (len(result.per_line), len(result.per_callee), len(result.excess)) == (0, 0, 0)
    assert result.answer == (
        "rank 0: no Python functions were recorded; record with with_stack=True to see which lines take the time"
    )


def late_rank() -> TraceBuilder:
    """Return three ranks with two steps of 100 µs; in each step, rank 2 sleeps for 40 µs and the others wait for it."""
    builder = TraceBuilder()
    for rank in range(3):
        builder.rank(rank).python("train.py(1): main", start_us=0, duration_us=200)
        for step in range(2):
            builder.step(step, 100 * step, 100)
            builder.operator("aten::mul", start_us=100 * step, duration_us=10)
            sleep_us = 40 if rank == 2 else 0
            if sleep_us:
                builder.python("<built-in function sleep>", start_us=100 * step + 10, duration_us=sleep_us)
            wait = "<built-in method wait of Work object at 0x1>"
            builder.python(wait, start_us=100 * step + 10 + sleep_us, duration_us=90 - sleep_us)
    return builder


def test_the_excess_names_the_late_rank_its_line_and_what_it_called() -> None:
    """`main` takes the same time on all ranks, but rank 2 sleeps 40 µs more per step than the median rank."""
    result = source_lines(late_rank().build())

    columns = ("own_ns_per_step", "typical_ns_per_step", "excess_ns_per_step", "excess_fraction")
    assert rows(result.excess, "rank", "file", "line", "function", "callee", *columns) == [
        (2, "train.py", 1, "main", "<built-in function sleep>", 40_000, 0, 40_000, 0.4)
    ]
    assert result.answer == (
        "Rank 2 spends 40 µs more per step than the median rank in <built-in function sleep>, called from train.py(1): main."
    )


@pytest.mark.parametrize(
    ("job", "rank", "line"),
    [
        (RECORDED / "ddp_gloo_4rank", 3, "ddp.py(35): main"),
        (RECORDED / "pipeline_gloo_4rank", 2, "record_pipeline_gloo.py(12): forward"),
        (EXAMPLES / "two_ranks-pipeline-slow_rank1", 1, "distributed.py(87): step"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_recorded_late_ranks_sleep(job: Path, rank: int, line: str) -> None:
    """In recorded jobs in which one rank sleeps, the largest excess is the sleep of this rank."""
    result = source_lines(holotrace.open_trace(job))
    first = VIEWS[1].table(result).row(0, named=True)
    assert (first["rank"], first["callee"], first["source_line"]) == (rank, "<built-in function sleep>", line)


@pytest.mark.parametrize("name", ["ddp_gloo_4rank", "pipeline_gloo_4rank"])
def test_self_times_add_up_to_the_recorded_time_of_the_threads(name: str) -> None:
    """The self times of all lines, and those of all callees, add up to the recorded time of all threads."""
    trace = holotrace.open_trace(RECORDED / name)
    result = source_lines(trace)
    for rank, rank_trace in trace.ranks.items():
        ranges = host_lines(rank_trace).ranges
        track = ranges["track_id"].to_numpy()
        times = ranges["start_ns"].to_numpy(), ranges["end_ns"].to_numpy()
        traced_ns = int(np.sum(covered_by_number(track, *times, int(track.max()) + 1)))
        for table in (result.per_line, result.per_callee):
            assert table.filter(rank=rank)["host_self_ns"].sum() == traced_ns


def test_device_times_add_up_to_all_device_work() -> None:
    """The device times of all lines, and those of all callees, add up to the total of the outermost line."""
    result = source_lines(holotrace.open_trace(EXAMPLES / "training"))
    assert result.per_line["device_self_ns"].sum() == result.per_callee["device_self_ns"].sum()
    assert result.per_line["device_total_ns"].max() == result.per_line["device_self_ns"].sum()


def test_the_tables_equal_their_golden_copies(golden) -> None:
    """The tables of a recorded job equal their golden copies."""
    result = source_lines(holotrace.open_trace(EXAMPLES / "small-loader"))
    golden.check(result.per_line, "source_lines/small-loader.per_line")
    golden.check(result.per_callee.head(60), "source_lines/small-loader.per_callee")
    late = source_lines(holotrace.open_trace(RECORDED / "ddp_gloo_4rank"))
    golden.check(late.excess.head(20), "source_lines/ddp_gloo_4rank.excess")
