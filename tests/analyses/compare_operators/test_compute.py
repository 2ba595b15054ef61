"""Tests of compare_operators: where in the operator tree two traces differ."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holotrace import open_trace
from holotrace.analyses.compare_operators.compute import compare_operators
from holotrace.analyses.compare_operators.tensorboard_plugin import Pair, PluginSide, plugin_pairs
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from recordings import opened
from tb_goldens import case

COMPAT = "torch_tb_profiler"
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MULTIPLE = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
BACKWARD = "autograd::engine::evaluate_function: MmBackward0"
DIFFS = {
    "hta_trace_diff_control.None__vs__hta_trace_diff_test.None": (
        "tb/hta_trace_diff_control/worker0@default",
        "tb/hta_trace_diff_test/worker0@default",
    ),
    "resnet50_num_workers_0.1__vs__resnet50_num_workers_0.2": (
        "tb/resnet50_num_workers_0/worker0@1",
        "tb/resnet50_num_workers_0/worker0@2",
    ),
    "resnet50_num_workers_0.1__vs__resnet50_num_workers_4.1": (
        "tb/resnet50_num_workers_0/worker0@1",
        "tb/resnet50_num_workers_4/worker0@1",
    ),
}


def training(loader: str, load_us: int, gemm: str, gemm_us: int, steps: int = 1) -> TraceBuilder:
    """Return steps of 100 µs: data loading, a linear module with one gemm, its backward pass on thread 2, optimizer."""
    trace = TraceBuilder()
    for step in range(steps):
        begin = 1_000 * step
        trace.step(step, begin, 100)
        trace.annotation(loader, start_us=begin + 1, duration_us=load_us)
        _module(trace, "nn.Module: Linear_0", begin + 30, 20)
        forward = {"Sequence number": step + 1, "Fwd thread id": 0}
        trace.operator("aten::mm", start_us=begin + 32, duration_us=10, args=forward)
        trace.kernel(gemm, start_us=begin + 40, duration_us=gemm_us, launch_us=begin + 34)
        backward = {"Sequence number": step + 1, "Fwd thread id": 1}
        trace.operator(BACKWARD, start_us=begin + 60, duration_us=20, thread=2, args=backward)
        trace.operator("MmBackward0", start_us=begin + 62, duration_us=10, thread=2, args=backward)
        trace.kernel(gemm, start_us=begin + 70, duration_us=2 * gemm_us, launch_us=begin + 64, thread=2)
        trace.annotation("Optimizer.step#SGD.step", start_us=begin + 85, duration_us=5)
    return trace


def _module(trace: TraceBuilder, name: str, start_us: int, duration_us: int) -> None:
    trace.event(ph="X", cat="python_function", name=name, pid=1000, tid=1, ts=start_us, dur=duration_us)


def rows(tree: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Return the chosen columns of the tree; each name starts with one dot per level."""
    name = pl.lit("·").repeat_by("depth").list.join("") + pl.col("name")
    return tree.select(name, *columns).rows()


def test_the_tree_is_aligned_by_phase_module_and_operator() -> None:
    """A gemm, and thus each node above it, takes 10 µs more in the forward pass and 20 µs more in the backward pass."""
    control, test = (training(SINGLE, 20, "gemm", length).build() for length in (10, 20))

    result = compare_operators(control, test)

    assert (result.measure, result.findings) == ("device", ())
    assert rows(result.tree, "kind", "change", "difference_ns_per_step", "control_call_count") == [
        ("backward", "phase", "unchanged", 20_000, 1),
        ("·Linear_0", "module", "unchanged", 20_000, 1),
        ("··" + BACKWARD, "operator", "unchanged", 20_000, 1),
        ("···MmBackward0", "operator", "unchanged", 20_000, 1),
        ("····gemm", "kernel", "unchanged", 20_000, 1),
        ("forward and other", "phase", "unchanged", 10_000, 1),
        ("·Linear_0", "module", "unchanged", 10_000, 1),
        ("··aten::mm", "operator", "unchanged", 10_000, 1),
        ("···gemm", "kernel", "unchanged", 10_000, 1),
        ("data loading", "phase", "unchanged", 0, 1),
        ("·DataLoader", "range", "unchanged", 0, 1),
        ("optimizer", "phase", "unchanged", 0, 1),
        ("·Optimizer.step#SGD.step", "range", "unchanged", 0, 1),
    ]
    parents = result.tree.select("node", "parent").rows()
    assert parents[:6] == [(0, -1), (1, 0), (2, 1), (3, 2), (4, 3), (5, -1)]


def test_phases_sum_everything_inside() -> None:
    """The total of a phase or module is the sum over its children, plus its self time."""
    trace = training(SINGLE, 20, "gemm", 10).build()
    tree = compare_operators(trace, trace).tree
    columns = [f"control_{name}_ns" for name in ("host_total", "host_self", "device_total", "device_self")]
    assert rows(tree, *columns) == [
        ("backward", 20_000, 0, 20_000, 0),
        ("·Linear_0", 20_000, 0, 20_000, 0),
        ("··" + BACKWARD, 20_000, 10_000, 20_000, 0),
        ("···MmBackward0", 10_000, 9_000, 20_000, 20_000),
        ("····gemm", 0, 0, 20_000, 20_000),
        ("data loading", 20_000, 0, 0, 0),
        ("·DataLoader", 20_000, 20_000, 0, 0),
        ("forward and other", 20_000, 0, 10_000, 0),
        ("·Linear_0", 20_000, 10_000, 10_000, 0),
        ("··aten::mm", 10_000, 9_000, 10_000, 10_000),
        ("···gemm", 0, 0, 10_000, 10_000),
        ("optimizer", 5_000, 0, 0, 0),
        ("·Optimizer.step#SGD.step", 5_000, 5_000, 0, 0),
    ]


def test_data_loaders_of_different_kinds_are_one_range_and_compared_on_the_host() -> None:
    """Loading a batch takes 20 µs without worker processes and 2 µs with them; only data loading changes."""
    result = compare_operators(training(SINGLE, 20, "gemm", 10).build(), training(MULTIPLE, 2, "gemm", 10).build())
    assert rows(result.tree, "measure", "control_ns_per_step", "test_ns_per_step", "difference_ns_per_step")[:3] == [
        ("data loading", "host", 20_000, 2_000, -18_000),
        ("·DataLoader", "host", 20_000, 2_000, -18_000),
        ("backward", "device", 20_000, 20_000, 0),
    ]


def test_recordings_of_different_length_compare_by_step() -> None:
    """A trace with one step and a trace with three such steps have equal times per step; `sides` gives the totals."""
    one = training(SINGLE, 20, "gemm", 10).build()
    three = training(SINGLE, 20, "gemm", 10, steps=3).build()
    result = compare_operators(one, three)
    assert result.tree["change"].unique().to_list() == ["unchanged"]
    assert result.tree["difference_ns_per_step"].to_list() == [0] * 13
    assert result.sides.select("rank_count", "step_count", "device_total_ns").rows() == [(1, 1, 30_000), (1, 3, 90_000)]


def test_kernels_of_different_devices_are_listed_under_the_same_operators() -> None:
    """V100 and H100 kernels have different names, but their operators match; a finding names both devices."""
    control, test = training(SINGLE, 20, "volta_gemm", 10), training(SINGLE, 20, "sm90_gemm", 4)
    control.header(deviceProperties=[{"id": 0, "name": "V100"}])
    test.header(deviceProperties=[{"id": 0, "name": "H100"}])

    result = compare_operators(control.build(), test.build())

    kernels = result.tree.filter(kind="kernel").select("name", "change", "difference_ns_per_step").rows()
    assert kernels == [
        ("volta_gemm", "deleted", -20_000),
        ("sm90_gemm", "added", 8_000),
        ("volta_gemm", "deleted", -10_000),
        ("sm90_gemm", "added", 4_000),
    ]
    assert result.findings == ("control ran on V100 and test on H100, so their kernels may have different names",)
    assert result.per_operator.row(0)[:5] == ("MmBackward0", "unchanged", 20_000, 8_000, -12_000)


def test_a_cpu_run_and_a_gpu_run_compare_on_the_host() -> None:
    """If one trace has no device time, host times are compared."""
    without = TraceBuilder().operator("aten::mm", start_us=1, duration_us=50)
    with_gpu = TraceBuilder().operator("aten::mm", start_us=1, duration_us=5)
    with_gpu.kernel("gemm", start_us=3, duration_us=9, launch_us=2)

    result = compare_operators(without.build(), with_gpu.build())

    assert rows(result.tree, "measure", "control_ns_per_step", "test_ns_per_step") == [
        ("forward and other", "host", 50_000, 5_000),
        ("·aten::mm", "host", 50_000, 5_000),
        ("··gemm", "host", 0, 0),
    ]
    assert result.findings == (
        "some ranks of control and test have no steps, so both traces are compared as a whole, and times are sums",
        "no device work was recorded in control, so host times are compared",
    )


def test_modules_of_one_trace_alone_are_left_out() -> None:
    """The test trace has no modules, so the modules of the control are left out, and the operators still match."""
    control = training(SINGLE, 20, "gemm", 10)
    test = TraceBuilder().step(0, 0, 100).operator("aten::mm", start_us=32, duration_us=10)
    test.kernel("gemm", start_us=40, duration_us=10, launch_us=34)
    result = compare_operators(control.build(), test.build())
    assert {("·aten::mm", "unchanged"), ("··gemm", "unchanged")} <= set(rows(result.tree, "change"))
    assert "module" not in set(result.tree["kind"])
    assert result.findings == (
        "test has no modules, so the modules of the other trace are ignored; record with with_stack=True",
    )


def test_wrappers_steps_and_annotations_are_not_part_of_a_path() -> None:
    """Only the control trace has a DDP wrapper and an annotation; all other nodes of the two traces still match."""
    control, test = training(SINGLE, 20, "gemm", 10), training(SINGLE, 20, "gemm", 10)
    _module(control, "nn.Module: DistributedDataParallel_0", 29, 24)
    control.annotation("forward", start_us=28, duration_us=28)
    result = compare_operators(control.build(), test.build())
    assert result.tree["change"].unique().to_list() == ["unchanged"]


def test_work_outside_of_steps_does_not_count_where_both_have_them() -> None:
    """Events after the step are ignored. If a kernel in the step has no launch, it is listed under "no operator"."""
    control, test = training(SINGLE, 20, "gemm", 10), training(SINGLE, 20, "gemm", 10)
    test.operator("aten::late", start_us=500, duration_us=9).kernel("alone", start_us=600, duration_us=9)
    test.kernel("unknown", start_us=95, duration_us=3)
    result = compare_operators(control.build(), test.build())
    assert rows(result.tree.filter(pl.col("change") != "unchanged"), "change") == [
        ("no operator", "added"),
        ("·unknown", "added"),
    ]


def test_totals_of_all_phases_are_those_of_the_trace(real_traces: Path) -> None:
    """The device times of the phases sum to the device time of the trace: each kernel is in exactly one phase."""
    trace = opened(real_traces / "ns_resolution")
    result = compare_operators(trace, trace)
    kernels = result.tree.filter(kind="kernel")["control_device_self_ns"].sum()
    assert result.tree.filter(kind="phase")["control_device_total_ns"].sum() == kernels
    assert result.tree.filter(kind="operator")["control_device_self_ns"].sum() <= kernels
    assert result.sides["device_total_ns"].to_list() == [kernels, kernels]


def test_the_measure_can_be_chosen_and_must_exist() -> None:
    """`by="host"` compares host times; an unknown value of `by` or an empty trace raises an error."""
    trace = training(SINGLE, 20, "gemm", 10).build()
    assert set(compare_operators(trace, trace, by="host").tree["measure"]) == {"host"}
    with pytest.raises(InvalidOptionError, match="by='time' is not one of: device, host"):
        compare_operators(trace, trace, by="time")  # type: ignore[arg-type] # users may pass any value
    with pytest.raises(MissingDataError):
        compare_operators(trace, TraceBuilder().build())


def test_the_tables_equal_their_golden_copies(golden, real_traces: Path) -> None:
    """In ResNet-50, data loading changes most: from 69.3 ms per step without worker processes to 1.4 ms with four."""
    folder = real_traces / "tensorboard"
    control, test = (
        open_trace(min((folder / f"resnet50_num_workers_{count}").iterdir()), cache=False) for count in (0, 4)
    )
    result = compare_operators(control, test)
    assert result.tree.row(0, named=True)["name"] == "data loading"
    golden.check(
        result.tree.head(80).drop("control_ns_per_step", "test_ns_per_step", "difference_ns_per_step"),
        "compare_operators/resnet50.tree",
    )
    golden.check(result.sides, "compare_operators/resnet50.sides")


@pytest.mark.parametrize("name", DIFFS)
def test_pairs_equal_those_of_the_plugin(name: str, goldens: Path, real_traces: Path) -> None:
    """Every pair has the same names, times in µs and operators as in the output of TensorBoard's profiler plugin."""
    traces = [case(side, goldens, real_traces).trace for side in DIFFS[name]]
    sides = [PluginSide.of(_only_rank(trace)) for trace in traces]
    nodes = json.loads(gzip.decompress((goldens / "tb" / "diff" / name / "nodes.json.gz").read_bytes()))
    pairs = dict(_paths(plugin_pairs(*sides), "0"))
    assert pairs.keys() == nodes.keys()
    for path, theirs in nodes.items():
        for side, label, taken in zip(sides, ("left", "right"), (pairs[path].control, pairs[path].test), strict=True):
            assert _shown(side, taken) == _theirs(theirs[label])


@pytest.mark.parametrize("name", DIFFS)
def test_a_comparison_with_compat_has_the_rows_of_the_plugin(name: str, goldens: Path, real_traces: Path) -> None:
    """With `compat`, the rows are the pairs of operators that TensorBoard's plugin shows, with their host times."""
    control, test = (case(side, goldens, real_traces).trace for side in DIFFS[name])
    result = compare_operators(control, test, compat=COMPAT)
    nodes = json.loads(gzip.decompress((goldens / "tb" / "diff" / name / "nodes.json.gz").read_bytes()))
    theirs = [
        (" → ".join(dict.fromkeys((node["left"]["name"], node["right"]["name"]))), node["left"]["duration"])
        for _, node in sorted(nodes.items(), key=lambda item: [int(part) for part in item[0].split("-")])
    ]
    mine = result.tree.select("name", pl.col("control_host_total_ns") / 1_000).rows()
    assert mine == theirs
    assert result.tree["kind"].unique().to_list() == ["pair"]
    assert result.sides["host_total_ns"].to_list() == [
        1_000 * nodes["0"][side]["duration"] for side in ("left", "right")
    ]


def _only_rank(trace: Trace) -> Any:
    (rank_trace,) = trace.ranks.values()
    return rank_trace


def _paths(pair: Pair, path: str) -> list[tuple[str, Pair]]:
    below = [
        path_and_pair for place, child in enumerate(pair.children) for path_and_pair in _paths(child, f"{path}-{place}")
    ]
    return [(path, pair), *below]


def _shown(side: PluginSide, taken: list[int]) -> tuple[Any, ...]:
    times, device = side.nodes[taken], pl.col("device_total_ns")
    either = times.select(pl.when(device > 0).then(device).otherwise("host_total_ns").alias("either"))["either"]
    inside = side.operators(taken).select("operator", "call_count", *(pl.col(f"{name}_ns") / 1_000 for name in _ORDER))
    sums = (times["host_total_ns"].sum(), times["device_total_ns"].sum(), either.sum())
    return side.label(taken), *(value / 1_000 for value in sums), sorted(inside.rows())


_ORDER = ("host_total", "device_total", "host_self", "device_self")


def _theirs(side: dict[str, Any]) -> tuple[Any, ...]:
    times = ("host_duration", "device_duration", "self_host_duration", "self_device_duration")
    inside = [(row["name"], row["calls"], *(row[name] for name in times)) for row in side["aggs"]]
    return side["name"], side["duration"], side["device_duration"], side["total_duration"], sorted(inside)


def test_an_operator_is_the_same_in_every_process() -> None:
    """The name of a bound method contains a memory address; the comparison ignores the address."""
    control, test = (
        TraceBuilder().operator(f"<bound method step of Plan object at {address}>", start_us=0, duration_us=5).build()
        for address in ("0x7f01", "0x7f02")
    )
    result = compare_operators(control, test)
    assert result.per_operator.select("operator", "change").rows() == [("<bound method step>", "unchanged")]
    assert result.tree.filter(kind="operator")["change"].to_list() == ["unchanged"]


def test_traces_without_operators_have_nothing_to_compare() -> None:
    """If neither trace has operators, the answer says so."""
    trace = TraceBuilder().kernel("gemm", start_us=0, duration_us=10).build()
    assert compare_operators(trace, trace).answer == "Control and test have no operators to compare."
