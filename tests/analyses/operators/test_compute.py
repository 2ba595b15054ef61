"""Tests of the operators analysis: the time of each operator on the host and on devices."""

from __future__ import annotations

import json

import pytest

from holotrace import open_trace
from holotrace.analyses.operators.compute import operators, summed_operators
from holotrace.enrich.host.host_nodes import device_owner
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from recordings import opened

GEMM = "ampere_fp16_s16816gemm_fp16_128x128"
"""The name of a kernel that uses tensor cores."""

COMPAT = "torch_tb_profiler"


def shaped(*dims: list[int]) -> dict[str, object]:
    """Return the args of an operator whose inputs have the given shapes."""
    return {"Input Dims": list(dims)}


def job() -> TraceBuilder:
    """Return two calls of aten::linear that call aten::mm; in the second, kernels on two streams overlap."""
    builder = TraceBuilder()
    for place, size in enumerate((32, 64)):
        at = 1_000 * place
        builder.operator("aten::linear", start_us=at, duration_us=50, args=shaped([size, 8]))
        builder.operator("aten::mm", start_us=at + 10, duration_us=20, args=shaped([size, 8], [8, 8]))
        builder.kernel(GEMM, start_us=at + 100, duration_us=30, launch_us=at + 12, launch_duration_us=2)
    return builder.kernel("reduce", start_us=1_110, duration_us=10, launch_us=1_020, launch_duration_us=3, stream=8)


def test_times_of_an_operator_are_sums_over_its_calls() -> None:
    """aten::mm has two calls of 20 µs, which include 7 µs of launch calls.

    Its kernels take 70 µs; two of them overlap for 10 µs, so the device is busy for 60 µs.
    """
    mm = {
        "rank": 0,
        "operator": "aten::mm",
        "call_count": 2,
        "host_total_ns": 40_000,
        "host_self_ns": 33_000,
        "device_total_ns": 70_000,
        "device_self_ns": 70_000,
        "device_total_busy_ns": 60_000,
        "device_self_busy_ns": 60_000,
        "is_tensor_core_eligible": True,
        "tensor_core_total_ns": 60_000,
        "tensor_core_self_ns": 60_000,
        "tensor_core_total_fraction": 60 / 70,
        "tensor_core_self_fraction": 60 / 70,
        "tensor_core_unknown_total_ns": 0,
        "tensor_core_unknown_self_ns": 0,
        "tensor_core_unknown_total_fraction": 0.0,
        "tensor_core_unknown_self_fraction": 0.0,
        "has_call_stack": False,
    }
    linear = {
        **mm,
        "operator": "aten::linear",
        "host_total_ns": 100_000,
        "host_self_ns": 60_000,
        "device_self_ns": 0,
        "device_self_busy_ns": 0,
        "tensor_core_self_ns": 0,
        "tensor_core_self_fraction": None,
        "tensor_core_unknown_self_fraction": None,
    }

    assert operators(job().build()).per_operator.to_dicts() == [mm, linear]


def test_time_in_kernels_with_unknown_cores_is_a_separate_part() -> None:
    """For aten::mm, 30 of 100 µs are on tensor cores and 60 µs are unknown; for my::op, all 7 µs are unknown."""
    builder = (
        TraceBuilder().operator("aten::mm", start_us=0, duration_us=20).operator("my::op", start_us=30, duration_us=9)
    )
    for start, duration, name, launch in (
        (100, 30, GEMM, 1),
        (200, 10, "relu", 3),
        (300, 60, "mystery", 5),
        (400, 7, "x", 31),
    ):
        builder.kernel(name, start_us=start, duration_us=duration, launch_us=launch, launch_duration_us=1)
    columns = ["operator", "tensor_core_self_ns", "tensor_core_self_fraction"]

    table = operators(builder.build()).per_operator

    unknown = ["tensor_core_unknown_self_ns", "tensor_core_unknown_self_fraction", "tensor_core_unknown_total_fraction"]
    assert table.select(*columns, *unknown).rows() == [
        ("aten::mm", 30_000, 0.3, 60_000, 0.6, 0.6),
        ("my::op", 0, None, 7_000, 1.0, 1.0),
    ]


def test_each_shape_has_its_row() -> None:
    """Each pair of operator and input shape has a row, sorted by device time."""
    table = operators(job().build()).per_input_shape

    assert table.select("operator", "input_shape", "call_count", "device_self_ns").rows() == [
        ("aten::mm", "[[64, 8], [8, 8]]", 1, 40_000),
        ("aten::mm", "[[32, 8], [8, 8]]", 1, 30_000),
        ("aten::linear", "[[32, 8]]", 1, 0),
        ("aten::linear", "[[64, 8]]", 1, 0),
    ]


def test_nested_calls_of_one_operator_count_twice_in_totals_and_once_when_busy() -> None:
    """aten::div calls itself; a kernel of 4 µs counts twice in the operator's total time but once in its busy time."""
    builder = (
        TraceBuilder()
        .operator("aten::div", start_us=0, duration_us=20)
        .operator("aten::div", start_us=2, duration_us=10)
        .kernel("div", start_us=30, duration_us=4, launch_us=3)
    )

    table = operators(builder.build()).per_operator
    columns = ("call_count", "device_total_ns", "device_self_ns", "device_total_busy_ns")
    assert table.select(columns).rows() == [(2, 8_000, 4_000, 4_000)]


def test_work_of_two_devices_at_once_is_added_up() -> None:
    """Two devices are busy at the same time for 4 µs each, which adds up to 8 µs."""
    builder = TraceBuilder().operator("op", start_us=0, duration_us=20)
    for device in (0, 1):
        builder.kernel("k", start_us=30, duration_us=4, launch_us=3 + device, device=device)

    assert operators(builder.build()).per_operator["device_self_busy_ns"].to_list() == [8_000]


def test_each_call_stack_has_its_row() -> None:
    """Calls from two source lines have two rows; a call without a stack has no row."""
    builder = TraceBuilder()
    for place, line in enumerate((10, 11, 10, None)):
        args = None if line is None else {"Call stack": f"f.py({line}): g;h.py(2): main"}
        builder.operator("aten::a", start_us=10 * place, duration_us=1 + place, args=args)

    result = operators(builder.build())

    assert result.per_operator["has_call_stack"].to_list() == [True]
    assert result.per_call_stack.select("call_stack", "input_shape", "call_count", "host_self_ns").rows() == [
        ("f.py(10): g;h.py(2): main", None, 2, 4_000),
        ("f.py(11): g;h.py(2): main", None, 1, 2_000),
    ]


def test_steps_and_wrappers_are_not_operators() -> None:
    """Steps and DDP wrappers are left out; a finding reports the kernel that was launched outside operators."""
    builder = (
        TraceBuilder()
        .operator("ProfilerStep#1", start_us=0, duration_us=90)
        .operator("DistributedDataParallel.forward", start_us=10, duration_us=50)
        .operator("aten::mm", start_us=11, duration_us=5)
        .kernel("k", start_us=100, duration_us=5, launch_us=80)
    )

    result = operators(builder.build())

    assert result.per_operator["operator"].to_list() == ["aten::mm"]
    assert (
        "rank 0: 1 of 1 kernels, copies and memsets have no operator; they take 5 µs of device time" in result.findings
    )


def test_one_finding_for_all_ranks_names_what_was_not_recorded() -> None:
    """Two ranks lack device work, shapes and stacks; each of the three findings names both ranks."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.operator("aten::mm", start_us=0, duration_us=5, rank=rank)

    result = operators(builder.build())

    assert result.per_operator["device_self_ns"].to_list() == [None, None]
    assert result.per_input_shape["input_shape"].to_list() == [None, None]
    assert result.per_call_stack.is_empty()
    assert result.findings == (
        "ranks 0-1: no device work was recorded; if the job used a device, record with ProfilerActivity.CUDA",
        "ranks 0-1: no input shapes were recorded; record with record_shapes=True",
        "ranks 0-1: no call stacks were recorded; record with with_stack=True",
    )


def test_without_operators_the_tables_are_empty() -> None:
    """The trace has only a kernel, so the table is empty, and a finding advises ProfilerActivity.CPU."""
    result = operators(TraceBuilder().kernel("k", start_us=0, duration_us=5).build())

    assert result.per_operator.is_empty()
    assert result.findings[0] == "rank 0: no operators were recorded; record with ProfilerActivity.CPU"


def test_ranks_are_summed_for_people() -> None:
    """aten::mm runs on two ranks, only one of which has device work; the table summed over ranks has one row."""
    builder = job()
    builder.rank(1).operator("aten::mm", start_us=0, duration_us=7)

    table = summed_operators(operators(builder.build()).per_operator)

    columns = ("operator", "call_count", "host_total_ns", "device_self_ns", "tensor_core_self_fraction")
    assert table.select(columns).row(0) == ("aten::mm", 3, 47_000, 70_000, 60 / 70)


@pytest.mark.parametrize(
    ("launch_args", "kernel_args"),
    [({"External id": 7}, {"External id": 7}), ({"External id": 99}, {"External id": 99}), ({}, {})],
    ids=["its own", "the correlation, as in 2022", "none"],
)
def test_work_with_an_unmatched_external_id_keeps_its_operator(launch_args, kernel_args) -> None:
    """A kernel belongs to the operator around its launch; with `compat`, operator and launch must also share an id."""
    builder = (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=20, args={"External id": 7})
        .runtime("cudaLaunchKernel", start_us=3, duration_us=2, correlation=5, args=launch_args)
        .kernel("gemm", start_us=30, duration_us=4, correlation=5, args=kernel_args)
    )
    trace = builder.build()

    assert operators(trace).per_operator["device_self_ns"].to_list() == [4_000]
    expected_ns = 4_000 if launch_args == {"External id": 7} else 0
    assert operators(trace, compat=COMPAT).per_operator["device_self_ns"].to_list() == [expected_ns]


def test_an_operator_that_outlives_the_one_it_began_in_is_kept() -> None:
    """aten::b begins inside aten::a but ends after it; holotrace lists aten::b, but torch_tb_profiler drops it."""
    builder = TraceBuilder().step(1, 0, 100).operator("aten::a", start_us=10, duration_us=10)
    trace = builder.operator("aten::b", start_us=15, duration_us=10).build()

    assert operators(trace).per_operator["operator"].sort().to_list() == ["aten::a", "aten::b"]
    assert operators(trace, compat=COMPAT).per_operator["operator"].to_list() == ["aten::a"]


def test_work_of_driver_calls_is_found() -> None:
    """A Triton kernel launched with cuLaunchKernel belongs to the operator around the call; with `compat`, to none."""
    builder = TraceBuilder().operator("triton_op", start_us=0, duration_us=20)
    trace = builder.kernel("k", start_us=30, duration_us=4, launch_us=3, launch_name="cuLaunchKernel").build()

    assert operators(trace).per_operator["device_self_ns"].to_list() == [4_000]
    assert operators(trace, compat=COMPAT).per_operator["device_self_ns"].to_list() == [0]


def test_a_damaged_shape_is_shown_as_it_is() -> None:
    """An input shape that is not valid JSON is shown as text."""
    builder = TraceBuilder().operator("op", start_us=0, duration_us=5, args={"Input Dims": "[[1, 2"})

    (shape,) = operators(builder.build()).per_input_shape["input_shape"]
    assert shape in {"[[1, 2", json.dumps("[[1, 2")}


@pytest.mark.parametrize(
    "source", ["diff/control/*", "diff/test/*", "single_v100/*", "ns_resolution/*", "dlrm_8rank/*"]
)
def test_nearly_all_launched_work_of_real_traces_has_an_operator(real_traces, source) -> None:
    """At least 99 % of launched work has an operator, even in 2022 traces, where the TensorBoard plugin finds none."""
    for rank_trace in opened(real_traces / source).ranks.values():
        launched = device_owner(rank_trace).drop_nulls("launch_index")
        assert (launched["operator"] >= 0).mean() >= 0.99


def test_the_tables_equal_their_golden_copies(tmp_path, golden) -> None:
    """Both tables of a synthetic job equal their golden copies."""
    write_job(tmp_path, ranks=2, steps=2, layers=2, seed=1)
    result = operators(open_trace(tmp_path, cache=False))

    golden.check(result.per_operator, "operators/synthetic_job.per_operator")
    golden.check(result.per_input_shape, "operators/synthetic_job.per_input_shape")
