"""Tests of cupti_counters: hardware counters per kernel, with the launch and operators of each kernel."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import polars as pl
import pytest

from holotrace.analyses.cupti_counters.compute import FLOP_OF_COUNTER, cupti_counters
from holotrace.testing.builder import TraceBuilder
from recordings import opened

if TYPE_CHECKING:
    from pathlib import Path

FFMA, FADD = (f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum" for name in ("ffma", "fadd"))


def measured(
    builder: TraceBuilder, name: str, start_us: int, *, correlation: int | None = None, **values: float
) -> None:
    """Add a profiler range with these counter values, for example `ffma=10`."""
    known = {"correlation": correlation} if correlation else {}
    args = {f"smsp__sass_thread_inst_executed_op_{counter}_pred_on.sum": value for counter, value in values.items()}
    builder.event(
        ph="X", cat="cuda_profiler_range", name=name, pid=0, tid=0, ts=start_us, dur=5, args={**known, **args}
    )


def launching(builder: TraceBuilder, **calls: tuple[str, int]) -> TraceBuilder:
    """For each `name=(operator, start)`, add an operator of 10 µs that contains another operator and a launch."""
    for number, (operator, start) in enumerate(calls.values()):
        builder.operator(operator, start_us=start, duration_us=10)
        builder.operator(f"{operator}.inner", start_us=start + 1, duration_us=5)
        builder.runtime("cudaLaunchKernel", start_us=start + 2, duration_us=1, correlation=100 + number)
    return builder


def test_ranges_are_joined_with_launches_in_order() -> None:
    """Without correlations or kernels, ranges and launches are matched in order: the first to the first, and so on."""
    builder = launching(TraceBuilder(), first=("mm", 0), second=("add", 20))
    measured(builder, "gemm", 100, ffma=10, fadd=3)
    measured(builder, "plus", 110, fadd=4)
    result = cupti_counters(builder.build())

    assert result.per_kernel.to_dicts() == [
        {
            "rank": 0,
            "event_index": 6,
            "start_ns": 100_000,
            "duration_ns": 5_000,
            "name": "gemm",
            "flop": 23.0,
            "launch_index": 2,
            "operator_stack": ["mm", "mm.inner"],
            "top_operator": "mm",
            "operator": "mm.inner",
        },
        {
            "rank": 0,
            "event_index": 7,
            "start_ns": 110_000,
            "duration_ns": 5_000,
            "name": "plus",
            "flop": 4.0,
            "launch_index": 5,
            "operator_stack": ["add", "add.inner"],
            "top_operator": "add",
            "operator": "add.inner",
        },
    ]
    assert result.counters.rows() == [(0, 6, FFMA, 10.0), (0, 6, FADD, 3.0), (0, 7, FADD, 4.0)]
    assert result.findings == ()


def test_a_correlation_has_priority_over_order() -> None:
    """Correlations identify the launch of each range, even if the orders differ and one launch has no range."""
    builder = launching(TraceBuilder(), first=("mm", 0), second=("add", 20), third=("sub", 40))
    measured(builder, "minus", 100, correlation=102, fadd=1)
    measured(builder, "gemm", 110, correlation=100, fadd=1)
    assert cupti_counters(builder.build()).per_kernel["top_operator"].to_list() == ["sub", "mm"]


def test_names_have_priority_over_order() -> None:
    """The range `plus` comes first but is matched to the second launch, because that launch ran the kernel `plus`."""
    builder = TraceBuilder()
    for name, operator, start in (("gemm", "mm", 0), ("plus", "add", 20)):
        builder.operator(operator, start_us=start, duration_us=10)
        builder.kernel(name, start_us=start + 50, duration_us=1, launch_us=start + 2)
    measured(builder, "plus", 100, fadd=1)
    measured(builder, "gemm", 110, fadd=1)
    assert cupti_counters(builder.build()).per_kernel["top_operator"].to_list() == ["add", "mm"]


def test_a_missing_launch_leaves_operators_unknown_and_keeps_values() -> None:
    """Three ranges cannot be matched to two launches; the ranges keep their values, but have unknown operators."""
    builder = launching(TraceBuilder(), first=("mm", 0), second=("add", 20))
    for start in (100, 110, 120):
        measured(builder, "gemm", start, ffma=1)
    result = cupti_counters(builder.build())
    assert result.per_kernel.select("flop", "launch_index", "top_operator").rows() == [(2.0, None, None)] * 3
    assert result.per_kernel["operator_stack"].to_list() == [[], [], []]
    assert result.findings == ("rank 0: the launches of some ranges are unknown, so their operators are unknown, too",)


def test_a_driver_call_inside_a_runtime_call_is_not_a_second_launch() -> None:
    """A driver call with the same correlation as the runtime call around it does not count as a second launch."""
    builder = launching(TraceBuilder(), first=("mm", 0))
    builder.runtime("cuLaunchKernel", start_us=2.5, duration_us=0.25, correlation=100)
    measured(builder, "gemm", 100, ffma=1)
    assert cupti_counters(builder.build()).per_kernel["operator"].to_list() == ["mm.inner"]


def test_other_counters_do_not_count_as_operations() -> None:
    """If only bytes were counted, the kernel's FLOP is null, not 0."""
    builder = launching(TraceBuilder(), first=("mm", 0))
    builder.event(
        ph="X", cat="cuda_profiler_range", name="gemm", pid=0, tid=0, ts=90, dur=5, args={"dram__bytes_read.sum": 64}
    )
    result = cupti_counters(builder.build())
    assert result.per_kernel["flop"].to_list() == [None]
    assert result.counters.rows() == [(0, 3, "dram__bytes_read.sum", 64.0)]


def test_a_fused_multiply_add_is_two_operations() -> None:
    """Of nine counters, three are for fused multiply-adds, which are 2 FLOP each; all other operations are 1 FLOP."""
    assert sorted(FLOP_OF_COUNTER.values()) == [1.0] * 6 + [2.0] * 3
    assert FLOP_OF_COUNTER[FFMA] == 2.0


def test_a_job_without_counters_says_what_to_record() -> None:
    """Without counters, the tables are empty, and a finding says to set `profiler_metrics`."""
    result = cupti_counters(TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build())
    assert (result.per_kernel.height, result.counters.height) == (0, 0)
    assert "profiler_metrics" in result.findings[0]


def test_launches_and_operators_equal_those_of_hta(real_traces: Path, goldens: Path) -> None:
    """For AlexNet, each kernel has the same launch, operator stack and FLOP as in HTA's output."""
    result = cupti_counters(opened(real_traces / "cupti"))
    theirs = pl.read_csv(goldens / "hta" / "cupti_profiler" / "get_cupti_counter_data_with_operators.0.csv.gz")
    ours = result.per_kernel
    assert ours["event_index"].to_list() == theirs["index"].to_list()
    assert ours["name"].to_list() == theirs["name"].to_list()
    assert ours["launch_index"].to_list() == theirs["index_runtime"].to_list()
    assert ours["operator_stack"].to_list() == [ast.literal_eval(text) for text in theirs["op_stack"]]
    weighted = sum(theirs[name] * weight for name, weight in FLOP_OF_COUNTER.items())
    assert ours["flop"].to_list() == pytest.approx(weighted.to_list())


def test_the_tables_equal_their_golden_copies(golden) -> None:
    """Both tables equal their golden copies; the operator stack becomes one string because CSV has no lists."""
    builder = launching(TraceBuilder(), first=("mm", 0), second=("add", 20), third=("mm", 40))
    for number, start in enumerate((100, 110, 120)):
        measured(builder, "gemm", start, ffma=10 * number, fadd=3, hmul=2, dfma=1)
    result = cupti_counters(builder.build())
    golden.check(
        result.per_kernel.with_columns(pl.col("operator_stack").list.join(" > ")), "cupti_counters/three_kernels"
    )
    golden.check(result.counters, "cupti_counters/three_kernels.counters")
