"""Figures: `plot_<analysis>(result)` draws the result of the analysis of that name.

A figure takes a finished result and nothing else, so the notebook, the report and the pages show the same numbers.
Plotly is loaded by the first figure asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hta.figures.communication_overlap import plot_communication_overlap
    from hta.figures.idle_time import plot_idle_time
    from hta.figures.kernel_breakdown import plot_kernel_breakdown
    from hta.figures.temporal_breakdown import plot_temporal_breakdown

__all__ = ["plot_communication_overlap", "plot_idle_time", "plot_kernel_breakdown", "plot_temporal_breakdown"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{name.removeprefix('plot_')}"), name)
