"""Names that HTA's modules re-export; importing one loads the module that defines it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_WHERE = {
    "AttributeSpec": "hta.configs.default_values",
    "BreakdownAnalysis": "hta.analyzers.breakdown_analysis",
    "CPGraph": "hta.facade.graphs.critical_path",
    "CPUOperatorFilter": "hta.common.trace_filter",
    "CUDA_MAX_LAUNCH_QUEUE_PER_STREAM": "hta.common.constants",
    "CallGraph": "hta.common.trace_call_graph",
    "CallStackGraph": "hta.common.trace_call_stack",
    "CallStackIdentity": "hta.common.trace_call_stack",
    "CallStackNode": "hta.common.trace_call_stack",
    "CommunicationAnalysis": "hta.analyzers.communication_analysis",
    "CriticalPathAnalysis": "hta.analyzers.critical_path_analysis",
    "CudaKernelAnalysis": "hta.analyzers.cuda_kernel_analysis",
    "CuptiCounterAnalysis": "hta.analyzers.cupti_counter_analysis",
    "DeviceType": "hta.common.types",
    "Filter": "hta.common.trace_filter",
    "GPUKernelFilter": "hta.common.trace_filter",
    "IdleTimeType": "hta.utils.utils",
    "KernelType": "hta.utils.utils",
    "ParserConfig": "hta.configs.parser_config",
    "StragglerAnalysis": "hta.analyzers.straggler_analysis",
    "TimeSeriesTypes": "holotrace.export.counters",
    "Trace": "hta.common.trace",
    "TraceCounters": "hta.analyzers.trace_counters",
    "TraceSymbolTable": "hta.facade.trace.symbols",
    "ValueType": "hta.configs.default_values",
    "create_rank_to_trace_dict": "hta.common.trace_file",
    "decode_symbol_id_to_symbol_name": "hta.facade.trace.symbols",
    "extract_iteration_info": "hta.analyzers.straggler",
    "find_events_by_name_patterns_using_decoded_names": "hta.common.trace_df",
    "find_events_by_name_patterns_using_symbol_table": "hta.common.trace_df",
    "find_stragglers_with_late_start_comm_kernels": "hta.analyzers.straggler",
    "flatten_column_names": "hta.utils.utils",
    "get_cpu_gpu_correlation": "hta.common.trace",
    "get_kernel_type": "hta.utils.utils",
    "get_memory_kernel_type": "hta.utils.utils",
    "get_symbol_column_names": "hta.utils.utils",
    "get_trace_files": "hta.common.trace_file",
    "infer_device_type": "hta.common.types",
    "is_comm_kernel": "hta.utils.utils",
    "is_valid_directory": "hta.utils.checker",
    "logger": "hta.configs.config",
    "merge_kernel_intervals": "hta.utils.utils",
    "normalize_gpu_stream_numbers": "hta.utils.utils",
    "normalize_path": "hta.utils.utils",
    "parse_trace_dataframe": "hta.common.trace_parser",
    "plot_timeline_gpu_kernels": "hta.analyzers.timeline",
    "read_trace": "hta.common.trace_file",
    "shorten_name": "hta.facade.trace.names",
}
"""{name: the module that defines it}."""


def names_of(module: str, names: Mapping[str, str] = _WHERE) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that imports these names from their modules on first use."""

    def imported(name: str) -> Any:  # noqa: ANN401 -- each name has its own type
        if name not in names or names[name] == module:
            message = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(import_module(names[name]), name)

    return imported
