"""The analyses in the order they are read; the command line, the report and the pages loop over this list.

One word leads through all of it: analysis `idle_time` is computed by `holotrace.analyses.idle_time.compute.idle_time`, drawn by
`holotrace.analyses.idle_time.figure.plot_idle_time`, printed by `holotrace idle-time` and explained in `reference/analyses/idle_time.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from holotrace import tables
from holotrace.analyses.communication_overlap.compute import communication_overlap
from holotrace.analyses.critical_path.compute import critical_path
from holotrace.analyses.cupti_counters.compute import cupti_counters
from holotrace.analyses.distributed.compute import distributed
from holotrace.analyses.gpu_summary.compute import gpu_summary
from holotrace.analyses.idle_time.compute import idle_time
from holotrace.analyses.kernel_breakdown.compute import kernel_breakdown
from holotrace.analyses.kernel_sequences.compute import kernel_sequences
from holotrace.analyses.kernels.compute import kernels
from holotrace.analyses.launch_statistics.compute import launch_statistics
from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.analyses.memory_timeline.compute import memory_timeline
from holotrace.analyses.modules.compute import modules
from holotrace.analyses.operator_kernels.compute import operator_kernels
from holotrace.analyses.operator_memory.compute import operator_memory
from holotrace.analyses.operators.compute import operators
from holotrace.analyses.queue_length.compute import queue_length
from holotrace.analyses.step_time.compute import step_time
from holotrace.analyses.stragglers.compute import stragglers
from holotrace.analyses.temporal_breakdown.compute import temporal_breakdown
from holotrace.analyses.user_annotations.compute import user_annotations
from holotrace.tables import View

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Result(Protocol):
    """What all results have in common: a sentence for each thing noticed on the way. The rest are tables."""

    @property
    def findings(self) -> tuple[str, ...]:
        """What was noticed."""


@dataclass(frozen=True)
class Analysis:
    """One question about a trace.

    name         the word that leads to its function, figure, command and page
    title        what people call it
    question     what it answers
    compute      `compute(trace, *, executor) -> result`
    views        its tables for people, the most telling one first
    definitions  the terms it uses, each with its meaning
    section      the heading under which pages list it
    """

    name: str
    title: str
    question: str
    compute: Callable[..., Result]
    views: tuple[View, ...]
    definitions: tuple[tuple[str, str], ...]
    section: str = "More"

    @property
    def command(self) -> str:
        """Name of its command: `idle-time`."""
        return self.name.replace("_", "-")

    @property
    def main_views(self) -> tuple[View, ...]:
        """The tables of a summary: those not by stream, of which a job has many."""
        return tuple(view for view in self.views if not view.is_detail)

    @property
    def page(self) -> str:
        """Its page, from the root of the documentation."""
        return f"reference/analyses/{self.name}.md"

    @property
    def python(self) -> str:
        """The line that gives its result, for a trace that is open."""
        return f"holotrace.{self.name}(trace)"

    def plot(self, result: Result, **options: object) -> go.Figure:
        """Draw a result; plotly is loaded here, so that tables alone stay fast."""
        module = import_module(f"holotrace.analyses.{self.name}.figure")
        figure: go.Figure = getattr(module, f"plot_{self.name}")(result, **options)
        return figure


_TEMPORAL_BREAKDOWN = Analysis(
    name="temporal_breakdown",
    title="Temporal breakdown",
    question="Where does each GPU's time go?",
    compute=temporal_breakdown,
    section="Devices",
    views=(View("Each device, from its first to its last work", tables.temporal_per_device, "idle_fraction"),),
    definitions=(
        (
            "from first to last work",
            "from the start of the device's first kernel, copy or memset to the end of its last",
        ),
        ("computing", "at least one computation kernel runs, whatever else runs beside it"),
        ("other work only", "something runs, such as communication or copies, but no computation"),
        ("idle", "nothing runs on any stream of the device"),
    ),
)
_KERNEL_BREAKDOWN = Analysis(
    name="kernel_breakdown",
    title="Kernel breakdown",
    question="What do the GPUs run?",
    compute=kernel_breakdown,
    section="Work",
    views=(
        View("Kinds of work, alone and at once, over all ranks", tables.states_over_ranks, "duration_ns"),
        View("Kernels, over all ranks; mean, min and max are of one call", tables.kernels_over_ranks, "sum_ns"),
    ),
    definitions=(
        ("communication", "collectives and sends: by their collective's name, else by the rules for kernel names"),
        ("memory", "copies between or within devices, and memsets"),
        ("computation", "every other kernel"),
        ("a + b", "moments in which kinds a and b run at once; each moment counts in exactly one row"),
        ("share of a kernel", "its summed time in the summed time of all kernels; parallel kernels both count"),
    ),
)
_COMMUNICATION_OVERLAP = Analysis(
    name="communication_overlap",
    title="Communication overlap",
    question="How much communication is hidden behind computation?",
    compute=communication_overlap,
    section="Distributed",
    views=(View("Each rank, over its devices", tables.overlap_per_rank, "exposed_ns"),),
    definitions=(
        (
            "communication",
            "time in which at least one communication kernel runs; waiting for a late rank is part of it",
        ),
        ("hidden", "the part of it in which at least one computation kernel runs on the same device"),
        ("exposed", "the rest: the device communicates and does not compute"),
    ),
)
_IDLE_TIME = Analysis(
    name="idle_time",
    title="Idle time",
    question="What were the idle GPUs waiting for?",
    compute=idle_time,
    section="Devices",
    views=(
        View("Each device: no stream runs anything", tables.idle_per_device, "idle_ns"),
        View("Each stream: between two pieces of its own work", tables.idle_per_stream, "idle_ns", is_detail=True),
    ),
    definitions=(
        ("the host", "the part of a gap before the host called for the next work: the device had nothing to do"),
        (
            "the kernel's start",
            "the rest of a gap, where it is shorter than 30 µs: the usual time it takes to start a kernel",
        ),
        ("something else", "the rest of a gap, where it is longer: an event, another stream, or an unknown cause"),
    ),
)
_USER_ANNOTATIONS = Analysis(
    name="user_annotations",
    title="User annotations",
    question="How long do the annotated parts take?",
    compute=user_annotations,
    section="Work",
    views=(
        View("On the GPUs, over all ranks", tables.annotations_on_gpu, "inclusive_ns"),
        View("On the host, over all ranks", tables.annotations_on_cpu, "inclusive_ns"),
        View("Kernels by annotation, over all ranks", tables.kernels_of_annotations, "sum_ns", is_detail=True),
    ),
    definitions=(
        ("annotation", "a part of the program between the ends of torch.profiler.record_function, or a step"),
        ("on the GPUs", "on each stream, from the start of the first to the end of the last work launched inside"),
        ("outside inner ones", "the part of the time in which no shorter annotation runs on that stream or thread"),
        ("kernel time", "of the kernels, copies and memsets whose innermost annotation it is"),
    ),
)
_STRAGGLERS = Analysis(
    name="stragglers",
    title="Stragglers",
    question="Which rank do the others wait for?",
    compute=stragglers,
    section="Distributed",
    views=(
        View("Each rank, over its collectives", tables.lateness_per_rank, "caused_wait_ns"),
        View("Each step of each rank", tables.lateness_per_step, "mean_lateness_ns", is_detail=True),
    ),
    definitions=(
        ("waits", "its time in a collective less the shortest time of a rank in it: all leave it together"),
        ("mean lateness", "the longest time of a rank in a collective less its own: how much later it arrived"),
        ("came last", "collectives in which it spent the shortest time, alone"),
        ("others wait for it", "what all ranks waited in the collectives in which it came last"),
        ("late", "it waits at most half as long as the median rank, and most of the waiting around it is for it"),
        ("last", "likewise, but its own waiting explains at least half of its lateness: another rank may be the cause"),
    ),
)
_DISTRIBUTED = Analysis(
    name="distributed",
    title="Distributed",
    question="How do the ranks share the work, and who waits?",
    compute=distributed,
    section="Distributed",
    views=(
        View("The mean step of each rank, and its time in collectives", tables.mean_steps_of_ranks, "step_ns"),
        View("Collectives of each rank, by element type", tables.collectives_of_ranks, "latency_ns"),
        View("Each step of each rank", tables.steps_of_ranks, "step_ns", is_detail=True),
        View("Devices", tables.devices_of_ranks, "memory_bytes", is_detail=True),
    ),
    definitions=(
        ("step", "as the host announced it, extended to the device work that it launched"),
        ("computing, communicating, both, neither", "parts of the step in which the rank does that; they add up"),
        ("data transfer", "the shortest time of a rank in a collective: from the arrival of the last one to the end"),
        ("waiting", "the rest of the time in collectives: other ranks have not arrived"),
        ("not known", "collectives that no other rank recorded, and sends between two ranks"),
        ("latency", "time in which at least one of the calls runs; the mean is over the calls"),
    ),
)
_CUPTI_COUNTERS = Analysis(
    name="cupti_counters",
    title="CUPTI counters",
    question="What did the hardware counters measure?",
    compute=cupti_counters,
    section="Work",
    views=(
        View("Kernels by their outermost operator, over all ranks", tables.counters_by_operator, "flop"),
        View("Each measured kernel", tables.counted_kernels, "flop", is_detail=True),
    ),
    definitions=(
        ("FLOP", "executed floating-point instructions of all threads; a fused multiply-add counts twice"),
        ("operator", "the outermost operator around the call that launched the kernel"),
    ),
)

_QUEUE_LENGTH = Analysis(
    name="queue_length",
    title="Queue length",
    question="Does the host keep the GPUs supplied?",
    compute=queue_length,
    section="Host",
    views=(
        View("Each stream: what is launched and has not begun", tables.queues_per_stream, "max_length", is_detail=True),
    ),
    definitions=(
        ("waits", "the host has begun the call that launches it, and it has not begun on the device"),
        ("length", "how many pieces of work wait for one stream; each length counts as long as it lasts"),
        ("work waits", "the share of the time, from the first launch to the last start, in which something waits"),
        ("full", "1,024 launches or more wait, as many as CUDA lets; the next one blocks the host"),
    ),
)
_MEMORY_BANDWIDTH = Analysis(
    name="memory_bandwidth",
    title="Memory bandwidth",
    question="How fast does data move to, from and within the GPUs?",
    compute=memory_bandwidth,
    section="Devices",
    views=(View("Each device and kind of copy", tables.bandwidth_per_kind, "busy_ns"),),
    definitions=(
        ("HtoD, DtoH, DtoD, PtoP", "from host to device, back, within a device, and between devices"),
        ("copying for", "time in which at least one copy of the kind runs"),
        ("bandwidth", "summed over the copies that run at once, over the time in which any does"),
    ),
)
_LAUNCH_STATISTICS = Analysis(
    name="launch_statistics",
    title="Launch statistics",
    question="What does launching cost?",
    compute=launch_statistics,
    section="Host",
    views=(
        View("Each rank", tables.launches_per_rank, "call_sum_ns"),
        View("Functions that launch, over all ranks", tables.launches_per_call, "call_sum_ns", is_detail=True),
    ),
    definitions=(
        ("call", "a function of the runtime or the driver that launched device work; one may launch a whole graph"),
        ("delay", "from the end of the call to the start of the work; negative where the work starts before"),
        ("kernel shorter than call", "the work takes less time than its call, and the call at most 50 µs"),
        ("slow call", "a call of more than 50 µs"),
        ("late start", "a delay of more than 100 µs: the work was held up, usually by work launched before"),
    ),
)
_OPERATORS = Analysis(
    name="operators",
    title="Operators",
    question="Where do operators spend time?",
    compute=operators,
    section="Work",
    views=(
        View("Operators, over all ranks", tables.operators_by_name, "host_self_ns"),
        View("Operators by the shapes of their inputs", tables.operators_by_shape, "host_self_ns", is_detail=True),
        View(
            "Operators by call stack, the innermost frame first",
            tables.operators_by_stack,
            "host_self_ns",
            is_detail=True,
        ),
    ),
    definitions=(
        ("device, itself", "kernels, copies and memsets whose innermost operator it is; parallel ones both count"),
        ("device, with inner", "the same with those of all operators inside it; of nested calls both count"),
        ("device busy", "time in which at least one of its own runs, parallel or not"),
        ("host, itself", "outside operators inside it, and outside runtime and driver calls"),
        ("eligible", "tensor or matrix cores could do some of its work, by its name"),
        ("on tensor cores", "the share of its own device time in kernels that use tensor or matrix cores"),
    ),
)
_MODULES = Analysis(
    name="modules",
    title="Modules",
    question="Which modules take the time?",
    compute=modules,
    section="Work",
    views=(View("Modules by their place in the model, over all ranks", tables.times_of_modules, "host_total_ns"),),
    definitions=(
        ("module", "a dot for each module around it; what is called several times in one place is one row"),
        ("operators", "called in the module itself: not within another operator or module"),
        ("device, itself", "launched in the module, not in a module inside it; with inner: in those as well"),
        ("host, itself", "outside operators, annotations and modules inside it, and outside runtime calls: Python"),
        ("backward", "what autograd ran for the operators of the module's forward calls, by the profiler's links"),
    ),
)
_OPERATOR_KERNELS = Analysis(
    name="operator_kernels",
    title="Operators and their kernels",
    question="Which operators cause the device time?",
    compute=operator_kernels,
    section="Work",
    views=(
        View("Operators with their backward part, over all ranks", tables.kernels_of_operators, "kernel_ns"),
        View("Sequences of kernels of each operator", tables.sequences_of_operators, "count", is_detail=True),
    ),
    definitions=(
        ("operator of a kernel", "the innermost operator around its launch, on the same thread"),
        ("backward", "kernels launched by the backward operator that the profiler links with the operator"),
    ),
)
_KERNEL_SEQUENCES = Analysis(
    name="kernel_sequences",
    title="Frequent kernel sequences",
    question="Which sequences of kernels do operators launch again and again?",
    compute=kernel_sequences,
    section="Work",
    views=(View("Sequences of at least 3 kernels, over all ranks", tables.frequent_sequences, "count"),),
    definitions=(
        ("sequence", "the kernels, copies and memsets launched during one call of an outermost operator, as started"),
    ),
)
_MEMORY_TIMELINE = Analysis(
    name="memory_timeline",
    title="Memory",
    question="How much memory was allocated, and what held it at the peak?",
    compute=memory_timeline,
    section="Devices",
    views=(
        View("Each device", tables.memory_per_device, "peak_bytes"),
        View("Alive at the peak, by the operator that allocated it", tables.memory_at_peak, "bytes"),
    ),
    definitions=(
        ("allocated", "what PyTorch's allocator had handed out, after each of the profiler's memory events"),
        ("reserved", "what the allocator held of the device, handed out or not"),
        ("before the recording", "allocated when the recording began, and not freed until the peak"),
        ("operator", "the innermost operator around the allocation; top operator: the outermost"),
    ),
)
_OPERATOR_MEMORY = Analysis(
    name="operator_memory",
    title="Memory of operators",
    question="Which operators allocate memory, and what stays?",
    compute=operator_memory,
    section="Devices",
    views=(
        View("Operators, over all ranks and devices of a type", tables.memory_of_operators, "self_allocated_bytes"),
        View("Blocks of memory", tables.memory_blocks, "block_bytes", is_detail=True),
    ),
    definitions=(
        ("allocated, itself", "by allocations whose innermost operator it is; with inner: in operators inside it too"),
        ("not released", "the part of what it allocated itself that is not freed until the end of the recording"),
        ("net, itself", "allocated less freed while it ran, whoever had allocated what it freed"),
        ("block", "from an allocation to the next free of its address on its device"),
        ("calls", "all of them, whether or not they allocate"),
    ),
)
_STEP_TIME = Analysis(
    name="step_time",
    title="Step time",
    question="What did each step spend its time on?",
    compute=step_time,
    section="Host",
    views=(
        View("The mean step of each rank", tables.mean_step, "mean_ns"),
        View("Each step of each rank", tables.times_of_steps, "duration_ns", is_detail=True),
    ),
    definitions=(
        ("step", "from the begin of ProfilerStep#N to the end of the last device work that it launched"),
        ("kernel, copy, memset", "a device works on one; of several at once, the first of this list counts"),
        ("communication", "a collective runs, and none of the above: exposed communication"),
        ("runtime", "the host is in the CUDA or HIP runtime or driver, and none of the above"),
        ("data loader", "the host waits for the next batch, and none of the above"),
        ("operators", "an operator runs on the host, and none of the above"),
    ),
)
_GPU_SUMMARY = Analysis(
    name="gpu_summary",
    title="GPU summary",
    question="How well is each GPU used?",
    compute=gpu_summary,
    section="Devices",
    views=(View("Each device, over its steps", tables.use_per_device, "utilization_fraction"),),
    definitions=(
        ("utilization", "the share of the steps in which a kernel runs"),
        ("est. SM efficiency", "blocks per SM of the kernels that run, at most 1, averaged over the steps"),
        ("est. occupancy", "threads on an SM in the most it holds, averaged over the kernels by their duration"),
        ("known for", "share of the kernels' time whose launch shapes are known; the others count as these do"),
        (
            "on tensor cores",
            "share of the kernel time, of kernels whose names say that they use tensor or matrix cores",
        ),
    ),
)
_KERNELS = Analysis(
    name="kernels",
    title="Kernels",
    question="Which kernels take the time, and do they use tensor cores?",
    compute=kernels,
    section="Work",
    views=(
        View("Kernels by name, over all ranks", tables.kernels_by_name, "sum_ns"),
        View("Kernels by operator and launch shape", tables.kernels_by_launch, "sum_ns", is_detail=True),
    ),
    definitions=(
        ("tensor cores", "or matrix cores: whether the kernel's name says that it uses them"),
        ("eligible", "tensor cores could do the work of the operator"),
        ("blocks per SM", "blocks of the launch over the SMs of the device, each call weighed by its duration"),
        ("est. occupancy", "threads on an SM in the most it holds, each call weighed by its duration"),
        ("known for", "share of the calls' time whose launch shape is known; the means are of these"),
    ),
)

_CRITICAL_PATH = Analysis(
    name="critical_path",
    title="Critical path",
    question="What bounds the step?",
    compute=critical_path,
    section="Host",
    views=(
        View(
            "Each rank: shares of its critical path, which is as long as the window",
            tables.path_per_rank,
            "duration_ns",
        ),
        View("The same by event, over all ranks", tables.path_by_name, "duration_ns"),
        View("The longest parts of each path", tables.path_by_event, "duration_ns", is_detail=True),
    ),
    definitions=(
        ("critical path", "the chain of work and waiting that reaches over the whole window without a gap"),
        ("window", "a step, by default the last one that another one follows; without steps the whole recording"),
        ("CPU operators", "time inside operators and calls of the host, less what was called from there"),
        ("host gaps", "time of a thread outside of all that was recorded: Python, mostly"),
        ("loading", "time inside ranges that load data, by their names"),
        ("launches", "launch delay: from the end of a launch to the start of its work, where nothing else held it up"),
        ("unknown", "before the first recorded work of a stream, or work whose launch was not recorded"),
        (
            "between kernels",
            "kernel-kernel delay: from the end of work on a stream to the start of the next, launched before",
        ),
        ("compute, comm., copies", "work of the device by its kind; collectives of the host are communication too"),
        ("sync", "synchronisation wait: from the end of what was waited for until the waiting one goes on"),
    ),
)

ANALYSES: tuple[Analysis, ...] = (
    _TEMPORAL_BREAKDOWN,
    _KERNEL_BREAKDOWN,
    _COMMUNICATION_OVERLAP,
    _IDLE_TIME,
    _CRITICAL_PATH,
    _STEP_TIME,
    _GPU_SUMMARY,
    _KERNELS,
    _LAUNCH_STATISTICS,
    _QUEUE_LENGTH,
    _MEMORY_BANDWIDTH,
    _OPERATORS,
    _MODULES,
    _OPERATOR_KERNELS,
    _KERNEL_SEQUENCES,
    _USER_ANNOTATIONS,
    _STRAGGLERS,
    _DISTRIBUTED,
    _CUPTI_COUNTERS,
    _MEMORY_TIMELINE,
    _OPERATOR_MEMORY,
)
"""All analyses, the most general first."""


def analysis(name: str) -> Analysis:
    """Return the analysis of that name; KeyError where there is none."""
    return {each.name: each for each in ANALYSES}[name]
