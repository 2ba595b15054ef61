"""The analyses in the order they are read; the command line, the report and the pages loop over this list.

One word leads through all of it: analysis `idle_time` is computed by `holotrace.analyses.idle_time.compute.idle_time`, drawn by
`holotrace.analyses.idle_time.figure.plot_idle_time`, printed by `holotrace idle-time` and explained in `reference/analyses/idle_time.md`.
"""

from __future__ import annotations

from holotrace.analyses.communication_overlap import entry as communication_overlap
from holotrace.analyses.critical_path import entry as critical_path
from holotrace.analyses.cupti_counters import entry as cupti_counters
from holotrace.analyses.distributed import entry as distributed
from holotrace.analyses.gpu_summary import entry as gpu_summary
from holotrace.analyses.idle_time import entry as idle_time
from holotrace.analyses.kernel_breakdown import entry as kernel_breakdown
from holotrace.analyses.kernel_sequences import entry as kernel_sequences
from holotrace.analyses.kernels import entry as kernels
from holotrace.analyses.launch_statistics import entry as launch_statistics
from holotrace.analyses.memory_bandwidth import entry as memory_bandwidth
from holotrace.analyses.memory_timeline import entry as memory_timeline
from holotrace.analyses.modules import entry as modules
from holotrace.analyses.operator_kernels import entry as operator_kernels
from holotrace.analyses.operator_memory import entry as operator_memory
from holotrace.analyses.operators import entry as operators
from holotrace.analyses.queue_length import entry as queue_length
from holotrace.analyses.step_time import entry as step_time
from holotrace.analyses.stragglers import entry as stragglers
from holotrace.analyses.temporal_breakdown import entry as temporal_breakdown
from holotrace.analyses.user_annotations import entry as user_annotations
from holotrace.question import Analysis

ANALYSES: tuple[Analysis, ...] = (
    temporal_breakdown.ENTRY,
    kernel_breakdown.ENTRY,
    communication_overlap.ENTRY,
    idle_time.ENTRY,
    critical_path.ENTRY,
    step_time.ENTRY,
    gpu_summary.ENTRY,
    kernels.ENTRY,
    launch_statistics.ENTRY,
    queue_length.ENTRY,
    memory_bandwidth.ENTRY,
    operators.ENTRY,
    modules.ENTRY,
    operator_kernels.ENTRY,
    kernel_sequences.ENTRY,
    user_annotations.ENTRY,
    stragglers.ENTRY,
    distributed.ENTRY,
    cupti_counters.ENTRY,
    memory_timeline.ENTRY,
    operator_memory.ENTRY,
)
"""All analyses, the most general first."""


def analysis(name: str) -> Analysis:
    """Return the analysis of that name; KeyError where there is none."""
    return {each.name: each for each in ANALYSES}[name]
