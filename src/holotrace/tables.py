"""Results as tables for people: which rows and columns, under which headings, in which units.

The terminal, the report and the pages print the same `View`s of a result, so they cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import polars as pl

from holotrace.analyses.kernel_sequences.compute import SEPARATOR as PATTERN_SEPARATOR
from holotrace.analyses.kernel_sequences.compute import sequences_over_ranks
from holotrace.analyses.kernels.compute import joined_over_ranks
from holotrace.analyses.modules.compute import summed_modules
from holotrace.analyses.operator_kernels.compute import SEPARATOR as SEQUENCE_SEPARATOR
from holotrace.analyses.operator_kernels.compute import operators_over_ranks
from holotrace.analyses.operator_memory.compute import summed_operator_memory
from holotrace.analyses.operators.compute import summed_operators
from holotrace.drawing.names import printable, short_name, short_names
from holotrace.enrich.critical_path.event_graph import PathClass
from holotrace.units import bandwidth_text, duration_text, percent_text, size_text

if TYPE_CHECKING:
    from holotrace.analyses.communication_overlap.compute import CommunicationOverlap
    from holotrace.analyses.compare_operators.compute import OperatorComparison
    from holotrace.analyses.compare_traces.compute import TraceComparison
    from holotrace.analyses.critical_path.compute import CriticalPath
    from holotrace.analyses.cupti_counters.compute import CuptiCounters
    from holotrace.analyses.distributed.compute import Distributed
    from holotrace.analyses.gpu_summary.compute import GpuSummary
    from holotrace.analyses.idle_time.compute import IdleTime
    from holotrace.analyses.kernel_breakdown.compute import KernelBreakdown
    from holotrace.analyses.kernel_sequences.compute import KernelSequences
    from holotrace.analyses.kernels.compute import Kernels
    from holotrace.analyses.launch_statistics.compute import LaunchStatistics
    from holotrace.analyses.memory_bandwidth.compute import MemoryBandwidth
    from holotrace.analyses.memory_timeline.compute import MemoryTimeline
    from holotrace.analyses.modules.compute import Modules
    from holotrace.analyses.operator_kernels.compute import OperatorKernels
    from holotrace.analyses.operator_memory.compute import OperatorMemory
    from holotrace.analyses.operators.compute import Operators
    from holotrace.analyses.queue_length.compute import QueueLength
    from holotrace.analyses.step_time.compute import StepTime
    from holotrace.analyses.stragglers.compute import Stragglers
    from holotrace.analyses.temporal_breakdown.compute import TemporalBreakdown
    from holotrace.analyses.user_annotations.compute import UserAnnotations

_HEADINGS = {
    "window_ns": "from first to last work",
    "compute_fraction": "computing",
    "non_compute_fraction": "other work only",
    "idle_fraction": "idle",
    "idle_ns": "idle for",
    "compute_ns": "computing for",
    "comm_ns": "communication",
    "overlap_ns": "hidden",
    "exposed_ns": "exposed",
    "overlap_fraction": "hidden share",
    "duration_ns": "time",
    "fraction": "share",
    "kernel_kind": "kind",
    "name": "kernel",
    "call_count": "calls",
    "gap_count": "gaps",
    "sum_ns": "sum",
    "mean_ns": "mean",
    "std_ns": "std. dev.",
    "min_ns": "min",
    "median_ns": "median",
    "p25_ns": "25 %",
    "p75_ns": "75 %",
    "max_ns": "max",
    "host_wait_fraction": "for the host",
    "kernel_wait_fraction": "for the kernel's start",
    "other_fraction": "for something else",
    "event_count": "events",
    "operator_count": "operators",
    "step_count": "steps",
    "call_sum_ns": "calls take",
    "call_mean_ns": "mean call",
    "delay_median_ns": "median delay",
    "delay_max_ns": "longest delay",
    "short_kernel_count": "kernel shorter than call",
    "slow_call_count": "slow calls",
    "late_start_count": "late starts",
    "unknown_count": "launch unknown",
    "operator_ns": "time on the host",
    "forward_kernel_ns": "forward",
    "backward_kernel_ns": "backward",
    "launch_delay_mean_ns": "operator to launch",
    "start_delay_mean_ns": "launch to kernel",
    "mean_step_ns": "mean step",
    "waiting_fraction": "work waits",
    "mean_length": "mean length",
    "median_length": "median",
    "max_length": "longest",
    "full_ns": "full for",
    "work_count": "work",
    "unknown_launch_count": "launch unknown",
    "copy_count": "copies",
    "busy_ns": "copying for",
    "mean_bytes_per_s": "mean bandwidth",
    "median_bytes_per_s": "median bandwidth",
    "max_bytes_per_s": "highest bandwidth",
    "inclusive_ns": "time",
    "exclusive_ns": "outside inner ones",
    "kernel_count": "kernels",
    "kernel_ns": "kernel time",
    "is_straggler": "late",
    "mean_lateness_ns": "mean lateness",
    "last_count": "came last",
    "collective_count": "collectives",
    "step_ns": "step",
    "computation_ns": "computing",
    "both_ns": "both",
    "communicating_ns": "communicating",
    "neither_ns": "neither",
    "transfer_ns": "data transfer",
    "synchronising_ns": "waiting",
    "unmatched_ns": "not known",
    "latency_ns": "latency",
    "mean_latency_ns": "mean latency",
    "mean_transfer_ns": "mean transfer",
    "mean_bytes": "mean size",
    "memory_bytes": "memory",
    "wait_ns": "waits",
    "caused_wait_ns": "others wait for it",
    "caused_fraction": "of all waiting",
    "flop": "FLOP",
    "top_level_op": "operator",
    "bottom_level_op": "innermost operator",
    "difference_ns": "difference",
    "device_type": "device",
    "device_id": "number",
    "peak_bytes": "peak",
    "first_bytes": "at the beginning",
    "last_bytes": "at the end",
    "reserved_peak_bytes": "reserved at most",
    "capacity_bytes": "of the device",
    "self_allocated_bytes": "allocated, itself",
    "self_unreleased_bytes": "not released",
    "self_increase_bytes": "net, itself",
    "total_allocated_bytes": "allocated, with inner",
    "total_increase_bytes": "net, with inner",
    "self_allocation_count": "allocations",
    "block_bytes": "size",
    "lifetime_ns": "alive for",
    "allocated_after_ns": "allocated at",
    "released_after_ns": "released at",
    "block_count": "blocks",
    "control_ns": "control",
    "test_ns": "test",
    "control_count": "control calls",
    "control_calls": "control calls",
    "host_ns": "on the host",
    "device_ns": "on devices",
    "test_calls": "test calls",
    "path": "phase · module · operator · kernel",
    "test_count": "test calls",
    "control_mean_ns": "control mean",
    "test_mean_ns": "test mean",
    "rank_count": "ranks",
    "path_class": "class",
    "event_index": "place in the file",
    "segment_count": "segments",
    "measured_ns": "measured",
    "predicted_ns": "predicted",
    "saved_ns": "saves",
    "saved_fraction": "of it",
    "replayed_ns": "without a change",
    "device_self_ns": "device, itself",
    "device_total_ns": "device, with inner",
    "device_self_busy_ns": "device busy",
    "host_self_ns": "host, itself",
    "host_total_ns": "host, with inner",
    "tensor_core_self_fraction": "on tensor cores",
    "tensor_core_self_least_fraction": "on tensor cores, at least",
    "tensor_core_unknown_self_fraction": "tensor cores unknown",
    "is_tensor_core_eligible": "eligible",
    "input_shape": "input shapes",
    "operator_calls": "operators",
    "backward_device_total_ns": "device, backward",
    "backward_host_total_ns": "host, backward",
    "memcpy_ns": "copies",
    "memset_ns": "memsets",
    "communication_ns": "communication",
    "runtime_ns": "runtime",
    "dataloader_ns": "data loader",
    "cpu_ns": "operators",
    "other_ns": "other",
    "device_name": "model",
    "compute_capability": "capability",
    "utilization_fraction": "utilization",
    "sm_efficiency_fraction": "est. SM efficiency",
    "sm_efficiency_known_fraction": "SM efficiency known for",
    "occupancy_fraction": "est. occupancy",
    "occupancy_known_fraction": "occupancy known for",
    "tensor_core_fraction": "on tensor cores",
    "tensor_core_least_fraction": "on tensor cores, at least",
    "tensor_core_unknown_fraction": "tensor cores unknown",
    "uses_tensor_cores": "tensor cores",
    "is_operator_eligible": "eligible",
    "mean_blocks_per_sm": "blocks per SM",
    "blocks_per_sm_known_fraction": "blocks known for",
    "mean_occupancy_fraction": "est. occupancy",
    "registers_per_thread": "registers",
    "shared_memory_bytes": "shared memory",
    "value_fraction": "measured",
    "measure": "share of",
    "limit_fraction": "limit",
    "worth_ns": "worth at most",
    "total_ns": "in all",
}

_PATH_CLASSES = {
    PathClass.CPU_OPERATOR: "CPU operators",
    PathClass.HOST_GAP: "host gaps",
    PathClass.DATA_LOADING: "loading",
    PathClass.LAUNCH_DELAY: "launches",
    PathClass.KERNEL_KERNEL_DELAY: "between kernels",
    PathClass.COMPUTE: "compute",
    PathClass.COMMUNICATION: "comm.",
    PathClass.COPY: "copies",
    PathClass.SYNCHRONISATION_WAIT: "sync",
    PathClass.UNKNOWN: "unknown",
}
"""Headings of the shares of a critical path, short enough to stand side by side."""

_HEADINGS |= {f"{each.name.lower()}_path_fraction": text for each, text in _PATH_CLASSES.items()}

_LAUNCH_COUNTS = ("short_kernel_count", "slow_call_count", "late_start_count")
_KERNELS_SHOWN = 3
_PATHS_SHOWN = 30
_KERNEL_LENGTH = 40
_SEQUENCE_COLUMN = "first kernels"
_MOST_NAMES = 20_000
_NOTHING: Mapping[str, str] = MappingProxyType({})

_UNITS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_ns", duration_text),
    ("fraction", percent_text),
    ("bytes_per_s", bandwidth_text),
    ("bytes", size_text),
)
"""How numbers are printed, by the ending of their column's name."""


@dataclass(frozen=True)
class View:
    """One table of a result: what it says, how to make it, and by what to choose rows where there are too many."""

    caption: str
    table: Callable[[Any], pl.DataFrame]
    telling: str
    is_detail: bool = False


@dataclass(frozen=True)
class Cell:
    """One value as it is printed; `whole` is the untruncated text where the printed one is shortened."""

    text: str
    is_number: bool
    whole: str | None = None


@dataclass(frozen=True)
class PrintedTable:
    """A table ready to be shown; `left_out` counts the rows that were too many, `chosen_by` says which were kept."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0
    chosen_by: str = ""


def print_view(view: View, result: object, limit: int) -> PrintedTable:
    """Print a view of a result in at most `limit` rows; of more, those with the largest telling value are kept."""
    return print_frame(view.caption, view.table(result), limit, telling=view.telling)


def print_frame(caption: str, frame: pl.DataFrame, limit: int, *, telling: str) -> PrintedTable:
    """Print a frame in at most `limit` rows, those with the largest values of the column `telling`."""
    left_out = max(0, len(frame) - limit)
    kept = _most_telling(frame, limit, telling) if left_out else frame
    short = shown_names(kept)
    rows = tuple(
        tuple(cell(*named, short) for named in zip(kept.columns, row, strict=True)) for row in kept.iter_rows()
    )
    return PrintedTable(
        caption, tuple(map(heading, kept.columns)), rows, left_out, heading(telling) if left_out else ""
    )


def heading(column: str) -> str:
    """Return what a column is called: `overlap_fraction` is the `hidden share`."""
    return _HEADINGS.get(column, column.replace("_", " "))


def shown_names(frame: pl.DataFrame) -> dict[str, str]:
    """Return the short texts of the kernels and sequences of kernels in a table.

    No two kernels have the same, of up to `_MOST_NAMES` kernels.
    """
    columns = [frame.get_column(name) for name in ("name", "event") if frame.schema.get(name) == pl.String]
    names = {
        value: None for column in columns for value in column.drop_nulls().unique() if _is_short(column.name, value)
    }
    sequences = frame.get_column(_SEQUENCE_COLUMN).unique() if _SEQUENCE_COLUMN in frame.columns else ()
    first = _first_kernels(sequences) if len(sequences) <= _MOST_NAMES else {}
    return first | (short_names(names) if len(names) <= _MOST_NAMES else {})


def cell(column: str, value: float | str | None, short: Mapping[str, str] = _NOTHING) -> Cell:
    """Print a value in the unit that the name of its column tells; nothing is a dash.

    Args:
        column: name of the column.
        value: what it holds.
        short: `shown_names` of the whole table, so that its kernels have different names.
    """
    if value is None:
        return Cell(percent_text(None), is_number=True)
    if isinstance(value, str):
        return _text_cell(column, value, short)
    printed = (print_value(value) for ending, print_value in _UNITS if column.endswith(ending))
    return Cell(next(printed, f"{value:,}"), is_number=True)


def temporal_per_device(result: TemporalBreakdown) -> pl.DataFrame:
    """Return where the time of each device goes, the shares first."""
    shares = ("compute_fraction", "non_compute_fraction", "idle_fraction")
    return _one_device_hidden(result.per_device).select(
        pl.col("^(rank|device)$"), *shares, "compute_ns", "idle_ns", "window_ns"
    )


def states_over_ranks(result: KernelBreakdown) -> pl.DataFrame:
    """Return which kinds of work ran, alone or at once, summed over the ranks."""
    states = result.per_state.group_by("state").agg(pl.col("duration_ns").sum())
    total = max(1, states.get_column("duration_ns").sum())
    shares = states.with_columns((pl.col("duration_ns") / total).alias("fraction"))
    return shares.sort(["duration_ns", "state"], descending=[True, False])


def kernels_over_ranks(result: KernelBreakdown) -> pl.DataFrame:
    """Return each kernel's time and calls, summed over the ranks, the longest first; statistics are per call."""
    per_kernel = result.per_kernel
    total = max(1, per_kernel.get_column("sum_ns").sum())
    joined = per_kernel.group_by("kernel_kind", "name").agg(
        pl.col("sum_ns", "call_count").sum(), pl.col("min_ns").min(), pl.col("max_ns").max()
    )
    mean, share = pl.col("sum_ns") / pl.col("call_count"), pl.col("sum_ns") / total
    table = joined.select(
        "name",
        "kernel_kind",
        "sum_ns",
        share.alias("fraction"),
        "call_count",
        mean.alias("mean_ns"),
        "min_ns",
        "max_ns",
    )
    return table.sort(["sum_ns", "name", "kernel_kind"], descending=[True, False, False])


def overlap_per_rank(result: CommunicationOverlap) -> pl.DataFrame:
    """Return how much of each rank's communication was hidden."""
    return result.per_rank.select("rank", "overlap_fraction", "comm_ns", "overlap_ns", "exposed_ns")


def idle_per_device(result: IdleTime) -> pl.DataFrame:
    """Return how long each device was idle, and which share of that it waited for what."""
    return _one_device_hidden(_by_category(result.per_device))


def idle_per_stream(result: IdleTime) -> pl.DataFrame:
    """Return how long each stream was idle, and which share of that it waited for what."""
    return _one_device_hidden(_by_category(result.per_stream))


def operators_by_name(result: Operators) -> pl.DataFrame:
    """Return the time of each operator, summed over the ranks."""
    return _times_of_operators(result.by_name, ["operator"])


def operators_by_shape(result: Operators) -> pl.DataFrame:
    """Return the time of each operator and shapes of its inputs, summed over the ranks."""
    return _times_of_operators(result.by_shape, ["operator", "input_shape"])


def operators_by_stack(result: Operators) -> pl.DataFrame:
    """Return the time of each operator and call stack, summed over shapes and ranks."""
    return _times_of_operators(result.by_stack.drop("input_shape"), ["operator", "call_stack"])


def _times_of_operators(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    eligible = pl.when("is_tensor_core_eligible").then(pl.lit("yes")).otherwise(pl.lit("no"))
    summed = summed_operators(table).with_columns(eligible.alias("is_tensor_core_eligible"))
    cores = ("tensor_core_self_fraction", "tensor_core_unknown_self_fraction")
    shown = summed.select(
        *(*keys, "calls", "device_self_ns", "device_total_ns", "host_self_ns", "host_total_ns"),
        *(*cores, "is_tensor_core_eligible", "^device_self_busy_ns$"),
    )
    return _known(_with_bounds(shown, *cores))


def times_of_modules(result: Modules) -> pl.DataFrame:
    """Return the time of each module, summed over the ranks, each behind the module around it."""
    device = ("device_total_ns", "device_self_ns", "backward_device_total_ns")
    host = ("host_total_ns", "host_self_ns", "backward_host_total_ns")
    placed = pl.lit("· ").repeat_by("depth").list.join("") + pl.col("module")
    return _known(
        summed_modules(result.per_module).select(placed.alias("module"), "calls", "operator_calls", *device, *host)
    )


def _known(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out the columns of which nothing is known."""
    return table.select(column for column in table if len(table) == 0 or column.null_count() < len(table))


def memory_per_device(result: MemoryTimeline) -> pl.DataFrame:
    """Return the peak of each device, and what was allocated before and after."""
    sizes = ("peak_bytes", "first_bytes", "last_bytes", "reserved_peak_bytes", "capacity_bytes")
    return _known(result.per_device.select("rank", "device_type", "device_id", *sizes, "event_count"))


def memory_at_peak(result: MemoryTimeline) -> pl.DataFrame:
    """Return what was alive at the peak of each device, by operator."""
    devices = ("rank", "device_type", "device_id")
    return result.at_peak.select("operator", "top_operator", "bytes", "fraction", "block_count", *devices)


def memory_of_operators(result: OperatorMemory) -> pl.DataFrame:
    """Return what each operator allocates and frees on each type of device, summed over the ranks."""
    own = ("self_allocated_bytes", "self_unreleased_bytes", "self_increase_bytes", "self_allocation_count")
    total = ("total_allocated_bytes", "total_increase_bytes")
    return _known(summed_operator_memory(result.per_operator).select("operator", "device_type", *own, *total, "calls"))


def memory_blocks(result: OperatorMemory) -> pl.DataFrame:
    """Return the life of each block of memory, in time since the first one."""
    first_ns = pl.min_horizontal(pl.col("allocated_ns").min(), pl.col("released_ns").min())
    moments = [(pl.col(f"{name}_ns") - first_ns).alias(f"{name}_after_ns") for name in ("allocated", "released")]
    devices = ("rank", "device_type", "device_id")
    return result.blocks.select("operator", "caller", "block_bytes", *moments, "lifetime_ns", *devices)


def compared_by_name(result: TraceComparison) -> pl.DataFrame:
    """Return what changed between two traces, the largest difference of time first."""
    columns = ("kind", "change", "difference_ns", "control_ns", "test_ns", "control_count", "test_count")
    return result.per_name.select(pl.col("name").alias("event"), *columns, "control_mean_ns", "test_mean_ns")


def compared_by_size(result: TraceComparison) -> pl.DataFrame:
    """Return how much each of two traces holds."""
    return result.sides


def compared_tree(result: OperatorComparison) -> pl.DataFrame:
    """Return the call paths that changed most, each behind what is around it, of a mean step."""
    tree = result.tree
    parents, shown = tree["parent"].to_list(), set[int]()
    for node in tree.sort(pl.col("difference_ns").abs(), descending=True, maintain_order=True)["node"].head(
        _PATHS_SHOWN
    ):
        while node >= 0 and node not in shown:
            shown.add(node)
            node = parents[node]  # noqa: PLW2901 -- climbs to the phase
    placed = pl.lit("· ").repeat_by("depth").list.join("") + pl.col("name")
    columns = ("kind", "change", "difference_ns", "control_ns", "test_ns", "control_calls", "test_calls", "measure")
    return tree[sorted(shown)].select(placed.alias("path"), *columns)


def compared_operators(result: OperatorComparison) -> pl.DataFrame:
    """Return what changed in each operator, without operators inside it, of a mean step."""
    columns = ("operator", "change", "difference_ns", "control_ns", "test_ns", "control_calls", "test_calls")
    has_changed = (pl.col("difference_ns") != 0) | (pl.col("change") != "unchanged")
    return result.per_operator.filter(has_changed).select(columns)


def compared_runs(result: OperatorComparison) -> pl.DataFrame:
    """Return how much each of two aligned traces holds."""
    times = [pl.col(f"{where}_total_ns").alias(f"{where}_ns") for where in ("host", "device")]
    return result.sides.select("side", "rank_count", "step_count", *times)


OPERATOR_COMPARISON_VIEWS = (
    View("The two traces", compared_runs, "host_ns"),
    View("Call paths that changed most; of a mean step, where both have steps", compared_tree, "difference_ns"),
    View("Operators that changed, without those inside them", compared_operators, "difference_ns"),
)
"""The tables of `compare_operators`."""

COMPARISON_VIEWS = (
    View("The two traces", compared_by_size, "event_count"),
    View("Names, over all ranks; mean is of one call", compared_by_name, "difference_ns"),
)
"""The tables of `compare_traces`."""


def annotations_on_gpu(result: UserAnnotations) -> pl.DataFrame:
    """Return the time of each annotation on the GPUs, over all ranks, the longest first."""
    columns = ["inclusive_ns", "exclusive_ns", "kernel_ns", "kernel_count", "call_count"]
    return _annotations(result, "gpu", columns)


def annotations_on_cpu(result: UserAnnotations) -> pl.DataFrame:
    """Return the time of each annotation on the host, over all ranks, the longest first."""
    return _annotations(result, "cpu", ["inclusive_ns", "exclusive_ns", "call_count"])


def kernels_of_annotations(result: UserAnnotations) -> pl.DataFrame:
    """Return the kernels under each annotation, over all ranks, the longest first."""
    sums = result.per_kernel.group_by("annotation", "name").agg(pl.col("sum_ns", "call_count").sum())
    return sums.sort(["sum_ns", "annotation", "name"], descending=[True, False, False])


def lateness_per_rank(result: Stragglers) -> pl.DataFrame:
    """Return how late each rank arrives at its collectives, and who waits for it."""
    columns = ("mean_lateness_ns", "last_count", "collective_count", "wait_ns", "caused_wait_ns", "caused_fraction")
    last = pl.when("is_straggler").then(pl.lit("last")).otherwise(pl.lit(""))
    is_late = pl.when("is_cause").then(pl.lit("late")).otherwise(last).alias("is_straggler")
    return result.per_rank.select("rank", is_late, *columns)


def lateness_per_step(result: Stragglers) -> pl.DataFrame:
    """Return how late each rank arrives at the collectives of each step."""
    return result.per_step.select("step", "rank", "mean_lateness_ns", "last_count", "collective_count", "wait_ns")


def mean_steps_of_ranks(result: Distributed) -> pl.DataFrame:
    """Return how the mean step of each rank divides, and its time in collectives."""
    return _divided_steps(result.per_rank, ["rank", "step_count"])


def steps_of_ranks(result: Distributed) -> pl.DataFrame:
    """Return how each step of each rank divides, and its time in collectives."""
    return _divided_steps(result.per_step, ["rank", "step"])


def _divided_steps(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    parts = ("computation_ns", "overlap_ns", "communication_ns", "other_ns")
    waiting = ("transfer_ns", "synchronising_ns", "unmatched_ns")
    renamed = {"overlap_ns": "both_ns", "communication_ns": "communicating_ns", "other_ns": "neither_ns"}
    return table.select(*keys, "step_ns", *parts, *waiting).rename(renamed)


def collectives_of_ranks(result: Distributed) -> pl.DataFrame:
    """Return the calls, sizes and times of each collective of each rank."""
    chosen = ("call_count", "bytes", "mean_bytes", "latency_ns", "mean_latency_ns", "transfer_ns", "mean_transfer_ns")
    return result.per_operation.select("rank", "collective", "dtype", *chosen)


def devices_of_ranks(result: Distributed) -> pl.DataFrame:
    """Return which devices the ranks use, and what these are."""
    process = pl.col("process").cast(pl.String)
    return result.per_device.with_columns(process).rename({"device_name": "model"})


def counters_by_operator(result: CuptiCounters) -> pl.DataFrame:
    """Return the floating-point operations below each outermost operator, over all ranks."""
    sums = result.per_kernel.group_by("top_level_op").agg(_whole_flop().sum(), pl.len().alias("kernel_count"))
    return sums.sort(["flop", "top_level_op"], descending=[True, False])


def counted_kernels(result: CuptiCounters) -> pl.DataFrame:
    """Return each measured kernel with its operators."""
    return result.per_kernel.select("rank", "name", _whole_flop(), "top_level_op", "bottom_level_op")


def path_per_rank(result: CriticalPath) -> pl.DataFrame:
    """Return how long the critical path of each rank is, and which shares its classes have, those that occur."""
    occurring = set(result.per_class.filter(pl.col("duration_ns") > 0).get_column("path_class"))
    shares = [_class_share(each.name.lower()) for each in _PATH_CLASSES if each.name.lower() in occurring]
    per_rank = result.per_class.group_by("rank", maintain_order=True).agg(shares)
    return result.per_rank.select("rank", "window", "duration_ns").join(per_rank, on="rank", maintain_order="left")


def path_by_name(result: CriticalPath) -> pl.DataFrame:
    """Return what the critical paths of all ranks consist of by name, the longest first."""
    total = max(1, result.per_rank.get_column("duration_ns").sum())
    sums = result.per_name.group_by("name", "path_class").agg(pl.col("duration_ns", "segment_count").sum())
    share = (pl.col("duration_ns") / total).alias("fraction")
    columns = (pl.col("name").alias("event"), pl.col("path_class").str.replace_all("_", " "))
    longest = sums.sort(["duration_ns", "name", "path_class"], descending=[True, False, False])
    return longest.select(*columns, "duration_ns", share, "segment_count")


def path_by_event(result: CriticalPath) -> pl.DataFrame:
    """Return the longest parts of the critical paths that lie in events, the longest first."""
    inside = result.path.drop_nulls("event_index").sort("duration_ns", descending=True, maintain_order=True)
    return inside.select(
        "rank",
        "event_index",
        pl.col("name").alias("event"),
        pl.col("path_class").str.replace_all("_", " "),
        "duration_ns",
    )


def _class_share(name: str) -> pl.Expr:
    return pl.col("fraction").filter(pl.col("path_class") == name).first().alias(f"{name}_path_fraction")


def mean_step(result: StepTime) -> pl.DataFrame:
    """Return the mean time and share of each category in the steps of each rank."""
    return result.mean


def times_of_steps(result: StepTime) -> pl.DataFrame:
    """Return every step with its times."""
    return result.per_step.drop("start_ns", "end_ns")


def use_per_device(result: GpuSummary) -> pl.DataFrame:
    """Return what each device is and how well it is used; what is known, and what is not, only where that is a part."""
    table = _without_wholly_known(result.per_device.drop("start_ns", "end_ns", "is_estimated"))
    return _one_device_hidden(_with_bounds(table, "tensor_core_fraction", "tensor_core_unknown_fraction"))


def _with_bounds(table: pl.DataFrame, share: str, unknown: str) -> pl.DataFrame:
    """Say that a share is one at least where a part is unknown; leave the unknown part out where there is none."""
    if table.get_column(unknown).sum():
        return table.rename({share: f"{share.removesuffix('_fraction')}_least_fraction"})
    return table.drop(unknown)


def kernels_by_name(result: Kernels) -> pl.DataFrame:
    """Return the kernels over all ranks, the longest first."""
    columns = ("fraction", "call_count", "sum_ns", "mean_ns", "min_ns", "max_ns")
    table = _with_means(joined_over_ranks(result)).select("name", _cores(), *columns, *_MEANS)
    return _without_wholly_known(table)


def kernels_by_launch(result: Kernels) -> pl.DataFrame:
    """Return the kernels of each rank by operator and launch shape, the longest first; unknown operators are blank."""
    shape = ("grid", "block", "registers_per_thread", "shared_memory_bytes")
    eligible = pl.when("is_operator_eligible").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("is_operator_eligible")
    columns = ("rank", "name", "operator", "call_count", "sum_ns", _cores(), eligible, *_MEANS, *shape, "mean_ns")
    return _without_wholly_known(_with_means(result.by_launch).select(columns))


def _cores() -> pl.Expr:
    uses = pl.col("uses_tensor_cores")
    return (
        pl.when(uses)
        .then(pl.lit("yes"))
        .when(~uses)
        .then(pl.lit("no"))
        .otherwise(pl.lit("unknown"))
        .alias(uses.meta.output_name())
    )


def _with_means(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(
        pl.col("mean_blocks_per_sm").round(2), pl.col("mean_occupancy").alias("mean_occupancy_fraction")
    )


def _without_wholly_known(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out shares of what is known where all of it is, or nothing."""
    shares = [name for name in table.columns if name.endswith("_known_fraction")]
    return table.drop(name for name in shares if table.get_column(name).is_in([0.0, 1.0]).all())


_MEANS = (
    "mean_blocks_per_sm",
    "blocks_per_sm_known_fraction",
    "mean_occupancy_fraction",
    "occupancy_known_fraction",
)


def _whole_flop() -> pl.Expr:
    return pl.col("flop").round().cast(pl.Int64)


def _annotations(result: UserAnnotations, side: str, columns: list[str]) -> pl.DataFrame:
    chosen = result.per_annotation.filter(pl.col("side") == side)
    sums = chosen.group_by(pl.col("name").alias("annotation")).agg(pl.col(columns).sum())
    return sums.sort(["inclusive_ns", "annotation"], descending=[True, False])


def queues_per_stream(result: QueueLength) -> pl.DataFrame:
    """Return how much work waited before each stream, and for how much of the time."""
    rounded = result.by_time.with_columns(pl.col("mean_length").round(2))
    columns = ("waiting_fraction", "mean_length", "median_length", "max_length", "full_ns", "work_count")
    return _one_device_hidden(rounded.select("rank", "device", "stream", *columns, "unknown_launch_count"))


def bandwidth_per_kind(result: MemoryBandwidth) -> pl.DataFrame:
    """Return how much each device moved in each direction, and how fast."""
    bandwidths = ("mean_bytes_per_s", "median_bytes_per_s", "max_bytes_per_s")
    columns = ("rank", "device", pl.col("name").alias("copy"), "bytes", "copy_count", "busy_ns", *bandwidths)
    return _one_device_hidden(result.by_time.select(*columns))


def launches_per_rank(result: LaunchStatistics) -> pl.DataFrame:
    """Return what launching costs each rank."""
    return result.per_rank.select(
        "rank", "call_count", "call_sum_ns", "call_mean_ns", *_LAUNCH_COUNTS, "delay_median_ns", "delay_max_ns"
    )


def launches_per_call(result: LaunchStatistics) -> pl.DataFrame:
    """Return what launching with each function costs, over all ranks, the most costly first."""
    columns = ("call_count", "kernel_count", "call_sum_ns", *_LAUNCH_COUNTS)
    sums = result.per_call.group_by("call").agg(pl.col(columns).sum(), pl.col("delay_max_ns").max())
    return sums.sort(["call_sum_ns", "call"], descending=[True, False])


def frequent_sequences(result: KernelSequences) -> pl.DataFrame:
    """Return the sequences over all ranks, the most frequent first; a cell of a page shows their first kernels."""
    table = sequences_over_ranks(result)
    kernels = table.get_column("pattern").map_elements(_kernels_of_a_pattern, pl.String).alias(_SEQUENCE_COLUMN)
    return table.select("operator", kernels, "count", "kernel_count", "kernel_ns", "operator_ns")


def kernels_of_operators(result: OperatorKernels) -> pl.DataFrame:
    """Return the device time that each operator causes, over all ranks, the longest first."""
    columns = ("operator", "module", "kernel_ns", "forward_kernel_ns", "backward_kernel_ns")
    table = operators_over_ranks(result).select(columns)
    return table if table.get_column("module").count() else table.drop("module")


def sequences_of_operators(result: OperatorKernels) -> pl.DataFrame:
    """Return the kernels of each operator on each rank, the most frequent first."""
    table = result.per_sequence
    delays = ("launch_delay_mean_ns", "start_delay_mean_ns")
    return table.select("rank", "operator", pl.col("kernels").alias(_SEQUENCE_COLUMN), "count", "kernel_ns", *delays)


def _kernels_of_a_pattern(pattern: str) -> str:
    _, _, kernels = pattern.partition(PATTERN_SEPARATOR)
    return kernels.replace(PATTERN_SEPARATOR, SEQUENCE_SEPARATOR)


def _first_kernels(sequences: Iterable[str]) -> dict[str, str]:
    """Shorten sequences to the short names of their first kernels, and count the others."""
    kernels = {sequence: sequence.split(SEQUENCE_SEPARATOR) for sequence in sequences}
    short = short_names((name for names in kernels.values() for name in names[:_KERNELS_SHOWN]), _KERNEL_LENGTH)
    return {sequence: _sequence_text(names, short) for sequence, names in kernels.items()}


def _sequence_text(names: Sequence[str], short: Mapping[str, str]) -> str:
    shown = SEQUENCE_SEPARATOR.join(short[name] for name in names[:_KERNELS_SHOWN])
    more = len(names) - _KERNELS_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def _by_category(table: pl.DataFrame) -> pl.DataFrame:
    """Put the categories side by side."""
    keys = [name for name in ("rank", "device", "stream") if name in table.columns]
    shares = [_share_of(category) for category in ("host_wait", "kernel_wait", "other")]
    totals = [pl.col("idle_ns", "gap_count").sum()]
    return table.group_by(keys, maintain_order=True).agg(*totals, *shares)


def _share_of(category: str) -> pl.Expr:
    return pl.col("fraction").filter(pl.col("category") == category).first().alias(f"{category}_fraction")


def _most_telling(frame: pl.DataFrame, limit: int, telling: str) -> pl.DataFrame:
    """Keep the order of the frame among the rows kept; of differences, the largest either way."""
    rank = pl.col(telling).fill_null(0).abs().rank("ordinal", descending=True)
    return frame.filter(rank <= limit)


def _one_device_hidden(table: pl.DataFrame) -> pl.DataFrame:
    """Leave the device out where no rank has more than one."""
    devices = table.group_by("rank").agg(pl.col("device").n_unique()).get_column("device").max()
    return table if devices is not None and devices != 1 else table.drop("device")


def _text_cell(column: str, value: str, short: Mapping[str, str]) -> Cell:
    whole = printable(value)
    if column == _SEQUENCE_COLUMN:
        shown = short.get(value) or _first_kernels([value])[value]
    else:
        shown = short.get(value) or short_name(value) if _is_short(column, value) else whole
    shown = printable(shown)
    return Cell(shown, is_number=False, whole=None if shown == whole else whole)


def _is_short(column: str, value: str) -> bool:
    """Whether the table shows a short name: of kernels, and of signatures among events of any kind."""
    return column == "name" or (column == "event" and (value.startswith(("void ", "_Z")) or value.endswith(")")))
