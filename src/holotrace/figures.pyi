"""The figures of `holotrace`, and the modules that define them. Each module is imported when first used."""

import plotly.graph_objects as go

from .analyses.collectives.figure import plot_collectives as plot_collectives
from .analyses.communication_overlap.figure import plot_communication_overlap as plot_communication_overlap
from .analyses.compare_operators.figure import plot_compare_operators as plot_compare_operators
from .analyses.compare_traces.figure import plot_compare_traces as plot_compare_traces
from .analyses.compiled_regions.figure import plot_compiled_regions as plot_compiled_regions
from .analyses.critical_path.figure import plot_critical_path as plot_critical_path
from .analyses.cupti_counters.figure import plot_cupti_counters as plot_cupti_counters
from .analyses.diagnosis.figure import plot_diagnosis as plot_diagnosis
from .analyses.distributed.figure import plot_distributed as plot_distributed
from .analyses.gpu_summary.figure import plot_gpu_summary as plot_gpu_summary
from .analyses.idle_time.figure import plot_idle_time as plot_idle_time
from .analyses.inference.figure import plot_inference as plot_inference
from .analyses.kernel_breakdown.figure import plot_kernel_breakdown as plot_kernel_breakdown
from .analyses.kernel_sequences.figure import plot_kernel_sequences as plot_kernel_sequences
from .analyses.kernels.figure import plot_kernels as plot_kernels
from .analyses.launch_statistics.figure import plot_launch_statistics as plot_launch_statistics
from .analyses.memory_bandwidth.figure import plot_memory_bandwidth as plot_memory_bandwidth
from .analyses.memory_timeline.figure import plot_memory_timeline as plot_memory_timeline
from .analyses.modules.figure import plot_modules as plot_modules
from .analyses.operator_kernels.figure import plot_operator_kernels as plot_operator_kernels
from .analyses.operator_memory.figure import plot_operator_memory as plot_operator_memory
from .analyses.operators.figure import plot_operators as plot_operators
from .analyses.parallelism.figure import plot_parallelism as plot_parallelism
from .analyses.queue_length.figure import plot_queue_length as plot_queue_length
from .analyses.roofline.figure import plot_roofline as plot_roofline
from .analyses.source_lines.figure import plot_source_lines as plot_source_lines
from .analyses.step_time.figure import plot_step_time as plot_step_time
from .analyses.straggler_cost.figure import plot_straggler_cost as plot_straggler_cost
from .analyses.stragglers.figure import plot_stragglers as plot_stragglers
from .analyses.temporal_breakdown.figure import plot_temporal_breakdown as plot_temporal_breakdown
from .analyses.trust.figure import plot_trust as plot_trust
from .analyses.user_annotations.figure import plot_user_annotations as plot_user_annotations
from .analyses.wait_causes.figure import plot_wait_causes as plot_wait_causes

def figure_of(name: str, result: object, **options: object) -> go.Figure: ...
def further_figures_of(name: str, result: object, **options: object) -> dict[str, go.Figure]: ...
