"""These tests compute the numbers on the docs page that lists the differences from the TensorBoard plugin.

The page's tables have the columns quirk, example, plugin, here and because. `EXAMPLES` maps each example to the
answers of the plugin and of holotrace for the same trace. The plugin's answer comes from its recorded results, or from
`compat` where other tests check that `compat` reproduces these results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import holotrace
from holotrace.errors import MissingDataError
from holotrace.store.trace import Trace
from pages import ROOT
from tb_goldens import LOST, Case, case

PAGE = ROOT / "docs" / "explanation" / "differences_from_torch_tb_profiler.md"
CELLS = 5

PLUGIN = "torch_tb_profiler"
CONTROL, TEST = "tb/hta_trace_diff_control/worker0@default", "tb/hta_trace_diff_test/worker0@default"
V100, NANOSECONDS = "tb/hta_df_index_resolver/worker0@default", "tb/hta_ns_resolution/rank-0.Apr_03_18_51_38@1"
DLRM, AMD = "tb/param_dlrm_8rank/worker0_step_12@1", "tb/hta_amd_mi250/worker0@default"
TRITON = "tb/hta_triton_example/worker0@default"

Answer = Callable[[Case], str]


def us(value_ns: float) -> str:
    """Format nanoseconds in µs as on the page: two decimals for fractional values below 1,000 µs, otherwise none."""
    value = value_ns / 1000
    return f"{value:,.0f} µs" if abs(value) >= 1_000 or float(value).is_integer() else f"{value:,.2f} µs"


def percent(fraction: float | None) -> str:
    """Format a fraction as a percentage, as on the page."""
    return "not known" if fraction is None else f"{100 * fraction:.2g} %"


def both(read: Callable[[Trace, Any], str]) -> tuple[Answer, Answer]:
    """Compare the answers with and without `compat`."""
    return lambda one: read(one.trace, PLUGIN), lambda one: read(one.trace, None)


def operators(column: str, name: str | None = None) -> tuple[Answer, Answer]:
    """Compare the sum of a column in the plugin's operator table with the sum in holotrace's table."""
    fields = {"call_count": "calls", "device_self_ns": "device_self", "host_self_ns": "host_self"}
    fields |= {"tensor_core_self_ns": "tc_self"}

    def shown(value: float) -> str:
        return f"{value:,}" if column == "call_count" else us(value)

    def theirs(one: Case) -> str:
        rows = [row for row in one.view("internals")["op_list_groupby_name"] if name in {None, row["name"]}]
        total = sum(row[fields[column]] for row in rows)
        return shown(total if column == "call_count" else 1000 * total)

    def ours(one: Case) -> str:
        table = holotrace.operators(one.trace).per_operator
        chosen = table if name is None else table.filter(pl.col("operator") == name)
        return shown(chosen[column].sum())

    return theirs, ours


def step(*categories: str) -> tuple[Answer, Answer]:
    """Compare the plugin's and holotrace's time of each given category in the first step."""
    fields = {"kernel": "Kernel", "communication": "Communication", "cpu": "CpuOp", "other": "Other"}
    fields |= {"runtime": "Runtime", "duration": "Total"}

    def theirs(one: Case) -> str:
        row = one.view("internals")["steps_costs"][0]
        return ", ".join(us(1000 * row[fields[category]]) for category in categories)

    def ours(one: Case) -> str:
        row = holotrace.step_time(one.trace).per_step.row(0, named=True)
        return ", ".join(
            us(row[f"{category}_ns" if category == "duration" else f"{category}_part_ns"]) for category in categories
        )

    return theirs, ours


def lost(ours: Callable[[Trace], str]) -> tuple[Answer, Answer]:
    """Return the answers for a file that the plugin cannot read."""
    return lambda one: "no file" if one.view("overview") is None else "read", lambda one: ours(one.trace)


def calls(trace: Trace) -> str:
    """Return the number of operator calls and of kernels."""
    try:
        kernels = holotrace.kernels(trace).per_kernel["call_count"].sum()
    except MissingDataError:
        kernels = 0
    count = holotrace.operators(trace).per_operator["call_count"].sum()
    return _counted(count, "operator") + (f", {_counted(kernels, 'kernel')}" if kernels else "")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def distributed(*columns: str) -> tuple[Answer, Answer]:
    """Compare the plugin's and holotrace's values of the given columns for the mean step of the first rank."""

    def read(trace: Trace, compat: Any) -> str:
        row = holotrace.distributed(trace, compat=compat).per_rank.row(0, named=True)
        return ", ".join(us(row[column] or 0) for column in columns)

    return both(read)


def kernels_by_table(trace: Trace, compat: Any) -> str:
    """Return the number of kernels in `per_kernel` and in `per_launch_shape`, as text."""
    result = holotrace.kernels(trace, compat=compat)
    return f"{result.per_kernel['call_count'].sum():,}, {result.per_launch_shape['call_count'].sum():,}"


def on_tensor_cores(trace: Trace, compat: Any) -> str:
    """Return, as text, how many of the kernels use tensor cores, counting each kernel name once."""
    names = holotrace.kernels(trace, compat=compat).per_kernel
    return f"{names['uses_tensor_cores'].sum()} of {names.height}"


def gpu(column: str) -> tuple[Answer, Answer]:
    """Compare the plugin's and holotrace's value of a metric of the first device."""
    return both(lambda trace, compat: percent(holotrace.gpu_summary(trace, compat=compat).per_device[column][0]))


def modules(trace: Trace, compat: Any) -> str:
    """Return, as text, the number of rows for `Block` modules, and the number of calls in the first of these rows."""
    rows = holotrace.modules(trace, compat=compat).per_module.filter(pl.col("module").str.starts_with("Block"))
    return f"{_counted(rows.height, 'row')} of {rows['call_count'][0]} calls"


def backward(trace: Trace, compat: Any) -> str:
    """Return the backward time of the outermost module as text."""
    row = holotrace.modules(trace, compat=compat).per_module.row(0, named=True)
    host, device = row["backward_host_total_ns"], row["backward_device_total_ns"]
    return "none" if host is None else f"{us(host)}, {us(device or 0)}"


def module_count(trace: Trace, compat: Any) -> str:
    """Return the number of nodes in the tree of modules."""
    return _counted(holotrace.modules(trace, compat=compat).per_module.height, "module")


def blocks(trace: Trace, compat: Any) -> str:
    """Return the number of listed memory blocks."""
    return _counted(holotrace.operator_memory(trace, compat=compat).blocks.height, "block")


EXAMPLES: dict[str, tuple[str, tuple[Answer, Answer]]] = {
    "diff/control: device time of all operators": (CONTROL, operators("device_self_ns")),
    "single_v100: device time of all operators": (V100, operators("device_self_ns")),
    "dlrm_8rank, rank 0: device time of all operators": (DLRM, operators("device_self_ns")),
    "diff/control: host self time of all operators": (CONTROL, operators("host_self_ns")),
    "x_event_unknown_cat: device time of aten::mm": (
        "tb_edge/x_event_unknown_cat",
        operators("device_self_ns", "aten::mm"),
    ),
    "partially_overlapping_ops: number of operators": ("tb_edge/partially_overlapping_ops", operators("call_count")),
    "ns_resolution: calls of operators": (NANOSECONDS, operators("call_count")),
    "duplicate_name_parent_child: calls of aten::mm": (
        "tb_edge/duplicate_name_parent_child",
        operators("call_count", "aten::mm"),
    ),
    "duplicate_name_parent_child: device time of aten::mm": (
        "tb_edge/duplicate_name_parent_child",
        operators("device_self_ns", "aten::mm"),
    ),
    "backward_without_forward_flow_dropped: number of operators": (
        "tb_edge/backward_without_forward_flow_dropped",
        operators("call_count"),
    ),
    "diff/control: operators' device time on tensor cores": (CONTROL, operators("tensor_core_self_ns")),
    "amd_mi250: operators' device time on tensor cores": (AMD, operators("tensor_core_self_ns")),
    "tensor_core_names: kernels on tensor cores": ("tb_edge/tensor_core_names", both(on_tensor_cores)),
    "diff/control: share of the kernels' time on tensor cores": (CONTROL, gpu("tensor_core_fraction")),
    "amd_mi250: estimated occupancy": (AMD, gpu("occupancy_fraction")),
    "diff/control: number of kernels in the table by name / in the table by launch": (CONTROL, both(kernels_by_table)),
    "diff/test: number of kernels in the table by name / in the table by launch": (TEST, both(kernels_by_table)),
    "dlrm_8rank, rank 0, first step: kernels, communication": (DLRM, step("kernel", "communication")),
    "diff/control, first step: kernels, communication": (CONTROL, step("kernel", "communication")),
    "single_v100, first step: kernels, communication": (V100, step("kernel", "communication")),
    "nccl_all_to_all_not_known: kernels, communication": (
        "tb_edge/nccl_all_to_all_not_known",
        step("kernel", "communication"),
    ),
    "user_annotation_counts_as_cpu: operators, other": (
        "tb_edge/user_annotation_counts_as_cpu",
        step("cpu", "other"),
    ),
    "ns_resolution, first step: operators, other": (NANOSECONDS, step("cpu", "other")),
    "triton: runtime": (TRITON, step("runtime")),
    "step_fully_covered_by_kernel: step, kernels, other": (
        "tb_edge/step_fully_covered_by_kernel",
        step("duration", "kernel", "other"),
    ),
    "gpu_only_trace: step": ("tb_edge/gpu_only_trace", step("duration")),
    "dlrm_8rank, rank 0: communicating without computing, per step": (DLRM, distributed("mean_exposed_ns")),
    "module_called_twice_inside_parent: Block_0": ("tb_edge/module_called_twice_inside_parent", both(modules)),
    "module_backward_fwdbwd: backward time of Net_0, host and device": (
        "tb_edge/module_backward_fwdbwd",
        both(backward),
    ),
    "lightning_user_annotation: modules": ("tb_edge/lightning_user_annotation", both(module_count)),
    "memory_unknown_device: blocks": ("tb_edge/memory_unknown_device", both(blocks)),
    "memory_pairs: blocks": ("tb_edge/memory_pairs", both(blocks)),
    **{name: (f"tb_edge/{name}", lost(calls)) for name in LOST},
}
"""{example on the page: (trace, (plugin's answer, holotrace's answer))}."""


@cache
def opened(name: str, goldens: Path, traces: Path) -> Case:
    """Open a case; later calls return the same object."""
    return case(name, goldens, traces)


def shown() -> dict[str, tuple[str, str]]:
    """Return {example: (plugin's answer, holotrace's answer)}, as shown on the page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[1]: (row[2], row[3]) for row in cells if len(row) == CELLS and row[1] != "example"}


def test_the_page_shows_these_examples() -> None:
    """The page has exactly the examples that these tests check."""
    assert sorted(shown()) == sorted(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_page_shows_both_answers(example: str, goldens: Path, real_traces: Path) -> None:
    """Each row of the documentation page shows the plugin's recorded answer and holotrace's current answer."""
    name, (theirs, ours) = EXAMPLES[example]
    one = opened(name, goldens, real_traces)
    assert shown()[example] == (theirs(one), ours(one))


def test_holotrace_lists_more_runs_than_the_plugin(real_traces: Path) -> None:
    """The plugin lists only folders with `.pt.trace.json[.gz]` files; holotrace lists all folders with traces."""
    listed = holotrace.find_runs(str(real_traces))
    by_name = {path.parent for ending in ("", ".gz") for path in real_traces.rglob(f"*.pt.trace.json{ending}")}
    assert len(listed.runs) > len(by_name)
