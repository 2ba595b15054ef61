"""Figures: `plot_<analysis>(result)` draws the result of the analysis of that name.

A figure takes a finished result and nothing else, so the notebook, the report and the pages show the same numbers.
Plotly is loaded by the first figure asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holotrace.figures.communication_overlap import plot_communication_overlap
    from holotrace.figures.compare_operators import plot_compare_operators
    from holotrace.figures.compare_traces import plot_compare_traces
    from holotrace.figures.critical_path import plot_critical_path
    from holotrace.figures.cupti_counters import plot_cupti_counters
    from holotrace.figures.distributed import plot_distributed
    from holotrace.figures.gpu_summary import plot_gpu_summary
    from holotrace.figures.idle_time import plot_idle_time
    from holotrace.figures.kernel_breakdown import plot_kernel_breakdown
    from holotrace.figures.kernel_sequences import plot_kernel_sequences
    from holotrace.figures.kernels import plot_kernels
    from holotrace.figures.launch_statistics import plot_launch_statistics
    from holotrace.figures.memory_bandwidth import plot_memory_bandwidth
    from holotrace.figures.memory_timeline import plot_memory_timeline
    from holotrace.figures.modules import plot_modules
    from holotrace.figures.operator_kernels import plot_operator_kernels
    from holotrace.figures.operator_memory import plot_operator_memory
    from holotrace.figures.operators import plot_operators
    from holotrace.figures.queue_length import plot_queue_length
    from holotrace.figures.step_time import plot_step_time
    from holotrace.figures.stragglers import plot_stragglers
    from holotrace.figures.temporal_breakdown import plot_temporal_breakdown
    from holotrace.figures.user_annotations import plot_user_annotations

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


if not TYPE_CHECKING:  # type checkers would take any name for one that this function finds

    def __getattr__(name: str) -> object:
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(import_module(f"{__name__}.{name.removeprefix('plot_')}"), name)


def __dir__() -> list[str]:
    """List the plots, and the names that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
