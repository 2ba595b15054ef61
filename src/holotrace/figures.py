"""Figures: `plot_<analysis>(result)` draws the result of the analysis of that name.

A figure takes a finished result and nothing else, so the notebook, the report and the pages show the same numbers.
Plotly is loaded by the first figure asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from holotrace.analyses.communication_overlap.figure import plot_communication_overlap
    from holotrace.analyses.compare_operators.figure import plot_compare_operators
    from holotrace.analyses.compare_traces.figure import plot_compare_traces
    from holotrace.analyses.critical_path.figure import plot_critical_path
    from holotrace.analyses.cupti_counters.figure import plot_cupti_counters
    from holotrace.analyses.distributed.figure import plot_distributed
    from holotrace.analyses.gpu_summary.figure import plot_gpu_summary
    from holotrace.analyses.idle_time.figure import plot_idle_time
    from holotrace.analyses.kernel_breakdown.figure import plot_kernel_breakdown
    from holotrace.analyses.kernel_sequences.figure import plot_kernel_sequences
    from holotrace.analyses.kernels.figure import plot_kernels
    from holotrace.analyses.launch_statistics.figure import plot_launch_statistics
    from holotrace.analyses.memory_bandwidth.figure import plot_memory_bandwidth
    from holotrace.analyses.memory_timeline.figure import plot_memory_timeline
    from holotrace.analyses.modules.figure import plot_modules
    from holotrace.analyses.operator_kernels.figure import plot_operator_kernels
    from holotrace.analyses.operator_memory.figure import plot_operator_memory
    from holotrace.analyses.operators.figure import plot_operators
    from holotrace.analyses.queue_length.figure import plot_queue_length
    from holotrace.analyses.step_time.figure import plot_step_time
    from holotrace.analyses.stragglers.figure import plot_stragglers
    from holotrace.analyses.temporal_breakdown.figure import plot_temporal_breakdown
    from holotrace.analyses.user_annotations.figure import plot_user_annotations

__all__ = [
    "plot_communication_overlap",
    "plot_compare_operators",
    "plot_compare_traces",
    "plot_critical_path",
    "plot_cupti_counters",
    "plot_distributed",
    "plot_gpu_summary",
    "plot_idle_time",
    "plot_kernel_breakdown",
    "plot_kernel_sequences",
    "plot_kernels",
    "plot_launch_statistics",
    "plot_memory_bandwidth",
    "plot_memory_timeline",
    "plot_modules",
    "plot_operator_kernels",
    "plot_operator_memory",
    "plot_operators",
    "plot_queue_length",
    "plot_step_time",
    "plot_stragglers",
    "plot_temporal_breakdown",
    "plot_user_annotations",
]


def figure_of(name: str, result: object, **options: object) -> go.Figure:
    """Draw the result of the analysis or comparison called `name`: `plot_<name>(result, **options)`."""
    module = import_module(f"holotrace.analyses.{name}.figure")  # loads plotly
    figure: go.Figure = getattr(module, f"plot_{name}")(result, **options)
    return figure


if not TYPE_CHECKING:  # type checkers would take any name for one that this function finds

    def __getattr__(name: str) -> object:
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(import_module(f"holotrace.analyses.{name.removeprefix('plot_')}.figure"), name)


def __dir__() -> list[str]:
    """List the plots, and the names that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
