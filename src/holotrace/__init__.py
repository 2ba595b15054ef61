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
    from holotrace.analyses.communication_overlap.compute import CommunicationOverlap, communication_overlap
    from holotrace.analyses.compare_operators.compute import OperatorComparison, compare_operators
    from holotrace.analyses.compare_traces.compute import TraceComparison, compare_traces
    from holotrace.analyses.critical_path.compute import CriticalPath, critical_path
    from holotrace.analyses.cupti_counters.compute import CuptiCounters, cupti_counters
    from holotrace.analyses.distributed.compute import Distributed, distributed
    from holotrace.analyses.gpu_summary.compute import GpuSummary, gpu_summary
    from holotrace.analyses.idle_time.compute import IdleTime, idle_time
    from holotrace.analyses.kernel_breakdown.compute import KernelBreakdown, kernel_breakdown
    from holotrace.analyses.kernel_sequences.compute import KernelSequences, kernel_sequences
    from holotrace.analyses.kernels.compute import Kernels, kernels
    from holotrace.analyses.launch_statistics.compute import LaunchStatistics, launch_statistics
    from holotrace.analyses.memory_bandwidth.compute import MemoryBandwidth, memory_bandwidth
    from holotrace.analyses.memory_timeline.compute import MemoryTimeline, memory_timeline
    from holotrace.analyses.modules.compute import Modules, modules
    from holotrace.analyses.operator_kernels.compute import OperatorKernels, operator_kernels
    from holotrace.analyses.operator_memory.compute import OperatorMemory, operator_memory
    from holotrace.analyses.operators.compute import Operators, operators
    from holotrace.analyses.queue_length.compute import QueueLength, queue_length
    from holotrace.analyses.step_time.compute import StepTime, step_time
    from holotrace.analyses.stragglers.compute import Stragglers, stragglers
    from holotrace.analyses.temporal_breakdown.compute import TemporalBreakdown, temporal_breakdown
    from holotrace.analyses.user_annotations.compute import UserAnnotations, user_annotations
    from holotrace.enrich.critical_path.path_graph import PathGraph, critical_path_graph
    from holotrace.enrich.critical_path.what_if import (
        NoLaunchOverhead,
        PerfectOverlap,
        Remove,
        Replace,
        Scale,
        WhatIf,
        what_if,
    )
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
    from holotrace.sql_queries.query import sql
    from holotrace.store.trace import RankTrace, Trace
    from holotrace.whole_job.summary import Summary, summary

    __version__: str

_MODULES = {
    "Advice": "holotrace.recommendations.advice",
    "CommunicationOverlap": "holotrace.analyses.communication_overlap.compute",
    "CriticalPath": "holotrace.analyses.critical_path.compute",
    "CuptiCounters": "holotrace.analyses.cupti_counters.compute",
    "Distributed": "holotrace.analyses.distributed.compute",
    "DuplicateRankError": "holotrace.errors",
    "EventKind": "holotrace.schema",
    "GpuSummary": "holotrace.analyses.gpu_summary.compute",
    "HolotraceError": "holotrace.errors",
    "IN_PROCESS": "holotrace.execution.executor",
    "IdleTime": "holotrace.analyses.idle_time.compute",
    "InconsistentTimesError": "holotrace.errors",
    "Ingested": "holotrace.ingest.write_store",
    "InvalidOptionError": "holotrace.errors",
    "KernelBreakdown": "holotrace.analyses.kernel_breakdown.compute",
    "KernelKind": "holotrace.schema",
    "KernelSequences": "holotrace.analyses.kernel_sequences.compute",
    "Kernels": "holotrace.analyses.kernels.compute",
    "LaunchStatistics": "holotrace.analyses.launch_statistics.compute",
    "LimitReachedError": "holotrace.errors",
    "MemoryBandwidth": "holotrace.analyses.memory_bandwidth.compute",
    "MemoryTimeline": "holotrace.analyses.memory_timeline.compute",
    "MissingDataError": "holotrace.errors",
    "Modules": "holotrace.analyses.modules.compute",
    "NoLaunchOverhead": "holotrace.enrich.critical_path.what_if",
    "NotASavedPathError": "holotrace.errors",
    "NotATraceError": "holotrace.errors",
    "OperatorComparison": "holotrace.analyses.compare_operators.compute",
    "OperatorKernels": "holotrace.analyses.operator_kernels.compute",
    "OperatorMemory": "holotrace.analyses.operator_memory.compute",
    "Operators": "holotrace.analyses.operators.compute",
    "PathGraph": "holotrace.enrich.critical_path.path_graph",
    "PerfectOverlap": "holotrace.enrich.critical_path.what_if",
    "QueueLength": "holotrace.analyses.queue_length.compute",
    "RankTrace": "holotrace.store.trace",
    "Remove": "holotrace.enrich.critical_path.what_if",
    "Replace": "holotrace.enrich.critical_path.what_if",
    "Run": "holotrace.ingest.runs",
    "Runs": "holotrace.ingest.runs",
    "Scale": "holotrace.enrich.critical_path.what_if",
    "StepTime": "holotrace.analyses.step_time.compute",
    "Stragglers": "holotrace.analyses.stragglers.compute",
    "Summary": "holotrace.whole_job.summary",
    "TemporalBreakdown": "holotrace.analyses.temporal_breakdown.compute",
    "Thresholds": "holotrace.recommendations.rules",
    "Trace": "holotrace.store.trace",
    "TraceComparison": "holotrace.analyses.compare_traces.compute",
    "TraceNotFoundError": "holotrace.errors",
    "UnknownRankError": "holotrace.errors",
    "UnreachableError": "holotrace.errors",
    "UnreadableTraceError": "holotrace.errors",
    "WorkerLostError": "holotrace.errors",
    "UserAnnotations": "holotrace.analyses.user_annotations.compute",
    "WhatIf": "holotrace.enrich.critical_path.what_if",
    "advice": "holotrace.recommendations.advice",
    "communication_overlap": "holotrace.analyses.communication_overlap.compute",
    "compare_operators": "holotrace.analyses.compare_operators.compute",
    "compare_traces": "holotrace.analyses.compare_traces.compute",
    "critical_path": "holotrace.analyses.critical_path.compute",
    "critical_path_graph": "holotrace.enrich.critical_path.path_graph",
    "cupti_counters": "holotrace.analyses.cupti_counters.compute",
    "distributed": "holotrace.analyses.distributed.compute",
    "find_runs": "holotrace.ingest.runs",
    "gpu_summary": "holotrace.analyses.gpu_summary.compute",
    "idle_time": "holotrace.analyses.idle_time.compute",
    "kernel_breakdown": "holotrace.analyses.kernel_breakdown.compute",
    "kernel_sequences": "holotrace.analyses.kernel_sequences.compute",
    "kernels": "holotrace.analyses.kernels.compute",
    "launch_statistics": "holotrace.analyses.launch_statistics.compute",
    "memory_bandwidth": "holotrace.analyses.memory_bandwidth.compute",
    "memory_timeline": "holotrace.analyses.memory_timeline.compute",
    "modules": "holotrace.analyses.modules.compute",
    "open_trace": "holotrace.ingest.open_trace",
    "operator_kernels": "holotrace.analyses.operator_kernels.compute",
    "operator_memory": "holotrace.analyses.operator_memory.compute",
    "operators": "holotrace.analyses.operators.compute",
    "processes": "holotrace.execution.processes",
    "queue_length": "holotrace.analyses.queue_length.compute",
    "sql": "holotrace.sql_queries.query",
    "step_time": "holotrace.analyses.step_time.compute",
    "stragglers": "holotrace.analyses.stragglers.compute",
    "summary": "holotrace.whole_job.summary",
    "temporal_breakdown": "holotrace.analyses.temporal_breakdown.compute",
    "user_annotations": "holotrace.analyses.user_annotations.compute",
    "what_if": "holotrace.enrich.critical_path.what_if",
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
    "Summary",
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
    "sql",
    "step_time",
    "stragglers",
    "summary",
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
