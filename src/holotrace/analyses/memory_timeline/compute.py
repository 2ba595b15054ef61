"""How much memory was allocated, and which operators allocated the memory in use at the peak?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above, itself_or_above
from holotrace.enrich.device.devices import described_devices
from holotrace.enrich.events.event_rows import gathered
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.enrich.job.findings import joined_findings
from holotrace.enrich.memory.memory_events import (
    BEFORE_RECORDING,
    DEVICE_KEYS,
    OUTSIDE_OPERATORS,
    memory_events,
    nodes_of_memory_events,
)
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

_IS_HOST = pl.col("device_type").is_in(["cpu", "?"])
_KEYS = {"rank": pl.Int32, "device_type": pl.String, "device": pl.Int32}
_SERIES = {
    **_KEYS,
    **dict.fromkeys(("time_ns", "change_bytes", "allocated_bytes", "reserved_bytes"), pl.Int64),
}
_PER_DEVICE = {
    **_KEYS,
    **dict.fromkeys(
        (
            "event_count",
            "allocation_count",
            "first_bytes",
            "peak_bytes",
            "peak_ns",
            "last_bytes",
            "peak_reserved_bytes",
            "capacity_bytes",
        ),
        pl.Int64,
    ),
}
_AT_PEAK = {
    **_KEYS,
    "operator": pl.String,
    "top_operator": pl.String,
    "block_count": pl.Int64,
    "bytes": pl.Int64,
    "fraction": pl.Float64,
}


@dataclass(frozen=True, eq=False, repr=False)
class MemoryTimeline(Result):
    """The memory of the devices over time, from the profiler's `[memory]` events.

    per_device  one row per device with memory events, sorted by rank, device_type, device:

        rank                 int32
        device_type          str    as PyTorch calls it: cpu, cuda (also for HIP), xpu …
        device               int32  -1 for the CPU
        event_count          int64  allocations and frees
        allocation_count     int64
        first_bytes          int64  bytes in use before the first event
        peak_bytes           int64  largest allocated_bytes after an event
        peak_ns              int64  when peak_bytes was first reached, ns since the Unix epoch
        last_bytes           int64  bytes in use after the last event
        peak_reserved_bytes  int64  the most memory that the allocator reserved; null if not recorded
        capacity_bytes       int64  memory size of the device; null if not recorded

    at_peak     memory in use at the peak, by the operator that allocated it, the largest first:

        rank, device_type, device   as above
        operator      str      innermost operator around the allocation, `(outside operators)`, or
                               `(before the recording)` for memory allocated earlier
        top_operator  str      outermost operator around the allocation; null if there is none
        block_count   int64    null for memory from before the recording
        bytes         int64
        fraction      float64  0..1, share of peak_bytes; null if the peak is 0

    series      one row per event, sorted by rank, device_type, device, time:

        rank, device_type, device   as above
        time_ns          int64  ns since the Unix epoch
        change_bytes     int64  allocated bytes; negative if memory was freed
        allocated_bytes  int64  bytes in use after the event
        reserved_bytes   int64  bytes reserved after the event; null if not recorded

    findings    ranks without memory events, and data missing from the events

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1}
    >>> args = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Addr": 16, "Total Allocated": 512}
    >>> trace = TraceBuilder().event(ts=3, args=args, **place).build()
    >>> holotrace.memory_timeline(trace).answer
    'Memory peaks at 512 B on rank 0 (cuda); (outside operators) allocated the most, 512 B.'
    """

    per_device: pl.DataFrame
    at_peak: pl.DataFrame
    series: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_device: pl.DataFrame
    at_peak: pl.DataFrame
    series: pl.DataFrame
    findings: tuple[str, ...]


def memory_timeline(trace: Trace, *, executor: Executor = IN_PROCESS) -> MemoryTimeline:
    """Follow the allocated memory of each device, and list the operators that allocated the memory in use at the peak.

    Each event contains the total amount of memory that is in use right after it. Files from before 2022 lack this
    total; for them, it is computed as the sum of all changes so far, plus the smallest initial amount that keeps every
    total at 0 or above. A block is in use from its allocation until its address is freed.

    Args:
        trace: the job, recorded with `profile_memory=True`; otherwise, all tables are empty.
        executor: processes each rank.

    Source: docs/reference/analyses/memory_timeline.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1}
    >>> args = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Addr": 16, "Total Allocated": 512}
    >>> trace = TraceBuilder().event(ts=3, args=args, **place).build()
    >>> holotrace.memory_timeline(trace).per_device.select("rank", "device", "peak_bytes").rows()
    [(0, 0, 512)]
    """
    return plan().run(trace, executor)


def plan() -> Plan[_Partial, MemoryTimeline]:
    """Return the two functions of `memory_timeline`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(_one_rank, _combine)


def _combine(answers: dict[int, _Partial]) -> MemoryTimeline:
    partials = answers.values()
    return MemoryTimeline(
        pl.concat([partial.per_device for partial in partials]),
        pl.concat([partial.at_peak for partial in partials]),
        pl.concat([partial.series for partial in partials]),
        joined_findings({rank: partial.findings for rank, partial in answers.items()}),
    )


def _one_rank(rank_trace: RankTrace) -> _Partial:
    events = memory_events(rank_trace)
    if events.is_empty():
        finding = "no memory events were recorded; record with profile_memory=True"
        per_device, at_peak, series = (pl.DataFrame(schema=schema) for schema in (_PER_DEVICE, _AT_PEAK, _SERIES))
        return _Partial(per_device, at_peak, series, (finding,))
    devices = [
        part.with_row_index("position") for part in _with_operators(rank_trace, events).partition_by(DEVICE_KEYS)
    ]
    per_device = pl.concat([_device_row(device) for device in devices])
    return _Partial(
        _typed(_with_capacity(rank_trace, per_device), rank_trace.rank, _PER_DEVICE),
        _typed(pl.concat([_at_peak(device) for device in devices]), rank_trace.rank, _AT_PEAK),
        _typed(events, rank_trace.rank, _SERIES),
        _findings(events),
    )


def _typed(table: pl.DataFrame, rank: int, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    with_rank = table.with_columns(pl.lit(rank).alias("rank"))
    return with_rank.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def _with_operators(rank_trace: RankTrace, events: pl.DataFrame) -> pl.DataFrame:
    """Add the names of the innermost and the outermost operator around each event; null if there is none."""
    nodes = host_nodes(rank_trace)
    parent, is_counted = nodes["parent"].to_numpy(), nodes["is_counted"].to_numpy()
    inner = itself_or_above(parent, is_counted, nodes_of_memory_events(rank_trace))
    outer = furthest_above(parent, is_counted, inner)
    columns = {"operator": inner, "top_operator": np.where(outer == NO_PARENT, inner, outer)}
    return events.with_columns(
        rank_trace.texts(gathered(nodes["name"], rows)).alias(label) for label, rows in columns.items()
    )


def _device_row(device: pl.DataFrame) -> pl.DataFrame:
    allocated = pl.col("allocated_bytes")
    return device.select(
        pl.col(DEVICE_KEYS).first(),
        pl.len().alias("event_count"),
        (pl.col("change_bytes") > 0).sum().alias("allocation_count"),
        (allocated.first() - pl.col("change_bytes").first()).alias("first_bytes"),
        allocated.max().alias("peak_bytes"),
        pl.col("time_ns").get(allocated.arg_max()).alias("peak_ns"),
        allocated.last().alias("last_bytes"),
        pl.col("reserved_bytes").max().alias("peak_reserved_bytes"),
    )


def _with_capacity(rank_trace: RankTrace, per_device: pl.DataFrame) -> pl.DataFrame:
    """Add the memory size of each device; null for the host, because files do not record its memory size."""
    numbers = per_device.filter(~_IS_HOST)["device"].unique().to_list()
    capacity = described_devices(rank_trace, numbers).select("device", pl.col("memory_bytes").alias("capacity_bytes"))
    joined = per_device.join(capacity, on="device", how="left", maintain_order="left")
    return joined.with_columns(pl.when(~_IS_HOST).then("capacity_bytes").alias("capacity_bytes"))


def _at_peak(device: pl.DataFrame) -> pl.DataFrame:
    return _by_operator(device, _alive_at_peak(device))


def _alive_at_peak(device: pl.DataFrame) -> pl.DataFrame:
    """Return the allocations of the blocks that are in use at the peak."""
    until_peak = device.head(_peak(device) + 1)
    last_of_block = until_peak.filter(pl.col("address").is_not_null()).unique("address", keep="last")
    return last_of_block.filter(pl.col("change_bytes") > 0).sort("position")


def _peak(device: pl.DataFrame) -> int:
    return device["allocated_bytes"].arg_max() or 0


def _by_operator(device: pl.DataFrame, alive: pl.DataFrame) -> pl.DataFrame:
    """Sum the memory in use at a device's peak by operator; memory without a recorded allocation gets its own row."""
    peak_bytes = int(device["allocated_bytes"][_peak(device)])
    totals = alive.group_by(pl.col("operator").fill_null(OUTSIDE_OPERATORS), "top_operator").agg(
        pl.len().cast(pl.Int64).alias("block_count"), pl.col("change_bytes").sum().alias("bytes")
    )
    rest = {"operator": BEFORE_RECORDING, "bytes": peak_bytes - int(alive["change_bytes"].sum())}
    before = pl.DataFrame([rest], schema=totals.schema).filter(pl.col("bytes") > 0)
    known = pl.concat([totals, before]) if device["address"].null_count() < len(device) else totals.clear()
    share = pl.when(pl.lit(peak_bytes) > 0).then(pl.col("bytes") / max(1, peak_bytes))
    ordered = known.sort(["bytes", "operator", "top_operator"], descending=[True, False, False])
    return ordered.with_columns(share.alias("fraction"), *(pl.lit(device[name][0]).alias(name) for name in DEVICE_KEYS))


def _findings(events: pl.DataFrame) -> tuple[str, ...]:
    sentences = []
    if events["total_allocated"].null_count():
        sentences.append("memory events have no totals, so memory allocated before the first event is unknown")
    if events["address"].null_count() == len(events):
        sentences.append("memory events have no addresses, so the memory in use at the peak is unknown")
    return tuple(sentences)
