"""Tests of compare_traces: the kernels, operators and annotations that changed between two traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from holotrace import open_trace
from holotrace.analyses.compare_traces.compute import compare_traces
from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job

if TYPE_CHECKING:
    from holotrace.store.trace import Trace


def control_and_test() -> tuple[Trace, Trace]:
    """Return two traces: in the test, gemm is faster, gelu replaces relu, and aten::mm has one more call."""
    control = (
        TraceBuilder()
        .step(1, 0, 100)
        .step(2, 100, 100)
        .kernel("gemm", start_us=10, duration_us=30)
        .kernel("gemm", start_us=110, duration_us=30)
        .kernel("relu", start_us=50, duration_us=4)
        .operator("aten::mm", start_us=5, duration_us=20)
    )
    test = (
        TraceBuilder()
        .step(7, 0, 100)
        .kernel("gemm", start_us=10, duration_us=20)
        .kernel("gelu", start_us=50, duration_us=6)
        .operator("aten::mm", start_us=5, duration_us=20)
        .operator("aten::mm", start_us=205, duration_us=8)
    )
    return control.build(), test.build()


def test_every_name_has_its_change_means_and_values_per_step() -> None:
    """The totals include an operator outside the steps; the values per step do not."""
    result = compare_traces(*control_and_test())

    steps = result.per_name.filter(pl.col("kind") == "user_annotation")
    rest = result.per_name.filter(pl.col("kind") != "user_annotation")
    assert steps["name"].to_list() == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#7"]
    assert rest.columns == [
        "kind", "name", "change", "control_event_count", "test_event_count", "event_count_difference",
        "control_total_ns", "test_total_ns", "difference_ns", "control_mean_ns", "test_mean_ns",
        "control_event_count_per_step", "test_event_count_per_step", "control_ns_per_step", "test_ns_per_step",
    ]  # fmt: skip
    assert rest.rows() == [
        ("kernel", "gemm", "decreased", 2, 1, -1, 60_000, 20_000, -40_000, 30_000, 20_000, 1, 1, 30_000, 20_000),
        ("cpu_op", "aten::mm", "increased", 1, 2, 1, 20_000, 28_000, 8_000, 20_000, 14_000, 0.5, 1, 10_000, 20_000),
        ("kernel", "gelu", "added", 0, 1, 1, 0, 6_000, 6_000, None, 6_000, 0, 1, 0, 6_000),
        ("kernel", "relu", "deleted", 1, 0, -1, 4_000, 0, -4_000, 4_000, None, 0.5, 0, 2_000, 0),
    ]
    assert result.sides.rows() == [("control", 1, 2, 6, 284_000), ("test", 1, 1, 5, 154_000)]
    assert result.findings == ("control has 2 steps and test has 1: compare the per-step columns",)


def test_steps_can_be_chosen() -> None:
    """Step 1 of the control is compared with step 7 of the test; the number of gemms is unchanged."""
    result = compare_traces(*control_and_test(), control_steps=[1], test_steps=[7], device="gpu")

    assert result.per_name.select("name", "change", "control_total_ns", "test_total_ns").rows() == [
        ("gemm", "unchanged", 30_000, 20_000),
        ("gelu", "added", 0, 6_000),
        ("relu", "deleted", 4_000, 0),
    ]
    assert result.findings == ()


def test_a_function_is_the_same_in_every_process() -> None:
    """The name of a built-in method contains an address, which the comparison ignores unless `exact_names` is set."""
    call = {"ph": "X", "cat": "python_function", "pid": 1000, "tid": 1, "ts": 0}
    control, test = (
        TraceBuilder().event(name=f"<built-in method get of Queue object at {address}>", dur=duration, **call).build()
        for address, duration in (("0x7f01", 5), ("0x7F02", 8))
    )
    rows = compare_traces(control, test).per_name.select("name", "change", "difference_ns").rows()
    assert rows == [("<built-in method get>", "unchanged", 3_000)]
    exact = compare_traces(control, test, exact_names=True).per_name
    assert exact["change"].to_list() == ["added", "deleted"]


def test_the_device_chooses_kinds() -> None:
    """`device="cpu"` selects events on the host, `device="gpu"` events on the device, and `device="all"` both."""
    traces = control_and_test()
    kinds = {device: set(compare_traces(*traces, device=device).per_name["kind"]) for device in ("cpu", "gpu", "all")}

    assert kinds == {
        "cpu": {"cpu_op", "user_annotation"},
        "gpu": {"kernel"},
        "all": {"cpu_op", "user_annotation", "kernel"},
    }


def test_ranks_are_added_up_and_steps_counted_for_each() -> None:
    """Two ranks have one gemm and one step each: two calls in total, one per step."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank).step(1, 0, 10).kernel("gemm", start_us=1, duration_us=2)
    trace = builder.build()

    row = compare_traces(trace, trace.select([1]), device="gpu").per_name.row(0, named=True)

    assert (row["control_event_count"], row["test_event_count"]) == (2, 1)
    assert (row["control_event_count_per_step"], row["test_event_count_per_step"]) == (1, 1)


def test_traces_without_steps_are_compared() -> None:
    """Without steps, all events are compared, values per step are null, and findings say so."""
    trace = TraceBuilder().kernel("gemm", start_us=1, duration_us=2).build()

    result = compare_traces(trace, trace)

    row = result.per_name.row(0, named=True)
    assert (row["change"], row["control_mean_ns"]) == ("unchanged", 2_000)
    assert (row["control_event_count_per_step"], row["test_ns_per_step"]) == (None, None)
    assert result.findings == (
        "the control trace has no steps, so it has no values per step",
        "the test trace has no steps, so it has no values per step",
    )


def test_empty_traces_give_an_empty_table() -> None:
    """For two traces without events, the table has its usual columns and no rows, and a finding says why."""
    result = compare_traces(TraceBuilder().build(), TraceBuilder().build())

    assert result.per_name.is_empty()
    assert result.per_name.schema == compare_traces(*control_and_test()).per_name.schema
    assert "the test trace has no events on the chosen device in the chosen steps" in result.findings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"control_steps": [3]}, "there is no step 3 in this trace; its steps are: 1, 2"),
        ({"test_steps": []}, "no step of this trace was selected; its steps are: 7"),
        ({"device": "tpu"}, "device='tpu' is not one of: cpu, gpu, all"),
    ],
)
def test_an_unknown_value_is_an_error_that_lists_the_known_ones(options, message) -> None:
    """For an unknown step or device, the error lists the valid values."""
    with pytest.raises(InvalidOptionError) as raised:
        compare_traces(*control_and_test(), **options)
    assert str(raised.value) == message


def test_a_trace_does_not_differ_from_itself() -> None:
    """In a comparison of a trace with itself, every row is "unchanged" with a difference of 0."""
    trace, _ = control_and_test()
    table = compare_traces(trace, trace).per_name
    assert set(table["change"]) == {"unchanged"}
    assert set(table["difference_ns"]) == {0}


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """The tables that compare ranks 0 and 1 of a synthetic job equal their golden copies."""
    write_job(tmp_path / "job", ranks=2, steps=3, layers=2)
    trace = open_trace(tmp_path / "job", cache=False)
    result = compare_traces(trace.select([0]), trace.select([1]))
    golden.check(result.per_name, "compare_traces/synthetic_job.per_name")
    golden.check(result.sides, "compare_traces/synthetic_job.sides")
