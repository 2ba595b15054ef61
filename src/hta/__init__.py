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
    from hta.analyses.idle_time import IdleTime, idle_time
    from hta.analyses.kernel_breakdown import KernelBreakdown, kernel_breakdown
    from hta.analyses.kernel_sequences import KernelSequences, kernel_sequences
    from hta.analyses.launch_statistics import LaunchStatistics, launch_statistics
    from hta.analyses.memory_bandwidth import MemoryBandwidth, memory_bandwidth
    from hta.analyses.memory_timeline import MemoryTimeline, memory_timeline
    from hta.analyses.operator_kernels import OperatorKernels, operator_kernels
    from hta.analyses.queue_length import QueueLength, queue_length
    from hta.analyses.stragglers import Stragglers, stragglers
    from hta.analyses.temporal_breakdown import TemporalBreakdown, temporal_breakdown
    from hta.analyses.user_annotations import UserAnnotations, user_annotations
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
        MissingDataError,
        NotASavedPathError,
        NotATraceError,
        TraceNotFoundError,
        UnknownRankError,
        UnreadableTraceError,
    )
    from hta.execution.executor import IN_PROCESS
    from hta.execution.processes import processes
    from hta.ingest.open_trace import open_trace
    from hta.schema import EventKind, KernelKind
    from hta.store.trace import RankTrace, Trace

    __version__: str

_MODULES = {
    "CommunicationOverlap": "hta.analyses.communication_overlap",
    "CriticalPath": "hta.analyses.critical_path",
    "CuptiCounters": "hta.analyses.cupti_counters",
    "DuplicateRankError": "hta.errors",
    "EventKind": "hta.schema",
    "HtaError": "hta.errors",
    "IN_PROCESS": "hta.execution.executor",
    "IdleTime": "hta.analyses.idle_time",
    "InconsistentTimesError": "hta.errors",
    "InvalidOptionError": "hta.errors",
    "KernelBreakdown": "hta.analyses.kernel_breakdown",
    "KernelKind": "hta.schema",
    "KernelSequences": "hta.analyses.kernel_sequences",
    "LaunchStatistics": "hta.analyses.launch_statistics",
    "MemoryBandwidth": "hta.analyses.memory_bandwidth",
    "MemoryTimeline": "hta.analyses.memory_timeline",
    "MissingDataError": "hta.errors",
    "NoLaunchOverhead": "hta.comparisons.what_if",
    "NotASavedPathError": "hta.errors",
    "NotATraceError": "hta.errors",
    "OperatorKernels": "hta.analyses.operator_kernels",
    "PathGraph": "hta.enrich.path_graph",
    "PerfectOverlap": "hta.comparisons.what_if",
    "QueueLength": "hta.analyses.queue_length",
    "RankTrace": "hta.store.trace",
    "Remove": "hta.comparisons.what_if",
    "Replace": "hta.comparisons.what_if",
    "Scale": "hta.comparisons.what_if",
    "Stragglers": "hta.analyses.stragglers",
    "TemporalBreakdown": "hta.analyses.temporal_breakdown",
    "Trace": "hta.store.trace",
    "TraceComparison": "hta.comparisons.compare_traces",
    "TraceNotFoundError": "hta.errors",
    "UnknownRankError": "hta.errors",
    "UnreadableTraceError": "hta.errors",
    "UserAnnotations": "hta.analyses.user_annotations",
    "WhatIf": "hta.comparisons.what_if",
    "communication_overlap": "hta.analyses.communication_overlap",
    "compare_traces": "hta.comparisons.compare_traces",
    "critical_path": "hta.analyses.critical_path",
    "critical_path_graph": "hta.enrich.path_graph",
    "cupti_counters": "hta.analyses.cupti_counters",
    "idle_time": "hta.analyses.idle_time",
    "kernel_breakdown": "hta.analyses.kernel_breakdown",
    "kernel_sequences": "hta.analyses.kernel_sequences",
    "launch_statistics": "hta.analyses.launch_statistics",
    "memory_bandwidth": "hta.analyses.memory_bandwidth",
    "memory_timeline": "hta.analyses.memory_timeline",
    "open_trace": "hta.ingest.open_trace",
    "operator_kernels": "hta.analyses.operator_kernels",
    "processes": "hta.execution.processes",
    "queue_length": "hta.analyses.queue_length",
    "stragglers": "hta.analyses.stragglers",
    "temporal_breakdown": "hta.analyses.temporal_breakdown",
    "user_annotations": "hta.analyses.user_annotations",
    "what_if": "hta.comparisons.what_if",
}

__all__ = [
    "IN_PROCESS",
    "CommunicationOverlap",
    "CriticalPath",
    "CuptiCounters",
    "DuplicateRankError",
    "EventKind",
    "HtaError",
    "IdleTime",
    "InconsistentTimesError",
    "InvalidOptionError",
    "KernelBreakdown",
    "KernelKind",
    "KernelSequences",
    "LaunchStatistics",
    "MemoryBandwidth",
    "MemoryTimeline",
    "MissingDataError",
    "NoLaunchOverhead",
    "NotASavedPathError",
    "NotATraceError",
    "OperatorKernels",
    "PathGraph",
    "PerfectOverlap",
    "QueueLength",
    "RankTrace",
    "Remove",
    "Replace",
    "Scale",
    "Stragglers",
    "TemporalBreakdown",
    "Trace",
    "TraceComparison",
    "TraceNotFoundError",
    "UnknownRankError",
    "UnreadableTraceError",
    "UserAnnotations",
    "WhatIf",
    "__version__",
    "communication_overlap",
    "compare_traces",
    "critical_path",
    "critical_path_graph",
    "cupti_counters",
    "idle_time",
    "kernel_breakdown",
    "kernel_sequences",
    "launch_statistics",
    "memory_bandwidth",
    "memory_timeline",
    "open_trace",
    "operator_kernels",
    "processes",
    "queue_length",
    "stragglers",
    "temporal_breakdown",
    "user_annotations",
    "what_if",
]


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
    """List the public names."""
    return __all__
