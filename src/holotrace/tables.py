"""Results as tables for people: which rows and columns, under which headings, in which units.

The terminal, the report and the pages print the same `View`s of a result, so they cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import polars as pl

from holotrace.drawing.names import printable, short_name, short_names
from holotrace.enrich.critical_path.event_graph import PathClass
from holotrace.enrich.kernels.kernel_sequences import SEQUENCE_SEPARATOR
from holotrace.units import bandwidth_text, duration_text, percent_text, size_text

_HEADINGS = {
    "window_ns": "from first to last work",
    "computation_fraction": "computing",
    "non_computation_fraction": "other work only",
    "idle_fraction": "idle",
    "idle_ns": "idle for",
    "computation_ns": "computing for",
    "communication_ns": "communication",
    "overlap_ns": "hidden",
    "exposed_ns": "exposed",
    "overlap_fraction": "hidden share",
    "duration_ns": "time",
    "fraction": "share",
    "kernel_kind": "kind",
    "name": "kernel",
    "call_count": "calls",
    "gap_count": "gaps",
    "total_ns": "total",
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
    "total_call_ns": "calls take",
    "mean_call_ns": "mean call",
    "median_launch_delay_ns": "median delay",
    "max_launch_delay_ns": "longest delay",
    "short_kernel_count": "kernel shorter than call",
    "slow_call_count": "slow calls",
    "late_start_count": "late starts",
    "unknown_launch_count": "launch unknown",
    "operator_ns": "time on the host",
    "forward_kernel_ns": "forward",
    "backward_kernel_ns": "backward",
    "mean_operator_to_launch_ns": "operator to launch",
    "mean_launch_to_kernel_ns": "launch to kernel",
    "waiting_fraction": "work waits",
    "mean_length": "mean length",
    "median_length": "median",
    "max_length": "longest",
    "full_ns": "full for",
    "work_count": "work",
    "copy_count": "copies",
    "busy_ns": "copying for",
    "mean_bytes_per_s": "mean bandwidth",
    "median_bytes_per_s": "median bandwidth",
    "max_bytes_per_s": "highest bandwidth",
    "self_ns": "self",
    "kernel_count": "kernels",
    "kernel_ns": "kernel time",
    "is_straggler": "late",
    "mean_skew_ns": "mean skew",
    "last_count": "came last",
    "collective_count": "collectives",
    "step_ns": "step",
    "mean_step_ns": "mean step",
    "computation_only_ns": "only computing",
    "mean_computation_only_ns": "only computing",
    "mean_overlap_ns": "hidden",
    "mean_exposed_ns": "exposed",
    "neither_ns": "neither",
    "mean_neither_ns": "neither",
    "transfer_ns": "data transfer",
    "synchronising_ns": "waiting",
    "mean_synchronising_ns": "waiting",
    "unmatched_ns": "not known",
    "mean_unmatched_ns": "not known",
    "collective_ns": "time in collectives",
    "mean_collective_ns": "mean time",
    "mean_transfer_ns": "mean transfer",
    "mean_bytes": "mean size",
    "memory_bytes": "memory",
    "wait_ns": "waits",
    "caused_wait_ns": "others wait for it",
    "caused_fraction": "of all waiting",
    "flop": "FLOP",
    "top_operator": "outermost operator",
    "difference_ns": "difference",
    "device_type": "device type",
    "peak_bytes": "peak",
    "first_bytes": "at the beginning",
    "last_bytes": "at the end",
    "peak_reserved_bytes": "reserved at most",
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
    "control_event_count": "control calls",
    "control_call_count": "control calls",
    "host_ns": "on the host",
    "device_ns": "on devices",
    "test_call_count": "test calls",
    "path": "phase · module · operator · kernel",
    "test_event_count": "test calls",
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
    "operator_call_count": "operators",
    "backward_device_total_ns": "device, backward",
    "backward_host_total_ns": "host, backward",
    "kernel_part_ns": "kernels",
    "memcpy_part_ns": "copies",
    "memset_part_ns": "memsets",
    "communication_part_ns": "communication",
    "runtime_part_ns": "runtime",
    "dataloader_part_ns": "data loader",
    "cpu_part_ns": "operators",
    "other_part_ns": "other",
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
}


PATH_CLASSES = {
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


_HEADINGS |= {f"{each.name.lower()}_path_fraction": text for each, text in PATH_CLASSES.items()}


_KERNELS_SHOWN = 3


_KERNEL_LENGTH = 40


SEQUENCE_COLUMN = "first kernels"


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
    sequences = frame.get_column(SEQUENCE_COLUMN).unique() if SEQUENCE_COLUMN in frame.columns else ()
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


def known_columns(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out the columns of which nothing is known."""
    return table.select(column for column in table if len(table) == 0 or column.null_count() < len(table))


def with_bounds(table: pl.DataFrame, share: str, unknown: str) -> pl.DataFrame:
    """Say that a share is one at least where a part is unknown; leave the unknown part out where there is none."""
    if table.get_column(unknown).sum():
        return table.rename({share: f"{share.removesuffix('_fraction')}_least_fraction"})
    return table.drop(unknown)


def without_wholly_known(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out shares of what is known where all of it is, or nothing."""
    shares = [name for name in table.columns if name.endswith("_known_fraction")]
    return table.drop(name for name in shares if table.get_column(name).is_in([0.0, 1.0]).all())


def _first_kernels(sequences: Iterable[str]) -> dict[str, str]:
    """Shorten sequences to the short names of their first kernels, and count the others."""
    kernels = {sequence: sequence.split(SEQUENCE_SEPARATOR) for sequence in sequences}
    short = short_names((name for names in kernels.values() for name in names[:_KERNELS_SHOWN]), _KERNEL_LENGTH)
    return {sequence: _sequence_text(names, short) for sequence, names in kernels.items()}


def _sequence_text(names: Sequence[str], short: Mapping[str, str]) -> str:
    shown = SEQUENCE_SEPARATOR.join(short[name] for name in names[:_KERNELS_SHOWN])
    more = len(names) - _KERNELS_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def _most_telling(frame: pl.DataFrame, limit: int, telling: str) -> pl.DataFrame:
    """Keep the order of the frame among the rows kept; of differences, the largest either way."""
    rank = pl.col(telling).fill_null(0).abs().rank("ordinal", descending=True)
    return frame.filter(rank <= limit)


def one_device_hidden(table: pl.DataFrame) -> pl.DataFrame:
    """Leave the device out where no rank has more than one."""
    devices = table.group_by("rank").agg(pl.col("device").n_unique()).get_column("device").max()
    return table if devices is not None and devices != 1 else table.drop("device")


def _text_cell(column: str, value: str, short: Mapping[str, str]) -> Cell:
    whole = printable(value)
    if column == SEQUENCE_COLUMN:
        shown = short.get(value) or _first_kernels([value])[value]
    else:
        shown = short.get(value) or short_name(value) if _is_short(column, value) else whole
    shown = printable(shown)
    return Cell(shown, is_number=False, whole=None if shown == whole else whole)


def _is_short(column: str, value: str) -> bool:
    """Whether the table shows a short name: of kernels, and of signatures among events of any kind."""
    return column == "name" or (column == "event" and (value.startswith(("void ", "_Z")) or value.endswith(")")))
