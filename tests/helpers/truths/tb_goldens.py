"""Traces on which tests compare our `compat` results with those of the last version of the TensorBoard plugin."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from holotrace.ingest.open_trace import open_trace
from holotrace.store.trace import Trace
from matrices import slow_except

REAL = {
    "hta_amd_mi250/worker0@default": "amd_mi250/*",
    "hta_cpu_only/rank-34.Jul_15_10_52_41@1": "cpu_only/*",
    "hta_df_index_resolver/worker0@default": "single_v100/*",
    "hta_ns_resolution/rank-0.Apr_03_18_51_38@1": "ns_resolution/*",
    "hta_trace_diff_control/worker0@default": "diff/control/*",
    "hta_trace_diff_test/worker0@default": "diff/test/*",
    "hta_triton_example/worker0@default": "triton/*",
    **{f"param_dlrm_8rank/worker{rank}_step_12@1": f"dlrm_8rank/worker{rank}_*" for rank in range(8)},
    "resnet50_num_workers_0/worker0@1": "tensorboard/resnet50_num_workers_0/worker0.1623143089861.*",
    "resnet50_num_workers_0/worker0@2": "tensorboard/resnet50_num_workers_0/worker0.1623143566756.*",
    "resnet50_num_workers_4/worker0@1": "tensorboard/resnet50_num_workers_4/*",
    "resnet50_num_workers_4/worker0@2": "tensorboard/resnet50_num_workers_4/*",
}
"""{golden folder: pattern of the trace}; if several files match, the span in the folder's name selects one."""

UNIT = (
    "test_all_categories/0",
    "test_build_module_hierarchy/0",
    "test_datapipe/0",
    "test_distributed_gloo_cpu/0",
    "test_distributed_gloo_cpu/1",
    "test_distributed_gloo_gpu/0",
    "test_distributed_gloo_gpu/1",
    "test_distributed_nccl/0",
    "test_distributed_nccl/1",
    "test_distributed_nccl_user_annotation_has_communication/0",
    "test_external_id/0",
    "test_gpu_utilization/0",
    "test_gpu_utilization_kernel_out_of_step/0",
    "test_group_by_kernel_columns/0",
    "test_group_by_kernel_columns_invalid_input/0",
    "test_last_steps_no_kernel/0",
    "test_memory_curve_no_step_plot/0",
    "test_memory_curve_step_plot/0",
    "test_memory_view/0",
    "test_multiple_profilersteps_no_overlap/0",
    "test_multiple_profilersteps_with_overlap/0",
    "test_no_profilerstep/0",
    "test_operator_relation/0",
    "test_operator_relation/1",
    "test_pure_cpu/0",
    "test_remove_dup_nodes/0",
    "test_runtime_called_by_profilerstep/0",
    "test_runtime_launch_multipe_kernels/0",
    "test_self_time/0",
    "test_tensor_core/0",
    "test_top_level_runtime/0",
)
"""Inputs of the plugin's own tests."""

EDGE = (
    "backward_without_forward_flow_dropped",
    "call_stacks",
    "comm_11pct_ddp_gloo",
    "comm_op_outside_steps",
    "comm_sizes_by_dtype",
    "cuda_runtime_category",
    "dataloader_6pct_and_5pct",
    "duplicate_name_parent_child",
    "empty_events",
    "gpu_only_trace",
    "gpu_user_annotation_step_duplicate",
    "invalid_escape_json",
    "kernel_before_first_step_and_tail",
    "lightning",
    "lightning_user_annotation",
    "memory_at_node_boundaries",
    "memory_cpu_peak_over_gpu_total",
    "memory_pairs",
    "memory_peak_over_90pct",
    "memory_unknown_device",
    "module_backward_fwdbwd",
    "module_called_twice_inside_parent",
    "module_tree",
    "nccl_all_to_all_not_known",
    "nccl_and_gloo_both",
    "nccl_kernel_by_external_id",
    "no_steps_cpu_only",
    "no_steps_gpu",
    "overlapping_kernels_two_streams_sm_eff",
    "partially_overlapping_ops",
    "record_window_end",
    "runtime_external_id_mismatch",
    "runtime_external_id_zero",
    "runtime_without_external_id",
    "runtime_without_external_id_and_module",
    "staled_kernel_with_step_thread",
    "staled_kernel_without_step_thread",
    "step_fully_covered_by_kernel",
    "string_tids",
    "tail_step_fewer_kernels_79pct",
    "tail_step_fewer_kernels_80pct",
    "tensor_core_names",
    "two_gpus_low_util",
    "two_steps_first_covered",
    "two_workers_like_names",
    "unquoted_NA_json",
    "user_annotation_counts_as_cpu",
    "x_event_unknown_cat",
    "zero_duration_children_same_start",
)
"""Small inputs, each of which tests one rule."""

CASES = (
    *(f"tb/{name}" for name in REAL),
    *(f"tb/unit/{name}" for name in UNIT),
    *(f"tb_edge/{name}" for name in EDGE),
)

EACH_CASE = slow_except(
    CASES, (*(f"tb/{name}" for name in REAL if "dlrm" not in name), *(f"tb_edge/{name}" for name in EDGE[::2]))
)
"""The cases as test parameters; the quick tests run most real traces and half of `tb_edge`."""

LOST = (
    "bare_list_json",
    "device_id_above_63",
    "event_without_name",
    "fwdbwd_two_forward_ops_same_backward_root",
    "kernel_without_device_arg",
    "kernel_without_dur",
    "module_dropped_by_overlap",
    "profiler_step_bad_name",
    "threads_name_tid",
    "x_event_without_cat",
)
"""Cases of `tb_edge` that the plugin cannot read."""


@dataclass(frozen=True)
class Case:
    """A trace and the plugin's answers."""

    trace: Trace
    answers: Path

    def view(self, name: str) -> Any:
        """Return the plugin's answer for a view, or None if there is none.

        The view `internals` contains numbers that the plugin has not rounded.
        """
        files = sorted(self.answers.glob(f"{name}.json*"))
        if not files:
            return None
        return json.loads(gzip.decompress(files[0].read_bytes()) if files[0].suffix == ".gz" else files[0].read_bytes())

    def rows(self, name: str) -> list[list[Any]]:
        """Return the rows of the plugin's table, or an empty list if it has no table."""
        answer = self.view(name) or {"rows": []}
        rows: list[list[Any]] = answer.get("data", answer)["rows"]
        return rows


def case(name: str, goldens: Path, traces: Path) -> Case:
    """Open the trace of one of the `CASES`; return it with the plugin's answers."""
    if name.startswith("tb_edge/"):
        return Case(_opened(goldens / name / "input.pt.trace.json"), goldens / name / "head")
    if name.startswith("tb/unit/"):
        return Case(_opened(goldens / name / "input.json"), goldens / name)
    files = sorted(traces.glob(REAL[name.removeprefix("tb/")]))
    span = 1 if len(files) > 1 and name.endswith("@2") else 0
    return Case(_opened(files[span]), goldens / name)


@cache
def _opened(path: Path) -> Trace:
    return open_trace(str(path), cache=False)
