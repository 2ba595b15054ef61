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
    from hta.analyses.idle_time import IdleTime, idle_time
    from hta.analyses.kernel_breakdown import KernelBreakdown, kernel_breakdown
    from hta.analyses.temporal_breakdown import TemporalBreakdown, temporal_breakdown
    from hta.errors import (
        DuplicateRankError,
        HtaError,
        InvalidOptionError,
        MissingDataError,
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
    "DuplicateRankError": "hta.errors",
    "EventKind": "hta.schema",
    "HtaError": "hta.errors",
    "IN_PROCESS": "hta.execution.executor",
    "IdleTime": "hta.analyses.idle_time",
    "InvalidOptionError": "hta.errors",
    "KernelBreakdown": "hta.analyses.kernel_breakdown",
    "KernelKind": "hta.schema",
    "MissingDataError": "hta.errors",
    "NotATraceError": "hta.errors",
    "RankTrace": "hta.store.trace",
    "TemporalBreakdown": "hta.analyses.temporal_breakdown",
    "Trace": "hta.store.trace",
    "TraceNotFoundError": "hta.errors",
    "UnknownRankError": "hta.errors",
    "UnreadableTraceError": "hta.errors",
    "communication_overlap": "hta.analyses.communication_overlap",
    "idle_time": "hta.analyses.idle_time",
    "kernel_breakdown": "hta.analyses.kernel_breakdown",
    "open_trace": "hta.ingest.open_trace",
    "processes": "hta.execution.processes",
    "temporal_breakdown": "hta.analyses.temporal_breakdown",
}

__all__ = [
    "IN_PROCESS",
    "CommunicationOverlap",
    "DuplicateRankError",
    "EventKind",
    "HtaError",
    "IdleTime",
    "InvalidOptionError",
    "KernelBreakdown",
    "KernelKind",
    "MissingDataError",
    "NotATraceError",
    "RankTrace",
    "TemporalBreakdown",
    "Trace",
    "TraceNotFoundError",
    "UnknownRankError",
    "UnreadableTraceError",
    "__version__",
    "communication_overlap",
    "idle_time",
    "kernel_breakdown",
    "open_trace",
    "processes",
    "temporal_breakdown",
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
