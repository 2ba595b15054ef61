"""The public names of `holotrace`, and the modules that define them; each is imported when first used."""

from . import figures as figures
from .analyses.collectives.compute import Collectives as Collectives, collectives as collectives
from .analyses.communication_overlap.compute import (
    CommunicationOverlap as CommunicationOverlap,
    communication_overlap as communication_overlap,
)
from .analyses.compare_operators.compute import (
    OperatorComparison as OperatorComparison,
    compare_operators as compare_operators,
)
from .analyses.compare_traces.compute import TraceComparison as TraceComparison, compare_traces as compare_traces
from .analyses.compiled_regions.compute import CompiledRegions as CompiledRegions, compiled_regions as compiled_regions
from .analyses.critical_path.compute import CriticalPath as CriticalPath, critical_path as critical_path
from .analyses.cupti_counters.compute import CuptiCounters as CuptiCounters, cupti_counters as cupti_counters
from .analyses.diagnosis.compute import Diagnosis as Diagnosis, diagnosis as diagnosis
from .analyses.distributed.compute import Distributed as Distributed, distributed as distributed
from .analyses.gpu_summary.compute import GpuSummary as GpuSummary, gpu_summary as gpu_summary
from .analyses.idle_time.compute import IdleTime as IdleTime, idle_time as idle_time
from .analyses.inference.compute import Inference as Inference, inference as inference
from .analyses.kernel_breakdown.compute import KernelBreakdown as KernelBreakdown, kernel_breakdown as kernel_breakdown
from .analyses.kernel_sequences.compute import KernelSequences as KernelSequences, kernel_sequences as kernel_sequences
from .analyses.kernels.compute import Kernels as Kernels, kernels as kernels
from .analyses.launch_statistics.compute import (
    LaunchStatistics as LaunchStatistics,
    launch_statistics as launch_statistics,
)
from .analyses.memory_bandwidth.compute import MemoryBandwidth as MemoryBandwidth, memory_bandwidth as memory_bandwidth
from .analyses.memory_timeline.compute import MemoryTimeline as MemoryTimeline, memory_timeline as memory_timeline
from .analyses.modules.compute import Modules as Modules, modules as modules
from .analyses.operator_kernels.compute import OperatorKernels as OperatorKernels, operator_kernels as operator_kernels
from .analyses.operator_memory.compute import OperatorMemory as OperatorMemory, operator_memory as operator_memory
from .analyses.operators.compute import Operators as Operators, operators as operators
from .analyses.parallelism.compute import Parallelism as Parallelism, parallelism as parallelism
from .analyses.queue_length.compute import QueueLength as QueueLength, queue_length as queue_length
from .analyses.roofline.compute import Roofline as Roofline, roofline as roofline
from .analyses.source_lines.compute import SourceLines as SourceLines, source_lines as source_lines
from .analyses.step_time.compute import StepTime as StepTime, step_time as step_time
from .analyses.straggler_cost.compute import StragglerCost as StragglerCost, straggler_cost as straggler_cost
from .analyses.stragglers.compute import Stragglers as Stragglers, stragglers as stragglers
from .analyses.temporal_breakdown.compute import (
    TemporalBreakdown as TemporalBreakdown,
    temporal_breakdown as temporal_breakdown,
)
from .analyses.trust.compute import Trust as Trust, trust as trust
from .analyses.user_annotations.compute import UserAnnotations as UserAnnotations, user_annotations as user_annotations
from .analyses.wait_causes.compute import WaitCauses as WaitCauses, wait_causes as wait_causes
from .analyses.critical_path.across_ranks import JobCriticalPath as JobCriticalPath
from .enrich.critical_path.path_graph import PathGraph as PathGraph, critical_path_graph as critical_path_graph
from .enrich.job_operations.reading import read_operations as read_operations
from .enrich.critical_path.what_if import (
    NoLaunchOverhead as NoLaunchOverhead,
    PerfectOverlap as PerfectOverlap,
    Remove as Remove,
    Replace as Replace,
    Scale as Scale,
    WhatIf as WhatIf,
    what_if as what_if,
)
from .enrich.job_graph.what_if.job_what_if import (
    FasterLink as FasterLink,
    what_if_across_ranks as what_if_across_ranks,
)
from .enrich.job_graph.what_if.peers_median import PeersMedian as PeersMedian
from .errors import (
    DuplicateRankError as DuplicateRankError,
    HolotraceError as HolotraceError,
    InconsistentTimesError as InconsistentTimesError,
    InvalidOperationsError as InvalidOperationsError,
    InvalidOptionError as InvalidOptionError,
    LimitReachedError as LimitReachedError,
    MissingDataError as MissingDataError,
    NotASavedPathError as NotASavedPathError,
    NotATraceError as NotATraceError,
    TraceNotFoundError as TraceNotFoundError,
    UnknownRankError as UnknownRankError,
    UnreachableError as UnreachableError,
    UnreadableTraceError as UnreadableTraceError,
    WorkerLostError as WorkerLostError,
)
from .execution.executor import IN_PROCESS as IN_PROCESS
from .execution.processes import processes as processes
from .html_report.report import report as report
from .ingest.open_trace import open_trace as open_trace
from .ingest.runs import Run as Run, Runs as Runs, find_runs as find_runs
from .ingest.write_store import Ingested as Ingested, write_store as write_store
from .schema import EventKind as EventKind, KernelKind as KernelKind
from .sql_queries.query import sql as sql
from .store.trace import RankTrace as RankTrace, Trace as Trace
from .version import __version__ as __version__
from .whole_job.check import Check as Check, check as check
from .whole_job.summary import Summary as Summary, summary as summary
