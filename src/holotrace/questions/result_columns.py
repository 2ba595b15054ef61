"""Every column of a result: its type, unit, meaning and heading.

All analyses share this list, so a name means the same in Python, in tables on a terminal or a page, in CSV and in JSON.
The columns of SQL views have the same names. `tests/questions/test_result_columns.py` compares the analyses with this
list, and docs/reference/columns.md shows it.

Names follow rules. A name ends in its unit: `_ns`, `_fraction` (0 to 1), `_bytes`, `_bytes_per_s`, `_count`.
`duration_ns` is the length of one event, `total_ns` the sum over several events, and `self_ns` the time of an event
outside the events nested in it. A prefix names a statistic: `mean_`, `median_`, `min_`, `max_`, `std_`, `p25_`, `p75_`.
In comparisons, the prefix `control_` or `test_` says which of the two traces a column describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["int64", "int32", "uint32", "float64", "bool", "text", "list[text]"]
Unit = Literal["", "ns", "ns since the Unix epoch", "0..1", "bytes", "bytes/s", "FLOP", "FLOP/s"]

_UNITS: tuple[tuple[str, Unit], ...] = (
    ("_ns", "ns"),
    ("_ns_per_step", "ns"),
    ("fraction", "0..1"),
    ("bytes_per_s", "bytes/s"),
    ("bytes", "bytes"),
)
"""The endings of column names, and the units that they indicate in columns that a user's query defines."""


_UNIT_WORDS: dict[str, list[str]] = {"ns": [], "bytes": ["size"]}
"""Words that replace the last word of a column's name in its heading."""

_ACRONYMS = {"cpu": "CPU", "gpu": "GPU", "json": "JSON"}


@dataclass(frozen=True)
class ResultColumn:
    """One column of a result; printed tables show `heading` or, if it is empty, the words of the name."""

    name: str
    type: ColumnType
    meaning: str
    unit: Unit = ""
    heading: str = ""


def unit_of(column: str) -> Unit:
    """Return the declared unit of a column or, for an undeclared column, the unit that the end of its name indicates.

    >>> unit_of("idle_fraction"), unit_of("my_own_bytes")
    ('0..1', 'bytes')
    """
    if column in COLUMNS:
        return COLUMNS[column].unit
    return next((unit for ending, unit in _UNITS if column.endswith(ending)), "")


def heading_of(column: str) -> str:
    """Return the heading of a column in printed tables, without a unit, because each value is printed with its unit.

    >>> heading_of("overlap_fraction"), heading_of("my_gap_ns"), heading_of("my_own_bytes")
    ('hidden share', 'my gap', 'my own size')
    """
    if column in COLUMNS and COLUMNS[column].heading:
        return COLUMNS[column].heading
    words = [_ACRONYMS.get(word, word) for word in column.split("_")]
    return " ".join([*words[:-1], *_UNIT_WORDS.get(words[-1], words[-1:])] if len(words) > 1 else words)


def _text(name: str, meaning: str, heading: str = "") -> ResultColumn:
    return ResultColumn(name, "text", meaning, heading=heading)


def _flag(name: str, meaning: str, heading: str = "") -> ResultColumn:
    return ResultColumn(name, "bool", meaning, heading=heading)


def _count(name: str, meaning: str, heading: str = "") -> ResultColumn:
    return ResultColumn(name, "int64", meaning, heading=heading)


def _length(name: str, meaning: str, heading: str = "") -> ResultColumn:
    return ResultColumn(name, "int64", meaning, "ns", heading)


def _mean(name: str, meaning: str, heading: str = "") -> ResultColumn:
    return ResultColumn(name, "float64", meaning, "ns", heading)


def _time(name: str, meaning: str, heading: str = "") -> ResultColumn:
    return ResultColumn(name, "int64", meaning, "ns since the Unix epoch", heading)


def _fraction(name: str, meaning: str, heading: str = "") -> ResultColumn:
    return ResultColumn(name, "float64", meaning, "0..1", heading)


def _size(name: str, meaning: str, heading: str = "") -> ResultColumn:
    return ResultColumn(name, "int64", meaning, "bytes", heading)


def _bandwidth(name: str, meaning: str, heading: str = "", column_type: ColumnType = "float64") -> ResultColumn:
    return ResultColumn(name, column_type, meaning, "bytes/s", heading)


def _number(name: str, meaning: str, heading: str = "") -> ResultColumn:
    return ResultColumn(name, "float64", meaning, heading=heading)


WHERE = (
    ResultColumn("rank", "int32", "rank of the process in the job"),
    ResultColumn("device", "int32", "device ordinal on the rank's host; -1 for the CPU or if not recorded"),
    _text("device_type", "PyTorch's name of the type: cpu, cuda (also for HIP), xpu, …"),
    ResultColumn("stream", "int64", "stream or queue of the device; -1 if not recorded"),
    ResultColumn("step", "int64", "N of ProfilerStep#N; null outside steps"),
    _text("host", "name of the machine; null if neither the file nor the file name contains it"),
    ResultColumn("process_id", "int64", "process id (pid) of the rank on its host", heading="process"),
    _text("device_name", "name of the device; null if not recorded", "model"),
    _text("compute_capability", "compute capability such as 9.0; null if not recorded", "capability"),
    _text("side", "control or test in comparisons; cpu or gpu for annotations"),
    _text("window", "description of the analysed part of the recording"),
)
"""The rank, device, stream or step that a row describes."""

EVENTS = (
    ResultColumn("event_index", "uint32", "position of the event in its file, from 0", heading="place in the file"),
    ResultColumn("launch_index", "uint32", "event_index of the call that launched the work; null if unknown"),
    ResultColumn("work_index", "uint32", "event_index of the device work"),
    ResultColumn(
        "correlation", "int64", "number that a launch and the device work it started have in common; -1 if not recorded"
    ),
    _text("name", "name of the event: a kernel, copy, annotation or operator", "kernel"),
    _text("event", "name of the event, in tables that mix several kinds of events"),
    _text(
        "kind",
        "kind of the event: cpu_op, kernel, …; in a tree: phase, range, module, operator or kernel; of an inference step: prefill, decode, mixed or denoising",
    ),
    _text("kernel_kind", "computation, communication, memory or other", "kind"),
    _text("kernel", "name of the device work"),
    _text("copy", "kind of copy: Memcpy HtoD, Memset, …"),
    _text("call", "runtime or driver function that launched the work"),
    _text("operator", "innermost operator around the launch or allocation; null if unknown"),
    _text(
        "top_operator",
        "outermost operator around the launch or allocation; null if there is none",
        "outermost operator",
    ),
    ResultColumn("operator_stack", "list[text]", "operators around the launch, outermost first"),
    _text("caller", "operator that calls this operator; null if there is none"),
    _text("call_stack", "Python frames joined by `;`, innermost first"),
    _text("input_shape", "JSON: shape of each input; null if not recorded", "input shapes"),
    _text("module", "class and number of the nn.Module, such as Linear_3"),
    ResultColumn("module_id", "int64", "number of the module among the modules of its class; null if not recorded"),
    _text("path", "names from the outermost row to this one, joined by ` > `", "phase · module · operator · kernel"),
    _text("annotation", "innermost user annotation; null for work outside annotations"),
    _text(
        "collective",
        "PyTorch's name of the collective: all_reduce, all_gather, reduce_scatter, all_to_all, send, …; or unknown",
    ),
    _text("dtype", "element type: float32, bfloat16, …; null if not recorded"),
    _text("counter", "name of the counter"),
    _text("state", "kinds of work that run at the same time, joined by ` + `"),
    _text("category", "what the time was spent on; each analysis lists its categories"),
    _text("step_kind", "warm-up: long steps at the beginning; outlier: later long steps; steady: all others", "kind"),
    _text("path_class", "class of a critical-path segment: cpu_operator, computation, launch_delay, …", "class"),
    _text("kernels", "names of the kernels in launch order, joined by ` -> `"),
    _text("pattern", "the operator and its kernels in start order, joined by `|`"),
    _text("first_kernels", "names of the first kernels of a sequence, shortened"),
    _text("grid", "number of blocks of the launch in each dimension, `[x, y, z]`; null if not recorded"),
    _text("block", "number of threads of a block in each dimension, `[x, y, z]`; null if not recorded"),
    _text("change", "change in the number of calls: added, deleted, increased, decreased or unchanged"),
    _text("measure", "the measured or compared quantity", "share of"),
    ResultColumn("depth", "int32", "number of modules or tree rows that enclose this one"),
    ResultColumn("node", "int64", "row number in the tree"),
    ResultColumn("parent", "int64", "row number of the enclosing row; -1 for phases, which no row encloses"),
    ResultColumn("registers_per_thread", "int64", "registers per thread", heading="registers"),
    _size("shared_memory_bytes", "shared memory per block", "shared memory"),
)
"""The event, operator, kernel or category that a row describes."""

TIMES = (
    _time("start_ns", "start of the event or window"),
    _time("end_ns", "end of the event or window"),
    _time("time_ns", "time of the event or change"),
    _time("peak_ns", "time at which the peak was first reached"),
    _time("at_ns", "time to look at on the timeline: the start of the longest event, or the peak"),
    _time("launch_start_ns", "start of the launching call"),
    _time("kernel_start_ns", "start of the device work"),
    _time("allocated_ns", "time of the allocation; null if unknown"),
    _time("released_ns", "time of the release; null if the block was not released"),
    _length("allocated_after_ns", "time from the first event of the job to the allocation", "allocated at"),
    _length("released_after_ns", "time from the first event of the job to the release", "released at"),
    _length("duration_ns", "end_ns - start_ns", "time"),
    _length("window_ns", "length of the analysed part of the recording", "from first to last work"),
    _length("lifetime_ns", "time from allocation to release; null if one of them is unknown", "alive for"),
    _length("from_ns", "lower bound of the histogram bin, inclusive"),
    _length("to_ns", "upper bound of the histogram bin, exclusive"),
    _length("step_ns", "duration of the step, including the device work that it launched", "step"),
    _length("typical_ns", "median duration of the rank's steady steps", "typical"),
    _length("excess_ns", "duration_ns - typical_ns", "longer by"),
    _length(
        "category_excess_ns",
        "time of the category in the step minus its median over the steady steps",
        "of this category",
    ),
    _length(
        "event_excess_ns", "self time of the event in the step minus its median over the steady steps", "of this event"
    ),
)
"""The times and the duration of one event or window."""

TOTALS = (
    _length("total_ns", "sum of the durations; time in which events overlap counts once per event", "total"),
    _length("self_ns", "part of total_ns not covered by shorter events on the same thread or stream", "self"),
    _mean("mean_ns", "mean duration", "mean"),
    _mean("std_ns", "sample standard deviation of the durations; 0 for a single event", "std. dev."),
    _length("min_ns", "shortest duration", "min"),
    _mean("p25_ns", "lower quartile of the durations", "25 %"),
    _mean("median_ns", "median duration", "median"),
    _mean("p75_ns", "upper quartile of the durations", "75 %"),
    _length("max_ns", "longest duration", "max"),
    _fraction("fraction", "share of the table's total", "share"),
    _length("kernel_ns", "summed durations of the kernels, copies and memsets", "kernel time"),
    _length("forward_kernel_ns", "kernel_ns of the forward operator itself", "forward"),
    _length("backward_kernel_ns", "kernel_ns of the backward operator", "backward"),
    _length("operator_ns", "summed durations of the operator's calls on the host", "time on the host"),
    _length("host_total_ns", "summed durations on the host; nested calls count in full", "host, with inner"),
    _length(
        "host_self_ns",
        "self time on the host, outside inner operators or lines; for operators, also outside runtime and driver calls",
        "host, itself",
    ),
    _length(
        "device_total_ns", "summed durations of the device work launched within the row's calls", "device, with inner"
    ),
    _length(
        "device_self_ns",
        "part of device_total_ns spent in work that was launched directly in this row, not in inner rows",
        "device, itself",
    ),
    _length("device_total_busy_ns", "time in which any of the work in device_total_ns runs"),
    _length("device_self_busy_ns", "time in which any of the work in device_self_ns runs", "device busy"),
    _length("backward_host_total_ns", "host_total_ns of the backward pass", "host, backward"),
    _length("backward_host_self_ns", "host_self_ns of the backward pass", "host, backward itself"),
    _length("backward_device_total_ns", "device_total_ns of the backward pass", "device, backward"),
    _length("backward_device_self_ns", "device_self_ns of the backward pass", "device, backward itself"),
)
"""Sums and statistics of durations."""

COUNTS = (
    _count("rank_count", "number of ranks", "ranks"),
    _count("step_count", "number of steps; in comparisons, summed over the ranks", "steps"),
    _count("event_count", "number of events", "events"),
    _count("call_count", "number of calls", "calls"),
    _count("operator_call_count", "number of operators that the module calls directly", "operators"),
    _count("kernel_count", "number of kernels, copies and memsets", "kernels"),
    _count("kernel_count_per_call", "number of kernels in one call", "kernels"),
    _count("forward_kernel_count", "kernels of the forward operator itself"),
    _count("backward_kernel_count", "kernels of the backward operator"),
    _count("work_count", "number of kernels, copies, memsets and other device work", "work"),
    _count("copy_count", "number of copies", "copies"),
    _count("active_count", "number of copies in flight from this time until the time of the next row"),
    _count("gap_count", "number of gaps", "gaps"),
    _count("change_count", "how often the value changes"),
    _count("segment_count", "number of segments of the critical path", "segments"),
    _count("collective_count", "number of collectives", "collectives"),
    _count("matched_count", "number of calls that another rank also recorded"),
    _count("launch_count", "number of launches in the histogram bin"),
    _count("allocation_count", "number of allocations"),
    _count("block_count", "number of memory blocks; null for memory allocated before the recording", "blocks"),
)
"""Counts."""

BUSY_AND_IDLE = (
    _length("computation_ns", "time in which at least one computation kernel runs", "computing for"),
    _length("non_computation_ns", "time in which device work runs, but no computation kernel runs"),
    _length("idle_ns", "time in which the device or stream runs no work", "idle for"),
    _fraction("computation_fraction", "computation_ns / window_ns", "computing"),
    _fraction("non_computation_fraction", "non_computation_ns / window_ns", "other work only"),
    _fraction("idle_fraction", "idle_ns / window_ns", "idle"),
    _fraction(
        "unknown_fraction",
        "share of the time in which the device may be running a graph replay whose device work was not recorded",
        "unknown",
    ),
    _fraction(
        "host_wait_fraction",
        "share of the idle time that passed before the host launched the next work",
        "for the host",
    ),
    _fraction(
        "kernel_wait_fraction",
        "share of the idle time in which launched work took the usual time to start",
        "for the kernel's start",
    ),
    _fraction(
        "other_fraction",
        "share of the idle time that is due neither to the host nor to usual launch delays",
        "for something else",
    ),
    _length("communication_ns", "time in which at least one communication kernel runs", "communication"),
    _length(
        "overlap_ns", "hidden communication: time in which communication and computation run at the same time", "hidden"
    ),
    _length(
        "exposed_ns", "exposed communication: time in which communication runs, but no computation runs", "exposed"
    ),
    _length("computation_only_ns", "time in which computation runs without communication", "only computing"),
    _length("neither_ns", "time in which neither computation nor communication runs", "neither"),
    _fraction("overlap_fraction", "overlap_ns / communication_ns; null without communication", "hidden share"),
    _length("kernel_part_ns", "part of the step in which a kernel computes", "kernels"),
    _length("memcpy_part_ns", "part of the step in which the device copies, but no kernel computes", "copies"),
    _length(
        "memset_part_ns",
        "part of the step in which a memset runs, but neither a computation kernel nor a copy runs",
        "memsets",
    ),
    _length(
        "communication_part_ns",
        "part of the step in which a collective runs, but no kernel computes and no copy or memset runs",
        "communication",
    ),
    _length(
        "runtime_part_ns",
        "part of the step in which the host is in the runtime or driver, and no kernel, copy or memset runs",
        "runtime",
    ),
    _length(
        "dataloader_part_ns",
        "part of the step in which the host waits for data, excluding all parts above",
        "data loader",
    ),
    _length(
        "cpu_part_ns", "part of the step in which an operator runs on the host, excluding all parts above", "operators"
    ),
    _length("other_part_ns", "rest of the step", "other"),
)
"""How the time of a device or step is divided."""

DEVICE_USE = (
    _fraction("utilization_fraction", "share of the analysed time during which a kernel runs", "utilization"),
    _fraction(
        "sm_efficiency_fraction",
        "estimated share of the SMs that run at least one block, averaged over time",
        "est. SM efficiency",
    ),
    _fraction(
        "sm_efficiency_known_fraction", "share of the time for which SM efficiency is known", "SM efficiency known for"
    ),
    _fraction(
        "occupancy_fraction",
        "mean of the estimated achieved occupancy of the kernels, weighted by their durations",
        "est. occupancy",
    ),
    _fraction(
        "occupancy_known_fraction", "share of the kernel time for which occupancy is known", "occupancy known for"
    ),
    _fraction(
        "mean_occupancy_fraction",
        "mean of the estimated achieved occupancy of the calls, weighted by their durations",
        "est. occupancy",
    ),
    _number(
        "mean_blocks_per_sm", "mean of the blocks per SM of the calls, weighted by their durations", "blocks per SM"
    ),
    _fraction(
        "blocks_per_sm_known_fraction",
        "share of the kernel time in kernels whose blocks per SM are known",
        "blocks known for",
    ),
    _fraction(
        "tensor_core_fraction",
        "lower bound on the share of the kernel time spent on tensor or matrix cores",
        "on tensor cores",
    ),
    _fraction(
        "tensor_core_least_fraction",
        "printed tables show tensor_core_fraction under this name if it is unknown which cores some kernels use",
        "on tensor cores, at least",
    ),
    _fraction(
        "tensor_core_unknown_fraction",
        "share of the kernel time in kernels whose names do not show which cores they use",
        "tensor cores unknown",
    ),
    _flag(
        "uses_tensor_cores",
        "whether the kernel uses tensor or matrix cores; null if its name does not show this",
        "tensor cores",
    ),
    _flag("is_tensor_core_eligible", "whether tensor or matrix cores could do some of the operator's work", "eligible"),
    _flag("is_operator_eligible", "is_tensor_core_eligible of the kernel's operator", "eligible"),
    _flag("is_estimated", "whether SM efficiency and occupancy are computed from launch shapes"),
    _flag("has_call_stack", "whether at least one call has a known call stack"),
    _length("tensor_core_total_ns", "part of device_total_ns spent on tensor or matrix cores"),
    _length("tensor_core_self_ns", "part of device_self_ns spent on tensor or matrix cores"),
    _length(
        "tensor_core_unknown_total_ns",
        "part of device_total_ns in kernels whose names do not show which cores they use",
    ),
    _length(
        "tensor_core_unknown_self_ns", "part of device_self_ns in kernels whose names do not show which cores they use"
    ),
    _fraction("tensor_core_total_fraction", "tensor_core_total_ns / device_total_ns, a lower bound"),
    _fraction("tensor_core_self_fraction", "tensor_core_self_ns / device_self_ns, a lower bound", "on tensor cores"),
    _fraction(
        "tensor_core_self_least_fraction",
        "printed tables show tensor_core_self_fraction under this name if it is unknown which cores some kernels use",
        "on tensor cores, at least",
    ),
    _fraction("tensor_core_unknown_total_fraction", "tensor_core_unknown_total_ns / device_total_ns"),
    _fraction(
        "tensor_core_unknown_self_fraction", "tensor_core_unknown_self_ns / device_self_ns", "tensor cores unknown"
    ),
    ResultColumn(
        "flop",
        "float64",
        "floating-point operations; null if the hardware counters for them were not recorded",
        "FLOP",
        "FLOP",
    ),
    _number("value", "value of the counter"),
)
"""The use of devices."""

LAUNCHES = (
    _length("call_ns", "duration of the launching call"),
    _length("total_call_ns", "summed durations of the launching calls", "calls take"),
    _mean("mean_call_ns", "mean duration of a launching call", "mean call"),
    _length("launch_delay_ns", "launch delay: time from the end of the call to the start of the work; may be negative"),
    _mean("median_launch_delay_ns", "median launch delay", "median delay"),
    _length("max_launch_delay_ns", "longest launch delay", "longest delay"),
    _mean(
        "mean_operator_to_launch_ns", "mean time from the operator's start to its first launch", "operator to launch"
    ),
    _mean(
        "mean_launch_to_kernel_ns",
        "mean time from the start of the first launch to the start of its kernel",
        "launch to kernel",
    ),
    _count(
        "short_kernel_count", "kernels that take less time than the call that launched them", "kernel shorter than call"
    ),
    _count("slow_call_count", "calls that take longer than the cutoff", "slow calls"),
    _count("late_start_count", "work whose launch delay is longer than the cutoff", "late starts"),
    _count("early_start_count", "work that begins before its launch, according to the clocks"),
    _count("unknown_launch_count", "work without a recorded launch", "launch unknown"),
    ResultColumn(
        "queue_length",
        "int64",
        "number of kernels, copies and memsets that have been launched but have not begun, from this time until the "
        "time of the next row",
    ),
    _number("mean_length", "mean queue length", "mean length"),
    _number("std_length", "standard deviation of the queue length"),
    _count("min_length", "shortest queue"),
    _number("p25_length", "lower quartile of the queue length"),
    _number("median_length", "median queue length", "median"),
    _number("p75_length", "upper quartile of the queue length"),
    _count("max_length", "longest queue", "longest"),
    _fraction("waiting_fraction", "share of the window in which work waits in the queue", "work waits"),
    _length("full_ns", "time in which the queue is full", "full for"),
    _fraction("full_fraction", "full_ns / window_ns"),
)
"""Launches and queues."""

MEMORY = (
    _size("bytes", "bytes moved, sent or allocated; null if unknown"),
    ResultColumn("mean_bytes", "float64", "bytes per call", "bytes", "mean size"),
    _length(
        "busy_ns",
        "time in which any of the row's kernels, copies or other work runs",
        "busy for",
    ),
    _bandwidth("bytes_per_s", "bandwidth from this time until the time of the next row", column_type="int64"),
    _bandwidth("mean_bytes_per_s", "mean bandwidth", "mean bandwidth"),
    _bandwidth("std_bytes_per_s", "standard deviation of the bandwidth"),
    _bandwidth("min_bytes_per_s", "lowest bandwidth", column_type="int64"),
    _bandwidth("p25_bytes_per_s", "lower quartile of the bandwidth"),
    _bandwidth("median_bytes_per_s", "median bandwidth", "median bandwidth"),
    _bandwidth("p75_bytes_per_s", "upper quartile of the bandwidth"),
    _bandwidth("max_bytes_per_s", "highest bandwidth", "highest bandwidth", "int64"),
    _size("memory_bytes", "memory of the device; null if not recorded", "memory"),
    _size("capacity_bytes", "memory of the device, for comparison with the peak", "of the device"),
    _size("first_bytes", "bytes allocated before the first event", "at the beginning"),
    _size("peak_bytes", "maximum of the allocated bytes", "peak"),
    _size("last_bytes", "bytes allocated after the last event", "at the end"),
    _size("peak_reserved_bytes", "maximum of the bytes reserved by PyTorch; null if not recorded", "reserved at most"),
    _size("change_bytes", "bytes allocated; negative for a release"),
    _size("allocated_bytes", "bytes in use after the event"),
    _size("reserved_bytes", "bytes reserved after the event; null if not recorded"),
    _size("block_bytes", "size of the block", "size"),
    _count("total_allocation_count", "allocations, including those of inner operators"),
    _count("self_allocation_count", "allocations outside inner operators", "allocations"),
    _size("total_allocated_bytes", "bytes allocated, including those of inner operators", "allocated, with inner"),
    _size("self_allocated_bytes", "bytes allocated outside inner operators", "allocated, itself"),
    _size(
        "total_increase_bytes",
        "bytes allocated minus bytes freed, including allocations and releases in inner operators",
        "net, with inner",
    ),
    _size(
        "self_increase_bytes",
        "bytes allocated minus bytes freed, excluding allocations and releases in inner operators",
        "net, itself",
    ),
    _size(
        "self_unreleased_bytes",
        "part of self_allocated_bytes that was not released before the end; null if unknown",
        "not released",
    ),
)
"""Sizes and bandwidths."""

JOB = (
    _length("collective_ns", "time in which at least one collective, send or receive runs", "time in collectives"),
    _length(
        "transfer_ns",
        "part of collective_ns after the last rank has arrived; only then does data move",
        "data transfer",
    ),
    _length("synchronising_ns", "part of collective_ns in which the rank waits for others", "waiting"),
    _length("unmatched_ns", "part of collective_ns in calls without a counterpart on another rank", "not known"),
    _mean("mean_step_ns", "mean of step_ns over the steps", "mean step"),
    _mean("mean_computation_only_ns", "mean of computation_only_ns over the steps", "only computing"),
    _mean("mean_overlap_ns", "mean of overlap_ns over the steps", "hidden"),
    _mean("mean_exposed_ns", "mean of exposed_ns over the steps", "exposed"),
    _mean("mean_neither_ns", "mean of neither_ns over the steps", "neither"),
    _number("mean_collective_count", "mean of collective_count over the steps"),
    _mean("mean_collective_ns", "mean of collective_ns over the steps or calls", "mean time"),
    _mean("mean_transfer_ns", "mean of transfer_ns over the steps or matched calls", "mean transfer"),
    _mean("mean_synchronising_ns", "mean of synchronising_ns over the steps", "waiting"),
    _mean("mean_unmatched_ns", "mean of unmatched_ns over the steps", "not known"),
    _length("wait_ns", "time spent waiting for other ranks in collectives", "waits"),
    _mean("mean_wait_ns", "wait_ns per collective"),
    _mean("mean_skew_ns", "mean skew: how long after the first rank this rank arrives at collectives", "mean skew"),
    _count("last_count", "collectives in which this rank alone came last", "came last"),
    _fraction("last_fraction", "last_count / collective_count"),
    _length(
        "caused_wait_ns",
        "time that other ranks waited in collectives in which this rank alone came last",
        "others wait for it",
    ),
    _fraction("caused_fraction", "share of all waiting that is due to this rank", "of all waiting"),
    _length("uncompared_ns", "time in sends and receives, and in collectives that no other rank recorded"),
    _flag(
        "is_straggler", "whether the rank itself waits little and causes most of the waiting in its collectives", "late"
    ),
    _flag(
        "is_cause",
        "whether the rank is a culprit; if causes are unknown, whether something other than waiting makes it late",
    ),
)
"""How ranks wait for each other."""

WAIT_CAUSES = (
    ResultColumn("cause_rank", "int32", "rank that causes waiting; null if it is unknown", heading="caused by rank"),
    ResultColumn("waiting_rank", "int32", "rank that waits", heading="rank that waits"),
    _text("cause", "kind of cause: computation, python, data_loading, …, or unknown"),
    _text("frame", "innermost Python function of the user, with file and line; null if unknown", "Python function"),
    _length("cost_ns", "time that all ranks together wait because of this rank or cause", "cost"),
    _fraction("cost_fraction", "cost_ns divided by the total waiting time", "of all waiting"),
    _length("error_ns", "how far cost_ns may be off", "may be off by"),
    _length("typical_wait_ns", "how long the rank waits in its median step", "typical"),
    _length("wait_excess_ns", "wait_ns - typical_wait_ns", "longer by"),
    _length(
        "cost_excess_ns",
        "time that the cause costs the rank in this step, minus the time that it costs the rank in the median step",
        "because of this cause",
    ),
    _length("passed_on_ns", "how long other ranks wait because this rank waited", "passes on"),
    _count("wait_count", "collectives, sends and receives in which ranks wait directly because of the cause", "waits"),
    ResultColumn(
        "first_instance",
        "int64",
        "number of the first operation in which a rank waits directly because of the cause; null if no rank does",
    ),
    _time("first_ns", "time at which cause_rank starts first_instance, by the clock of cause_rank", "first"),
    _text(
        "role", "culprit: causes waiting; victim: waits because of culprits, or delays others in turn; null: neither"
    ),
)
"""Why ranks wait for each other."""

COLLECTIVES = (
    _text("process_group", "description and ranks of the group, such as mesh_dp [0, 2]; null if unknown", "group"),
    _count("group_size", "number of ranks in the group; 2 for a send or receive", "ranks"),
    _count("instance", "number of the collective, equal on all its ranks; null if it was not matched"),
    _count("instance_count", "how often the collective ran", "instances"),
    _size(
        "message_bytes",
        "size of the whole array that a collective handles, as in nccl-tests; null if unknown",
        "message",
    ),
    _size(
        "bus_bytes", "bytes that cross the rank's link, computed with the bus factor; null if unknown", "over the link"
    ),
    _fraction("wait_fraction", "wait_ns divided by the time in collectives that other ranks also recorded", "waiting"),
    _mean("median_transfer_ns", "median transfer time", "transfer"),
    _bandwidth("algorithm_bytes_per_s", "message_bytes divided by the transfer time", "algorithm bandwidth"),
    _bandwidth("bus_bytes_per_s", "bus_bytes divided by the transfer time", "bus bandwidth"),
    _bandwidth("low_bytes_per_s", "lower end of the 95 % interval of bus_bytes_per_s", "at least"),
    _bandwidth("high_bytes_per_s", "upper end of the 95 % interval of bus_bytes_per_s; null if unbounded", "at most"),
    _text("verdict", "transfer-bound, skew-bound, mixed or inconclusive"),
    ResultColumn("late_rank", "int32", "the rank that came last most often", heading="late rank"),
    _fraction("late_fraction", "share of the instances in which late_rank came last"),
    _count("mergeable_count", "small calls, each of which could be merged with the previous call", "mergeable"),
    _length(
        "mergeable_ns",
        "time that merging these calls would save on each rank: their latency and the pauses between them",
        "saves",
    ),
    _length(
        "lateness_ns",
        "how much later this rank arrived than the first rank; null if the clocks are not exact enough",
        "lateness",
    ),
    _length("lateness_half_width_ns", "largest error of lateness_ns due to the clocks; null if unknown", "±"),
    _flag("is_last", "whether the other ranks waited only for this rank", "last"),
    _text(
        "transfer_basis",
        "what the transfer time is based on: one clock, aligned clocks, or the shortest duration (an upper bound)",
        "measured by",
    ),
    _text(
        "matched_by",
        "how calls were matched: by sequence, communication_id, signature, time, stream_order or send_receive",
        "matched by",
    ),
    _fraction("call_fraction", "share of all calls", "of calls"),
    _fraction("byte_fraction", "share of the bytes of all calls; null if no size is known", "of bytes"),
    _fraction("time_fraction", "share of the summed durations of all calls", "of time"),
    _time(
        "valid_from_ns",
        "start of the row's period (one row for each period between jumps of a clock); null if the clock never jumps",
        "from",
    ),
    _time(
        "valid_to_ns",
        "end of the row's period (one row for each period between jumps of a clock); null if the clock never jumps",
        "to",
    ),
    _time("offset_at_ns", "time on this clock at which offset_ns applies", "at"),
    _length("offset_ns", "reference host's time minus this clock's time; null if unknown", "offset"),
    _length("half_width_ns", "largest error of offset_ns", "±"),
    _number(
        "drift_ppb", "how much faster the reference clock runs than this clock, in parts per billion", "drift (ppb)"
    ),
    _number("drift_half_width_ppb", "largest error of drift_ppb", "± (ppb)"),
    _count("size_count", "number of different message sizes", "sizes"),
    _mean("latency_ns", "time that an empty message would take", "latency"),
    _mean("latency_low_ns", "lower end of the 95 % interval of latency_ns", "at least"),
    _mean("latency_high_ns", "upper end of the 95 % interval of latency_ns", "at most"),
    ResultColumn("source_rank", "int32", "rank that sends", heading="from"),
    ResultColumn("destination_rank", "int32", "rank that receives", heading="to"),
    _text("part", "the host, link or group that is slow"),
    _mean("peer_transfer_ns", "median transfer time of other hosts, links or groups", "transfer of peers"),
    _number(
        "slowdown",
        "for a host, link, group or pair: its transfer time divided by that of its peers; for a step: its duration "
        "divided by its ideal duration",
    ),
    _flag("is_slow", "whether the slowdown stands out among the peers; null with fewer than 3 transfers", "slow"),
    _text("axis", "axis of parallelism: pp, tp, cp, ep, fsdp, dp, world, or unknown"),
    _text(
        "named_by",
        "what identified the axis: the group's description, equal groups (groups of the same shape), the collectives, "
        "or nothing",
        "named by",
    ),
    ResultColumn("candidates", "list[text]", "axes that fit"),
    ResultColumn("collectives", "list[text]", "collectives that the group runs, such as all_reduce"),
    _count("stage", "position of the rank in its pipeline, from 0"),
    _count("stage_count", "stages of the pipeline", "stages"),
    _count("microbatch_count", "number of messages that each stage sends to the next stage in a step", "microbatches"),
    _length("bubble_ns", "exposed waiting in sends and receives of a pipeline", "bubble"),
    _mean("mean_computation_ns", "mean of computation_ns over the steps", "computing"),
    _mean("mean_bubble_ns", "mean of bubble_ns over the steps", "bubble"),
    _fraction("bubble_fraction", "bubble_ns / step_ns", "of the step"),
    _fraction("expected_fraction", "(p - 1) / (m + p - 1) for p stages and m microbatches", "expected"),
    _count("sent_tokens", "token rows that the rank sends in all-to-alls", "tokens sent"),
    _count("received_tokens", "token rows that the rank receives in all-to-alls", "tokens received"),
    _number(
        "imbalance",
        "tokens that the rank's experts receive, divided by the group's mean; excludes the results that experts send "
        "back",
    ),
    _count("product_count", "grouped matrix products with recorded shapes", "products"),
    _count(
        "computed_tokens",
        "token rows in grouped matrix products; a token counts once for each product that contains it",
        "tokens computed",
    ),
    _count("expert_count", "largest number of experts in one grouped matrix product", "experts"),
    _number("computed_imbalance", "computed_tokens divided by the group's mean"),
)
"""Collectives matched across ranks."""

STRAGGLER_COST = (
    _count("dp_rank", "number of the replica of the model, from 0", "replica"),
    _text("operation_kind", "kind of operation: forward-compute, dp-all-reduce, ...", "kind"),
    _count("operation_count", "number of operations", "operations"),
    _length("ideal_ns", "duration of the step if all operations take their ideal time", "ideal"),
    _mean(
        "mean_cost_ns",
        "how much longer the mean ideal step becomes if only the operations of this row keep their recorded times",
        "costs",
    ),
    _fraction(
        "replay_error_fraction",
        "absolute difference between step_ns and the length of a replay that uses all recorded durations and start "
        "times, divided by step_ns",
        "replay error",
    ),
    _fraction(
        "worker_fraction",
        "M_W: part of the slowdown that vanishes if the operations of the slowest 3 % of the workers take ideal times",
        "worker share",
    ),
    _fraction(
        "stage_fraction",
        "M_S: part of the slowdown that vanishes if the operations of the last stage take ideal times",
        "stage share",
    ),
)
"""The cost of stragglers."""

PATH_CLASSES = {
    "cpu_operator": "CPU operators",
    "host_gap": "host gaps",
    "data_loading": "loading",
    "launch_delay": "launches",
    "kernel_kernel_delay": "between kernels",
    "computation": "computation",
    "communication": "comm.",
    "copy": "copies",
    "synchronisation_wait": "sync",
    "unknown": "unknown",
}
"""{class of critical path segments: heading of its column}; the headings are short, so all columns fit into a table."""

CRITICAL_PATH = (
    _flag("waits_recorded", "whether the profiler recorded which stream waits for which other stream"),
    _count("inferred_wait_count", "waits between streams inferred from timing alone"),
    _count(
        "contradicted_count",
        "dependencies in which, by the recorded times, an event happens before the one on which it depends",
    ),
    _length(
        "slack_ns", "longest time by which all events of the rank could be delayed without prolonging the step", "slack"
    ),
    ResultColumn(
        "from_rank",
        "int32",
        "rank that arrived last in a collective; the critical path leaves this rank for to_rank",
        heading="from",
    ),
    ResultColumn("to_rank", "int32", "rank on which the critical path continues", heading="to"),
    _length("after_ns", "time since the start of the job's window", "after"),
    _count("hop_count", "how often the critical path crosses from one rank to another", "hops"),
    _length("clock_half_width_ns", "largest error of the offset between the two clocks; null if unknown", "±"),
    _length(
        "unknown_ns",
        "on the critical path: time whose cause was not recorded; elsewhere: time in which it is unknown whether the "
        "device was busy",
        "unknown",
    ),
    _length("incomplete_ns", "time on the critical path in communication that not all ranks recorded", "ranks missing"),
    _length(
        "clock_contradiction_ns",
        "sum of the times by which events seem to happen before events of other ranks on which they depend, because of "
        "clock errors",
        "clock error",
    ),
    *(
        _fraction(f"{name}_path_fraction", f"share of the critical path in segments of class {name}", heading)
        for name, heading in PATH_CLASSES.items()
    ),
    _length("measured_ns", "length of the window", "measured"),
    _length("replayed_ns", "length of the window in a replay without changes", "without a change"),
    _length("predicted_ns", "predicted length of the window with the changes", "predicted"),
    _length("saved_ns", "measured_ns - predicted_ns", "saves"),
    _fraction("saved_fraction", "saved_ns / measured_ns", "share saved"),
)
"""The critical path, and how much time would be saved by changes."""


def _both(name: str, column_type: ColumnType, meaning: str, unit: Unit, heading: str = "") -> tuple[ResultColumn, ...]:
    return tuple(
        ResultColumn(f"{side}_{name}", column_type, f"{meaning} in the {side} trace", unit, heading.format(side))
        for side in ("control", "test")
    )


COMPARISONS = (
    *_both("event_count", "int64", "events", "", "{} events"),
    *_both("event_count_per_step", "float64", "mean number of events per step", ""),
    *_both("call_count", "int64", "calls", "", "{} calls"),
    *_both("total_ns", "int64", "summed durations", "ns", "{} total"),
    *_both("mean_ns", "float64", "mean duration of a call", "ns", "{} mean"),
    *_both("ns_per_step", "float64", "mean time per step", "ns", "{}"),
    *(
        column
        for where in ("host", "device")
        for part in ("total", "self")
        for column in _both(f"{where}_{part}_ns", "int64", f"{where}_{part}_ns", "ns")
    ),
    _count("event_count_difference", "test_event_count - control_event_count"),
    _length("difference_ns", "test_total_ns - control_total_ns", "difference"),
    _mean("difference_ns_per_step", "test_ns_per_step - control_ns_per_step", "difference"),
)
"""The comparison of two traces."""

DIAGNOSIS = (
    _text("rule", "name of the rule"),
    _text("advice", "what to do about the cause, in one sentence"),
    _text("finding", "what happens, in one sentence"),
    _length(
        "stake_ns",
        "upper bound on the time per step that fixing the cause would save, averaged over all ranks",
        "at stake per step",
    ),
    _length(
        "stake_error_ns",
        "half the difference between the largest and the smallest stake_ns of the replayed steps; null for fewer "
        "than two steps",
        "± at stake",
    ),
    _fraction("stake_fraction", "stake_ns divided by the mean step", "of the step"),
    _text(
        "basis",
        "what-if: stake_ns comes from a replay without the cause; bound: stake_ns is an upper bound; estimate: "
        "stake_ns is an estimate",
    ),
    _text("confidence", "high, medium or low: how certain the cause is"),
    _text("source_line", "innermost line and function of the user's code; null if unknown", "line"),
    _text(
        "part_of",
        "another rule whose finding also explains most of the time of this finding; null if there is none",
        "part of",
    ),
    _text("subject", "text that distinguishes several findings of one rule; null if the rule has only one"),
    _number("measured", "value measured by the rule"),
    _number("threshold", "lowest value for which the rule reports a finding"),
    _text("unit", "unit of the measured value and the threshold"),
    _length(
        "claimed_ns",
        "time per step that this finding explains and that no earlier finding explains",
        "cost on the rank",
    ),
    _length("explained_ns", "time per step that this finding explains", "explains"),
    _fraction("busy_fraction", "share of the mean step in which a device is busy", "GPU busy"),
    _length("step_std_ns", "standard deviation of step_ns, averaged over the ranks", "±"),
    _fraction(
        "exposed_fraction", "share of the mean step in which communication runs without computation", "exposed comm."
    ),
    _text(
        "main_work",
        "the kernel with the most device time; without device work, the operator with the most time on the host",
    ),
    _fraction("main_fraction", "share of the mean step that main_work takes", "its share"),
    _text("main_source_line", "without device work: the user's function that runs main_work; null if unknown"),
    _count("cut_off_count", "number of files that are cut off", "files cut off"),
    _count("unread_count", "files whose device work cannot be read", "files not read"),
    _fraction(
        "costed_fraction",
        "share of the compute time that is spent in operators whose FLOPs are known; MFU includes only these operators",
        "known costs",
    ),
    _size("memory_peak_bytes", "highest memory peak of any device; null if not recorded", "memory peak"),
    _size(
        "memory_capacity_bytes",
        "total memory of the device whose peak is memory_peak_bytes; null if unknown",
        "device memory",
    ),
    ResultColumn(
        "waited_for_rank", "int32", "the rank that causes the most waiting; null if there is none", heading="for rank"
    ),
)
"""Diagnosis."""

SOURCE_LINES = (
    _text("file", "path of the user's source file, relative to its folder in `sys.path`; null if unknown"),
    ResultColumn("line", "int64", "first line of the function; for a generator, the line at which it resumed"),
    _text("function", "function of the user's code"),
    _text(
        "callee",
        "operator, function or module that the line called directly; null for time in the line itself",
        "called",
    ),
    _text("callees", "the three functions or operators called by the line that take the most time", "called"),
    _length("host_python_ns", "part of host_self_ns outside operators, runtime calls and waits", "host in Python"),
    _length(
        "host_blocked_ns",
        "part of host_self_ns spent waiting for a device, another rank or another thread",
        "host blocked",
    ),
    _length(
        "device_idle_ns",
        "time in which a device is idle while the line runs on the thread that launches the device's next work",
        "no work for a device",
    ),
    _fraction("step_fraction", "share of the step time in which the line runs on at least one thread", "of the steps"),
    _length("own_ns_per_step", "host_self_ns - host_blocked_ns, averaged over the steps", "in a step"),
    _length("typical_ns_per_step", "own_ns_per_step of the median rank", "typical"),
    _length("excess_ns_per_step", "own_ns_per_step - typical_ns_per_step", "longer by"),
    _fraction("excess_fraction", "excess_ns_per_step divided by the rank's mean step", "of a step"),
)
"""Lines of the user's code."""

COMPILED_REGIONS = (
    _text("region", "number of the compiled frame and number of its version, such as `0/1`"),
    ResultColumn("is_recompiled", "bool", "whether earlier versions of the frame were compiled", heading="recompiled"),
    ResultColumn(
        "compiled_frame",
        "int64",
        "number that identifies the function, or part of a function, that torch.compile compiled",
        heading="frame",
    ),
    _text("compiled_function", "file, first line and name of the compiled function; null without a log", "function"),
    _count(
        "recompilation_count",
        "number of times the frame was recompiled, which is its highest version number",
        "compiled again",
    ),
    _text("recompile_reason", "failed guards of earlier versions; null without a log", "reason"),
    _count("replay_count", "launches of CUDA graphs inside the region", "graph replays"),
    _count("compilation_count", "compilations of torch.compile during the recording", "compilations"),
    _length("compilation_ns", "host time of the compilations", "compiling"),
    _count("guard_count", "guard checks, which look up the compiled version that fits the inputs", "guard checks"),
    _length("guard_ns", "host time of the guard checks", "guards"),
    _count(
        "graph_break_count",
        "number of resume functions, each of which continues a function after a graph break; null if unknown",
        "graph breaks",
    ),
    _length(
        "compiled_device_ns",
        "device time of work launched by compiled code, forward and backward",
        "compiled device time",
    ),
    _fraction("compiled_fraction", "share of the device time in work launched by compiled code", "compiled"),
    _text("source_file", "generated source of the kernel; null if not recorded", "source"),
)
"""Code compiled by torch.compile."""

ROOFLINE = (
    _text("phase", "forward, backward, recompute (activation checkpointing) or optimizer; null if unknown"),
    _text("input_type", "JSON: element type of each input; null if not recorded", "input types"),
    _text("input_values", "JSON: text of each scalar input; null if not recorded", "input values"),
    _text(
        "work",
        "matrix: arithmetic for tensor cores; vector: arithmetic only for ordinary cores; copy: no arithmetic; null "
        "if unknown",
    ),
    _text("precision", "element type in which the kernel computes; null if unknown"),
    ResultColumn("flops", "int64", "operations of one call; null if unknown", "FLOP", "operations"),
    _size("bytes_moved", "minimum number of bytes that one call reads and writes; null if unknown", "bytes"),
    ResultColumn(
        "dense_flops",
        "int64",
        "operations of the matrix multiplications in a call or step, excluding bias and mask; null if unknown",
        "FLOP",
        "of dense products",
    ),
    ResultColumn("flops_per_s", "float64", "flops of all calls / busy_ns", "FLOP/s", "rate"),
    _number("flops_per_byte", "flops / bytes_moved", "FLOP/byte"),
    _bandwidth("moved_bytes_per_s", "bytes_moved of all calls / busy_ns", "bandwidth"),
    _text(
        "bound",
        "compute or memory, whichever takes longer at peak rates (null if unknown); for inference steps, the largest "
        "part of the step, such as launch, or unknown if another part may be larger",
        "bound by",
    ),
    _length("floor_ns", "lower bound of busy_ns at the peak rates of the device", "lower bound"),
    _fraction(
        "roofline_fraction",
        "floor_ns / busy_ns; if it is above 1, the column contradiction gives the reason",
        "of the peak",
    ),
    _length("gap_ns", "busy_ns - floor_ns", "above the bound"),
    _text("reason", "why operations or bytes are unknown; empty if they are known"),
    _text("contradiction", "reason why floor_ns exceeds busy_ns; null if it does not"),
    _fraction("covered_fraction", "share of busy_ns in operators whose operations or bytes are known", "known"),
    _length("contradicted_ns", "busy_ns of operators whose floor_ns exceeds their busy_ns", "contradicted"),
    _length("without_tensor_cores_ns", "busy_ns of matrix work on ordinary cores", "matrix work on ordinary cores"),
    _length("earlier_ns", "time of work launched before the recording began", "launched earlier"),
    ResultColumn(
        "model_flops",
        "int64",
        "operations of the matrix multiplications of a step, excluding recomputed ones",
        "FLOP",
        "of the model",
    ),
    ResultColumn(
        "hardware_flops",
        "int64",
        "operations of the matrix multiplications of a step, including recomputed ones",
        "FLOP",
        "of the hardware",
    ),
    _fraction("mfu_fraction", "share of the step that model_flops would take at peak rate", "MFU"),
    _fraction("hfu_fraction", "share of the step that hardware_flops would take at peak rate", "HFU"),
    _text("resource", "a precision, or memory"),
    _flag("is_matrix", "whether this is the peak of tensor or matrix cores", "tensor cores"),
    ResultColumn(
        "peak_flops_per_s",
        "float64",
        "peak rate of arithmetic; null in the row that describes the memory",
        "FLOP/s",
        "peak",
    ),
    _bandwidth(
        "peak_bytes_per_s", "peak bandwidth of the memory; null in rows that describe arithmetic", "peak bandwidth"
    ),
    ResultColumn(
        "attainable_flops_per_s",
        "float64",
        "highest rate of matrix multiplications according to the vendor's measurements",
        "FLOP/s",
        "vendor",
    ),
    ResultColumn(
        "attained_flops_per_s", "float64", "highest rate of matrix multiplications in this trace", "FLOP/s", "best here"
    ),
    _bandwidth("attained_bytes_per_s", "highest memory bandwidth in this trace", "best bandwidth here"),
    _text("source", "source of the peak rate"),
)
"""Operators compared with the peak rates of the device."""

INFERENCE = (
    ResultColumn("inference_step", "int64", "number of the inference step of the rank, from 0", heading="step"),
    _text("step_name", "name of the range that marks the step; null if there is none", "range"),
    _text(
        "engine",
        "inference engine: vllm, sglang, …; annotation for a general step name, such as decode_step; pattern if the "
        "name matches a pattern of the user; null if unknown",
    ),
    _text(
        "found_by",
        "what identifies the steps: annotation, python function, module, compiled graph, token embedding, or profiler step",
        "found by",
    ),
    _flag("is_draft", "whether the step runs the draft model of speculative decoding", "draft"),
    _text("period", "start: unusual steps at the beginning; cut off: some work was not recorded; steady: all others"),
    _text("period_reason", "why the step is not steady; null if it is", "why"),
    _count("request_count", "requests in the step's batch; null if unknown", "requests"),
    _count("prefill_request_count", "requests whose prompt the step processes; null if unknown", "in prefill"),
    _count("decode_request_count", "requests for which the step generates tokens; null if unknown", "in decode"),
    _count("token_count", "new tokens of all requests; null if unknown", "tokens"),
    _count("prefill_token_count", "new tokens of prompts; null if unknown", "prompt tokens"),
    _count("decode_token_count", "new tokens in decoding; null if unknown", "decoded tokens"),
    _count(
        "padded_token_count",
        "tokens that the step computes, including padding; null if unknown or equal to token_count",
        "with padding",
    ),
    _count(
        "output_token_count",
        "tokens returned to requests; null unless each step decodes one token per request and nothing else",
        "output tokens",
    ),
    _count(
        "draft_token_count",
        "decoded tokens beyond one per request, proposed by a draft model; null if unknown",
        "drafted tokens",
    ),
    _count(
        "attention_pair_count",
        "query-key pairs that causal attention computes in one head of one layer",
        "attention pairs",
    ),
    _count("apart_count", "steps outside the steady period", "not steady"),
    _length("gap_before_ns", "time since the end of the previous step; null for the first step", "gap before"),
    _length("host_ns", "length of the step's range on the host", "on host"),
    _length("launch_call_ns", "host time in calls that launch work", "launching"),
    _length(
        "compute_bound_ns",
        "time in kernels that, at peak rates, take longer to compute than to move their bytes",
        "compute-bound",
    ),
    _length(
        "memory_bound_ns",
        "time in kernels that, at peak rates, take longer to move bytes than to compute, while no "
        "compute-bound kernel runs",
        "memory-bound",
    ),
    _length(
        "unknown_bound_ns",
        "time in kernels whose roofline is unknown, while no kernel with a known roofline runs",
        "bound unknown",
    ),
    _length("copying_ns", "time in copies and memsets, while no kernel runs", "copies"),
    _length(
        "launch_idle_ns",
        "idle time after the next work has been launched, except unknown_idle_ns",
        "waits for launch",
    ),
    _length(
        "unknown_idle_ns",
        "idle time of unknown cause, because the next launch or some kernels of a CUDA graph were not recorded",
        "idle, unknown",
    ),
    _length("host_idle_ns", "idle time before the host launches the next work", "waits for host"),
    _length("attention_ns", "time in which attention runs; null if no attention is recognised", "attention"),
    ResultColumn(
        "attention_flops",
        "int64",
        "floating-point operations of attention in a step; null if unknown",
        "FLOP",
        "of attention",
    ),
    _length("moe_ns", "time in which a mixture of experts runs; null if none is recognised", "experts"),
    _length("draft_ns", "time in which a draft model runs; null if none is recognised", "drafting"),
    _fraction("attention_fraction", "attention_ns / busy_ns", "attention"),
    _fraction("moe_fraction", "moe_ns / busy_ns", "experts"),
    _fraction("draft_fraction", "draft_ns / busy_ns", "drafting"),
    _length("p50_step_ns", "median duration of the steps", "median"),
    _length("p90_step_ns", "90th percentile of the durations of the steps", "p90"),
    _length("p99_step_ns", "99th percentile of the durations of the steps", "p99"),
    _number("mean_token_count", "mean of token_count", "tokens"),
    _mean("mean_gap_before_ns", "mean of gap_before_ns", "gap before"),
    _mean("mean_host_ns", "mean of host_ns", "on host"),
    _mean(
        "output_token_ns",
        "time per output token, including the gaps before steps; null if unknown",
        "per output token",
    ),
    _length("elapsed_ns", "time from the start of the first steady step to the end of the last steady step", "elapsed"),
    _mean(
        "inter_token_ns",
        "mean time between two tokens of a request: elapsed_ns divided by the number of steps that decode",
        "between tokens",
    ),
    _number("tokens_per_s", "new tokens of all steady steps per second; null if some are unknown", "tokens/s"),
)
"""Steps of inference."""

TRUST = (
    _length("recorded_ns", "time from the first to the last event of the rank", "recorded"),
    _length("doubtful_ns", "time in which the recording breaks a rule; null if unknown", "in doubt"),
    _fraction("trusted_fraction", "share of recorded_ns in which the recording breaks no rule", "trusted"),
    _length("device_busy_ns", "time in which a device of the rank runs work", "device time"),
    _length("doubtful_busy_ns", "part of device_busy_ns in which the recording breaks a rule", "device time in doubt"),
    _fraction(
        "trusted_busy_fraction", "share of device_busy_ns in which the recording breaks no rule", "of device time"
    ),
    _count("doubt_count", "broken rules", "doubts"),
    _count("case_count", "number of events or periods that break the rule", "cases"),
    _text("sentence", "what was found, and what it means", "doubt"),
)
"""Whether the recording can be trusted."""

GROUPS: dict[str, tuple[ResultColumn, ...]] = {
    "Where": WHERE,
    "Events and names": EVENTS,
    "Times": TIMES,
    "Sums of durations": TOTALS,
    "Counts": COUNTS,
    "Busy and idle": BUSY_AND_IDLE,
    "Use of devices": DEVICE_USE,
    "Launches and queues": LAUNCHES,
    "Sizes and bandwidths": MEMORY,
    "Collectives and other ranks": JOB,
    "Why ranks wait": WAIT_CAUSES,
    "Collectives matched across ranks": COLLECTIVES,
    "Source lines": SOURCE_LINES,
    "Compiled regions": COMPILED_REGIONS,
    "Roofline": ROOFLINE,
    "Inference": INFERENCE,
    "Straggler cost": STRAGGLER_COST,
    "Critical path": CRITICAL_PATH,
    "Comparisons": COMPARISONS,
    "Trust": TRUST,
    "Diagnosis": DIAGNOSIS,
}
"""All columns, by subject."""

COLUMNS: dict[str, ResultColumn] = {column.name: column for columns in GROUPS.values() for column in columns}
"""All columns by name."""
