"""Holistic Trace Analysis: where the GPU time of a PyTorch job went.

    import hta

    trace = hta.open_trace("traces/")
    hta.temporal_breakdown(trace).per_device

Names are imported when first used, so that `import hta` is quick and loads none of the libraries behind it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hta.analyses.communication_overlap import CommunicationOverlap, communication_overlap
    from hta.analyses.critical_path import CriticalPath, critical_path
    from hta.analyses.cupti_counters import CuptiCounters, cupti_counters
    from hta.analyses.distributed import Distributed, distributed
    from hta.analyses.gpu_summary import GpuSummary, gpu_summary
    from hta.analyses.idle_time import IdleTime, idle_time
    from hta.analyses.kernel_breakdown import KernelBreakdown, kernel_breakdown
    from hta.analyses.kernel_sequences import KernelSequences, kernel_sequences
    from hta.analyses.kernels import Kernels, kernels
    from hta.analyses.launch_statistics import LaunchStatistics, launch_statistics
    from hta.analyses.memory_bandwidth import MemoryBandwidth, memory_bandwidth
    from hta.analyses.memory_timeline import MemoryTimeline, memory_timeline
    from hta.analyses.modules import Modules, modules
    from hta.analyses.operator_kernels import OperatorKernels, operator_kernels
    from hta.analyses.operator_memory import OperatorMemory, operator_memory
    from hta.analyses.operators import Operators, operators
    from hta.analyses.queue_length import QueueLength, queue_length
    from hta.analyses.step_time import StepTime, step_time
    from hta.analyses.stragglers import Stragglers, stragglers
    from hta.analyses.temporal_breakdown import TemporalBreakdown, temporal_breakdown
    from hta.analyses.user_annotations import UserAnnotations, user_annotations
    from hta.comparisons.compare_operators import OperatorComparison, compare_operators
    from hta.comparisons.compare_traces import TraceComparison, compare_traces
    from hta.comparisons.what_if import (
        NoLaunchOverhead,
        PerfectOverlap,
        Remove,
        Replace,
        Scale,
        WhatIf,
        what_if,
    )
    from hta.enrich.path_graph import PathGraph, critical_path_graph
    from hta.errors import (
        DuplicateRankError,
        HtaError,
        InconsistentTimesError,
        InvalidOptionError,
        LimitReachedError,
        MissingDataError,
        NotASavedPathError,
        NotATraceError,
        TraceNotFoundError,
        UnknownRankError,
        UnreachableError,
        UnreadableTraceError,
        WorkerLostError,
    )
    from hta.execution.executor import IN_PROCESS
    from hta.execution.processes import processes
    from hta.ingest.open_trace import open_trace
    from hta.ingest.runs import Run, Runs, find_runs
    from hta.ingest.write_store import Ingested, write_store
    from hta.recommendations.advice import Advice, advice
    from hta.recommendations.rules import Thresholds
    from hta.schema import EventKind, KernelKind
    from hta.store.trace import RankTrace, Trace

    __version__: str

_MODULES = {
    "Advice": "hta.recommendations.advice",
    "CommunicationOverlap": "hta.analyses.communication_overlap",
    "CriticalPath": "hta.analyses.critical_path",
    "CuptiCounters": "hta.analyses.cupti_counters",
    "Distributed": "hta.analyses.distributed",
    "DuplicateRankError": "hta.errors",
    "EventKind": "hta.schema",
    "GpuSummary": "hta.analyses.gpu_summary",
    "HtaError": "hta.errors",
    "IN_PROCESS": "hta.execution.executor",
    "IdleTime": "hta.analyses.idle_time",
    "InconsistentTimesError": "hta.errors",
    "Ingested": "hta.ingest.write_store",
    "InvalidOptionError": "hta.errors",
    "KernelBreakdown": "hta.analyses.kernel_breakdown",
    "KernelKind": "hta.schema",
    "KernelSequences": "hta.analyses.kernel_sequences",
    "Kernels": "hta.analyses.kernels",
    "LaunchStatistics": "hta.analyses.launch_statistics",
    "LimitReachedError": "hta.errors",
    "MemoryBandwidth": "hta.analyses.memory_bandwidth",
    "MemoryTimeline": "hta.analyses.memory_timeline",
    "MissingDataError": "hta.errors",
    "Modules": "hta.analyses.modules",
    "NoLaunchOverhead": "hta.comparisons.what_if",
    "NotASavedPathError": "hta.errors",
    "NotATraceError": "hta.errors",
    "OperatorComparison": "hta.comparisons.compare_operators",
    "OperatorKernels": "hta.analyses.operator_kernels",
    "OperatorMemory": "hta.analyses.operator_memory",
    "Operators": "hta.analyses.operators",
    "PathGraph": "hta.enrich.path_graph",
    "PerfectOverlap": "hta.comparisons.what_if",
    "QueueLength": "hta.analyses.queue_length",
    "RankTrace": "hta.store.trace",
    "Remove": "hta.comparisons.what_if",
    "Replace": "hta.comparisons.what_if",
    "Run": "hta.ingest.runs",
    "Runs": "hta.ingest.runs",
    "Scale": "hta.comparisons.what_if",
    "StepTime": "hta.analyses.step_time",
    "Stragglers": "hta.analyses.stragglers",
    "TemporalBreakdown": "hta.analyses.temporal_breakdown",
    "Thresholds": "hta.recommendations.rules",
    "Trace": "hta.store.trace",
    "TraceComparison": "hta.comparisons.compare_traces",
    "TraceNotFoundError": "hta.errors",
    "UnknownRankError": "hta.errors",
    "UnreachableError": "hta.errors",
    "UnreadableTraceError": "hta.errors",
    "WorkerLostError": "hta.errors",
    "UserAnnotations": "hta.analyses.user_annotations",
    "WhatIf": "hta.comparisons.what_if",
    "advice": "hta.recommendations.advice",
    "communication_overlap": "hta.analyses.communication_overlap",
    "compare_operators": "hta.comparisons.compare_operators",
    "compare_traces": "hta.comparisons.compare_traces",
    "critical_path": "hta.analyses.critical_path",
    "critical_path_graph": "hta.enrich.path_graph",
    "cupti_counters": "hta.analyses.cupti_counters",
    "distributed": "hta.analyses.distributed",
    "find_runs": "hta.ingest.runs",
    "gpu_summary": "hta.analyses.gpu_summary",
    "idle_time": "hta.analyses.idle_time",
    "kernel_breakdown": "hta.analyses.kernel_breakdown",
    "kernel_sequences": "hta.analyses.kernel_sequences",
    "kernels": "hta.analyses.kernels",
    "launch_statistics": "hta.analyses.launch_statistics",
    "memory_bandwidth": "hta.analyses.memory_bandwidth",
    "memory_timeline": "hta.analyses.memory_timeline",
    "modules": "hta.analyses.modules",
    "open_trace": "hta.ingest.open_trace",
    "operator_kernels": "hta.analyses.operator_kernels",
    "operator_memory": "hta.analyses.operator_memory",
    "operators": "hta.analyses.operators",
    "processes": "hta.execution.processes",
    "queue_length": "hta.analyses.queue_length",
    "step_time": "hta.analyses.step_time",
    "stragglers": "hta.analyses.stragglers",
    "temporal_breakdown": "hta.analyses.temporal_breakdown",
    "user_annotations": "hta.analyses.user_annotations",
    "what_if": "hta.comparisons.what_if",
    "write_store": "hta.ingest.write_store",
}

__all__ = [
    "IN_PROCESS",
    "Advice",
    "CommunicationOverlap",
    "CriticalPath",
    "CuptiCounters",
    "Distributed",
    "DuplicateRankError",
    "EventKind",
    "GpuSummary",
    "HtaError",
    "IdleTime",
    "InconsistentTimesError",
    "Ingested",
    "InvalidOptionError",
    "KernelBreakdown",
    "KernelKind",
    "KernelSequences",
    "Kernels",
    "LaunchStatistics",
    "LimitReachedError",
    "MemoryBandwidth",
    "MemoryTimeline",
    "MissingDataError",
    "Modules",
    "NoLaunchOverhead",
    "NotASavedPathError",
    "NotATraceError",
    "OperatorComparison",
    "OperatorKernels",
    "OperatorMemory",
    "Operators",
    "PathGraph",
    "PerfectOverlap",
    "QueueLength",
    "RankTrace",
    "Remove",
    "Replace",
    "Run",
    "Runs",
    "Scale",
    "StepTime",
    "Stragglers",
    "TemporalBreakdown",
    "Thresholds",
    "Trace",
    "TraceComparison",
    "TraceNotFoundError",
    "UnknownRankError",
    "UnreachableError",
    "UnreadableTraceError",
    "UserAnnotations",
    "WhatIf",
    "WorkerLostError",
    "__version__",
    "advice",
    "communication_overlap",
    "compare_operators",
    "compare_traces",
    "critical_path",
    "critical_path_graph",
    "cupti_counters",
    "distributed",
    "find_runs",
    "gpu_summary",
    "idle_time",
    "kernel_breakdown",
    "kernel_sequences",
    "kernels",
    "launch_statistics",
    "memory_bandwidth",
    "memory_timeline",
    "modules",
    "open_trace",
    "operator_kernels",
    "operator_memory",
    "operators",
    "processes",
    "queue_length",
    "step_time",
    "stragglers",
    "temporal_breakdown",
    "user_annotations",
    "what_if",
    "write_store",
]


if not TYPE_CHECKING:  # type checkers would take any name for one that this function finds

    def __getattr__(name: str) -> Any:  # noqa: ANN401 -- as many types as names
        """Import a public name when it is first used."""
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415 -- takes longer than all else here

            value: Any = version("holistic-trace-analysis")
        elif name in _MODULES:
            value = getattr(importlib.import_module(_MODULES[name]), name)
        else:
            message = f"module 'hta' has no attribute {name!r}"
            raise AttributeError(message)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, and those that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
