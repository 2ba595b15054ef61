"""Traces on which the tests compare our results with HTA's (traceinsight 0.6.1)."""

from __future__ import annotations

FILES = {
    "param_dlrm": {rank: f"dlrm_8rank/worker{rank}_*" for rank in range(8)},
    "trace_filter": {rank: f"two_rank_128/sampled_rank-{rank}.*" for rank in range(2)},
    "trace_diff_control": {3: "diff/control/*"},
    "trace_diff_test": {1: "diff/test/*"},
    "trace_diff_pair": {1: "diff/test/*", 3: "diff/control/*"},
    "df_index_resolver": {1: "single_v100/*"},
    "ns_resolution_trace": {0: "ns_resolution/*"},
    "critical_path_simple_add": {0: "critical_path/simple_add/*"},
    "critical_path_alexnet": {0: "critical_path/alexnet/*"},
    "critical_path_cuda_event_sync": {0: "critical_path/event_sync/*"},
    "cupti_profiler": {0: "cupti/*"},
    "amd_trace": {0: "amd_mi250/*"},
    "mtia_inference_trace": {0: "mtia_inference/*"},
    "triton_example": {0: "triton/*"},
    "cpu_only": {34: "cpu_only/*"},
    "execution_trace": {0: "execution_trace/*_trace.json.gz"},
}
"""{golden folder: {rank: pattern of the file that HTA read}}."""
