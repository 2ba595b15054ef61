"""Holistic Trace Analysis: where the GPU time of a PyTorch job went.

    import holotrace

    trace = holotrace.open_trace("traces/")
    holotrace.temporal_breakdown(trace).per_device

Names are imported when first used, so that `import holotrace` is quick and loads none of the libraries behind it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holotrace.analyses.communication_overlap import CommunicationOverlap, communication_overlap
    from holotrace.analyses.critical_path import CriticalPath, critical_path
    from holotrace.analyses.cupti_counters import CuptiCounters, cupti_counters
    from holotrace.analyses.distributed import Distributed, distributed
    from holotrace.analyses.gpu_summary import GpuSummary, gpu_summary
    from holotrace.analyses.idle_time import IdleTime, idle_time
    from holotrace.analyses.kernel_breakdown import KernelBreakdown, kernel_breakdown
    from holotrace.analyses.kernel_sequences import KernelSequences, kernel_sequences
    from holotrace.analyses.kernels import Kernels, kernels
    from holotrace.analyses.launch_statistics import LaunchStatistics, launch_statistics
    from holotrace.analyses.memory_bandwidth import MemoryBandwidth, memory_bandwidth
    from holotrace.analyses.memory_timeline import MemoryTimeline, memory_timeline
    from holotrace.analyses.modules import Modules, modules
    from holotrace.analyses.operator_kernels import OperatorKernels, operator_kernels
    from holotrace.analyses.operator_memory import OperatorMemory, operator_memory
    from holotrace.analyses.operators import Operators, operators
    from holotrace.analyses.queue_length import QueueLength, queue_length
    from holotrace.analyses.step_time import StepTime, step_time
    from holotrace.analyses.stragglers import Stragglers, stragglers
    from holotrace.analyses.temporal_breakdown import TemporalBreakdown, temporal_breakdown
    from holotrace.analyses.user_annotations import UserAnnotations, user_annotations
    from holotrace.comparisons.compare_operators import OperatorComparison, compare_operators
    from holotrace.comparisons.compare_traces import TraceComparison, compare_traces
    from holotrace.comparisons.what_if import (
        NoLaunchOverhead,
        PerfectOverlap,
        Remove,
        Replace,
        Scale,
        WhatIf,
        what_if,
    )
    from holotrace.enrich.critical_path.path_graph import PathGraph, critical_path_graph
    from holotrace.errors import (
        DuplicateRankError,
        HolotraceError,
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
    from holotrace.execution.executor import IN_PROCESS
    from holotrace.execution.processes import processes
    from holotrace.ingest.open_trace import open_trace
    from holotrace.ingest.runs import Run, Runs, find_runs
    from holotrace.ingest.write_store import Ingested, write_store
    from holotrace.recommendations.advice import Advice, advice
    from holotrace.recommendations.rules import Thresholds
    from holotrace.schema import EventKind, KernelKind
    from holotrace.store.trace import RankTrace, Trace

    __version__: str

_MODULES = {
    "Advice": "holotrace.recommendations.advice",
    "CommunicationOverlap": "holotrace.analyses.communication_overlap",
    "CriticalPath": "holotrace.analyses.critical_path",
    "CuptiCounters": "holotrace.analyses.cupti_counters",
    "Distributed": "holotrace.analyses.distributed",
    "DuplicateRankError": "holotrace.errors",
    "EventKind": "holotrace.schema",
    "GpuSummary": "holotrace.analyses.gpu_summary",
    "HolotraceError": "holotrace.errors",
    "IN_PROCESS": "holotrace.execution.executor",
    "IdleTime": "holotrace.analyses.idle_time",
    "InconsistentTimesError": "holotrace.errors",
    "Ingested": "holotrace.ingest.write_store",
    "InvalidOptionError": "holotrace.errors",
    "KernelBreakdown": "holotrace.analyses.kernel_breakdown",
    "KernelKind": "holotrace.schema",
    "KernelSequences": "holotrace.analyses.kernel_sequences",
    "Kernels": "holotrace.analyses.kernels",
    "LaunchStatistics": "holotrace.analyses.launch_statistics",
    "LimitReachedError": "holotrace.errors",
    "MemoryBandwidth": "holotrace.analyses.memory_bandwidth",
    "MemoryTimeline": "holotrace.analyses.memory_timeline",
    "MissingDataError": "holotrace.errors",
    "Modules": "holotrace.analyses.modules",
    "NoLaunchOverhead": "holotrace.comparisons.what_if",
    "NotASavedPathError": "holotrace.errors",
    "NotATraceError": "holotrace.errors",
    "OperatorComparison": "holotrace.comparisons.compare_operators",
    "OperatorKernels": "holotrace.analyses.operator_kernels",
    "OperatorMemory": "holotrace.analyses.operator_memory",
    "Operators": "holotrace.analyses.operators",
    "PathGraph": "holotrace.enrich.critical_path.path_graph",
    "PerfectOverlap": "holotrace.comparisons.what_if",
    "QueueLength": "holotrace.analyses.queue_length",
    "RankTrace": "holotrace.store.trace",
    "Remove": "holotrace.comparisons.what_if",
    "Replace": "holotrace.comparisons.what_if",
    "Run": "holotrace.ingest.runs",
    "Runs": "holotrace.ingest.runs",
    "Scale": "holotrace.comparisons.what_if",
    "StepTime": "holotrace.analyses.step_time",
    "Stragglers": "holotrace.analyses.stragglers",
    "TemporalBreakdown": "holotrace.analyses.temporal_breakdown",
    "Thresholds": "holotrace.recommendations.rules",
    "Trace": "holotrace.store.trace",
    "TraceComparison": "holotrace.comparisons.compare_traces",
    "TraceNotFoundError": "holotrace.errors",
    "UnknownRankError": "holotrace.errors",
    "UnreachableError": "holotrace.errors",
    "UnreadableTraceError": "holotrace.errors",
    "WorkerLostError": "holotrace.errors",
    "UserAnnotations": "holotrace.analyses.user_annotations",
    "WhatIf": "holotrace.comparisons.what_if",
    "advice": "holotrace.recommendations.advice",
    "communication_overlap": "holotrace.analyses.communication_overlap",
    "compare_operators": "holotrace.comparisons.compare_operators",
    "compare_traces": "holotrace.comparisons.compare_traces",
    "critical_path": "holotrace.analyses.critical_path",
    "critical_path_graph": "holotrace.enrich.critical_path.path_graph",
    "cupti_counters": "holotrace.analyses.cupti_counters",
    "distributed": "holotrace.analyses.distributed",
    "find_runs": "holotrace.ingest.runs",
    "gpu_summary": "holotrace.analyses.gpu_summary",
    "idle_time": "holotrace.analyses.idle_time",
    "kernel_breakdown": "holotrace.analyses.kernel_breakdown",
    "kernel_sequences": "holotrace.analyses.kernel_sequences",
    "kernels": "holotrace.analyses.kernels",
    "launch_statistics": "holotrace.analyses.launch_statistics",
    "memory_bandwidth": "holotrace.analyses.memory_bandwidth",
    "memory_timeline": "holotrace.analyses.memory_timeline",
    "modules": "holotrace.analyses.modules",
    "open_trace": "holotrace.ingest.open_trace",
    "operator_kernels": "holotrace.analyses.operator_kernels",
    "operator_memory": "holotrace.analyses.operator_memory",
    "operators": "holotrace.analyses.operators",
    "processes": "holotrace.execution.processes",
    "queue_length": "holotrace.analyses.queue_length",
    "step_time": "holotrace.analyses.step_time",
    "stragglers": "holotrace.analyses.stragglers",
    "temporal_breakdown": "holotrace.analyses.temporal_breakdown",
    "user_annotations": "holotrace.analyses.user_annotations",
    "what_if": "holotrace.comparisons.what_if",
    "write_store": "holotrace.ingest.write_store",
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
    "HolotraceError",
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

            value: Any = version("holotrace")
        elif name in _MODULES:
            value = getattr(importlib.import_module(_MODULES[name]), name)
        else:
            message = f"module 'holotrace' has no attribute {name!r}"
            raise AttributeError(message)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, and those that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
