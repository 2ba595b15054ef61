"""Finds when a rank computes, copies, communicates, loads data or runs operators, for the step time breakdown."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import (
    Int64Array,
    Intervals,
    concatenated,
    covered_before,
    difference,
    intervals_of,
    union,
    union_of,
)
from holotrace.enrich.collectives.collectives import COLLECTIVE_CALL, HOST_COLLECTIVE
from holotrace.enrich.device.device_work import device_rows, device_work
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.host_names import NodeClass, classes_by_name, is_counted_name
from holotrace.schema import LAUNCH_KINDS, EventKind, KernelKind
from holotrace.store.derived import derived_under_rules
from holotrace.store.trace import RankTrace

ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu")
"""The roles in order of priority: if several apply at once, the time is assigned to the first one."""

_WAITS = r"^_?c10d_functional::wait_tensor$"
"""The operator in which the host waits for the result of a functional collective:
https://github.com/pytorch/pytorch/blob/main/torch/distributed/_functional_collectives.py (`wait_tensor`).
"""

_HOST_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
_HOST_COLUMNS = ("name", "start_ns", "end_ns", "track_id")


@derived_under_rules
def roles(rank_trace: RankTrace) -> dict[str, Intervals]:
    """Return the intervals in which each of the `ROLES` applies on any thread, stream or device, sorted and disjoint.

    kernel          kernels that compute
    memcpy, memset  copies and memsets on the devices
    communication   kernels that communicate, and collectives that the host performs (gloo)
    runtime         runtime and driver calls
    dataloader      waits of the main process for its data loader
    cpu             operators, except while they wait for a functional collective
    """
    events = role_events(rank_trace)
    known = {role: union(*concatenated([intervals_of(table) for table in tables])) for role, tables in events.items()}
    return {**known, "cpu": _without_waits(rank_trace, events["cpu"][0], known["cpu"])}


def _without_waits(rank_trace: RankTrace, operators: pl.DataFrame, known: Intervals) -> Intervals:
    """Return the intervals in which a thread runs an operator and is not waiting for a functional collective."""
    names = names_matching(rank_trace.unselected, _WAITS)
    waits = operators.filter(pl.col("name").is_in(names.implode()))
    if waits.is_empty():
        return known
    of_threads = [
        difference(union_of(of_thread), union_of(waits.filter(pl.col("track_id") == track)))
        for (track,), of_thread in operators.group_by("track_id", maintain_order=True)
    ]
    return union(*concatenated(of_threads))


def times_within(
    intervals: Mapping[str, Intervals], within: pl.DataFrame, *, restarts: bool = False
) -> dict[str, Int64Array]:
    """Return the time of each role, and the remaining time (`other`), in each row of `within` (start_ns, end_ns).

    While several roles apply at once, the time is assigned only to the role that comes first in `ROLES`.

    Args:
        intervals: the intervals of the `ROLES`.
        within: the steps.
        restarts: whether to count some time twice, as the TensorBoard plugin does by mistake: if the earlier roles
            together fill every step, no time is left for the next role, but the plugin nevertheless counts that role's
            whole time.
    """
    starts, ends = within["start_ns"].to_numpy(), within["end_ns"].to_numpy()
    taken: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))
    before = np.zeros(len(within), np.int64)
    times = {}
    for role in ROLES:
        if restarts and (before == ends - starts).all():
            taken, before = (starts[:0], ends[:0]), np.zeros_like(before)
        taken = union(*concatenated([taken, intervals[role]]))
        covered = covered_before(taken, ends) - covered_before(taken, starts)
        times[role], before = covered - before, covered
    return {**times, "other": ends - starts - before}


def role_events(rank_trace: RankTrace) -> dict[str, list[pl.DataFrame]]:
    """Return the events of each of the `ROLES`; device and host events are in separate tables.

    Both tables have name, start_ns and end_ns; the table of host events also has track_id.
    """
    work = device_work(rank_trace).select("event_index", "kernel_kind", "name", "start_ns", "end_ns")
    memsets = device_rows(rank_trace).filter(pl.col("kind") == EventKind.GPU_MEMSET)["event_index"]
    kind, is_memset = pl.col("kernel_kind"), pl.col("event_index").is_in(memsets.implode())
    is_memory, is_communication = kind == KernelKind.MEMORY, kind == KernelKind.COMMUNICATION
    host = event_ranges(rank_trace, _HOST_KINDS, [*_HOST_COLUMNS, "kind"])
    is_collective = rank_trace.unselected.strings.str.contains(HOST_COLLECTIVE).gather(host["name"])
    said = host.with_columns(host_class(rank_trace, host["name"])).filter(~is_collective)
    is_loader, says_nothing = pl.col("class") == NodeClass.DATALOADER, pl.col("class") == NodeClass.OPERATOR
    is_work = says_nothing & ~_is_region(rank_trace, said["name"]) & (pl.col("kind") == EventKind.CPU_OP)
    return {
        "kernel": [work.filter(~is_memory & ~is_communication)],
        "memcpy": [work.filter(is_memory & ~is_memset)],
        "memset": [work.filter(is_memory & is_memset)],
        "communication": [work.filter(is_communication), host.filter(is_collective)],
        "runtime": [event_ranges(rank_trace, LAUNCH_KINDS, _HOST_COLUMNS)],
        "dataloader": [said.filter(is_loader)],
        "cpu": [said.filter(is_work)],
    }


def _is_region(rank_trace: RankTrace, names: pl.Series) -> pl.Series:
    """Return whether each operator is only an annotation; files from before 2022 record annotations as operators."""
    strings = rank_trace.unselected.strings
    return pl.Series(~is_counted_name(names, strings)) | strings.str.contains(COLLECTIVE_CALL).gather(names)


def host_class(rank_trace: RankTrace, names: pl.Series) -> pl.Series:
    """Return the NodeClass that each name indicates, or OPERATOR if it indicates no other class."""
    nothing = pl.repeat(int(NodeClass.OPERATOR), len(names), dtype=pl.UInt8, eager=True).to_numpy()
    return pl.Series("class", classes_by_name(names, nothing, rank_trace.unselected.strings))


def intervals_where(events: pl.DataFrame, chosen: pl.Expr) -> Intervals:
    """Return the intervals of the events for which `chosen` is true."""
    return intervals_of(events.filter(chosen))
