"""How much memory was allocated, and what held it when it was most?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from hta.algorithms.nesting import NO_PARENT, furthest_above, nearest_above, nesting
from hta.enrich.event_ranges import event_ranges
from hta.execution.executor import IN_PROCESS, Executor
from hta.schema import EventKind

if TYPE_CHECKING:
    from hta.store.trace import RankTrace, Trace

BEFORE_RECORDING = "(before the recording)"
OUTSIDE_OPERATORS = "(outside operators)"

_DEVICE_TYPES = {0: "cpu", 1: "cuda", 12: "xpu", 20: "privateuse1"}
_DEVICE = ("device_type", "device_id")
_KEYS = {"rank": pl.Int32, "device_type": pl.String, "device_id": pl.Int64}
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
            "reserved_peak_bytes",
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


@dataclass(frozen=True)
class MemoryTimeline:
    """The memory of the devices over time, as the profiler's `[memory]` events tell it.

    per_device  one row for each device with memory events, sorted by rank, device_type, device_id:

        rank                 int32
        device_type          str    cpu, cuda (also for HIP), xpu, privateuse1, or PyTorch's number
        device_id            int64  -1 for the CPU
        event_count          int64  allocations and frees
        allocation_count     int64
        first_bytes          int64  allocated before the first event
        peak_bytes           int64  most that was allocated after an event
        peak_ns              int64  when that was first reached, ns since the Unix epoch
        last_bytes           int64  allocated after the last event
        reserved_peak_bytes  int64  most that the allocator held; null where the file does not say

    at_peak     what was alive at the peak, by the operator that allocated it, the largest first:

        rank, device_type, device_id   as above
        operator      str      innermost operator around the allocation, `(outside operators)`, or
                               `(before the recording)` for what was there already
        top_operator  str      outermost operator around it; null where there is none
        block_count   int64    null for what was there before the recording
        bytes         int64
        fraction      float64  0..1 of peak_bytes; null where that is 0

    series      one row for each event, sorted by rank, device_type, device_id, time:

        rank, device_type, device_id   as above
        time_ns          int64  ns since the Unix epoch
        change_bytes     int64  negative where memory was freed
        allocated_bytes  int64  after the event
        reserved_bytes   int64  after the event; null where the file does not say

    findings    a sentence for each rank without memory events, and for what the events do not say
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
    """Follow the allocated memory of each device, and say which operators allocated what was alive at the peak.

    The total after each event is the file's. Files of before 2022 have none: there it is the sum of all changes, on top
    of the least that must have been there for it never to be negative. A block is alive from its allocation until its
    address is freed.

    Args:
        trace: the job. Without `profile_memory=True` when it was recorded all tables are empty.
        executor: where the ranks are worked on.

    Source: docs/reference/analyses/memory_timeline.md derives it and compares other tools.
    """
    partials = trace.map(_one_rank, executor).values()
    return MemoryTimeline(
        pl.concat([each.per_device for each in partials]),
        pl.concat([each.at_peak for each in partials]),
        pl.concat([each.series for each in partials]),
        tuple(finding for each in partials for finding in each.findings),
    )


def _one_rank(rank_trace: RankTrace) -> _Partial:
    events = _events(rank_trace)
    if events.is_empty():
        finding = f"rank {rank_trace.rank} has no memory events ({rank_trace.source}): record with profile_memory=True"
        per_device, at_peak, series = (pl.DataFrame(schema=schema) for schema in (_PER_DEVICE, _AT_PEAK, _SERIES))
        return _Partial(per_device, at_peak, series, (finding,))
    devices = [part.with_row_index("position") for part in events.partition_by(_DEVICE, maintain_order=True)]
    per_device = pl.concat([_device_row(device) for device in devices])
    at_peak = _at_peak(rank_trace, devices)
    findings = _findings(rank_trace.rank, events)
    return _Partial(
        _typed(per_device, rank_trace.rank, _PER_DEVICE),
        _typed(at_peak, rank_trace.rank, _AT_PEAK),
        _typed(events.rename({"start_ns": "time_ns", "bytes": "change_bytes"}), rank_trace.rank, _SERIES),
        findings,
    )


def _typed(table: pl.DataFrame, rank: int, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    with_rank = table.with_columns(pl.lit(rank).alias("rank"))
    return with_rank.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def _events(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the memory events by device and time, with the total after each."""
    when = event_ranges(rank_trace, (EventKind.MEMORY,), ["event_index", "start_ns", "track_id"])
    joined = when.join(rank_trace.table("memory"), on="event_index", maintain_order="left")
    named = joined.drop_nulls("bytes").with_columns(
        pl.col("device_type")
        .replace_strict(_DEVICE_TYPES, default=pl.col("device_type").cast(pl.String))
        .fill_null("?"),
        pl.col("device_id").fill_null(-1),
        pl.col("total_reserved").alias("reserved_bytes"),
    )
    ordered = named.sort(*_DEVICE, "start_ns", maintain_order=True)
    return ordered.with_columns(_total().over(_DEVICE).alias("allocated_bytes"))


def _total() -> pl.Expr:
    """Return the total after each event of a device: the file's or, without that, the sum of the changes."""
    total = pl.col("bytes").cum_sum()
    known_before = pl.min_horizontal(total.min(), 0)
    return pl.when(pl.col("total_allocated").is_null().any()).then(total - known_before).otherwise("total_allocated")


def _device_row(device: pl.DataFrame) -> pl.DataFrame:
    allocated = pl.col("allocated_bytes")
    return device.select(
        pl.col(_DEVICE).first(),
        pl.len().alias("event_count"),
        (pl.col("bytes") > 0).sum().alias("allocation_count"),
        (allocated.first() - pl.col("bytes").first()).alias("first_bytes"),
        allocated.max().alias("peak_bytes"),
        pl.col("start_ns").get(allocated.arg_max()).alias("peak_ns"),
        allocated.last().alias("last_bytes"),
        pl.col("reserved_bytes").max().alias("reserved_peak_bytes"),
    )


def _at_peak(rank_trace: RankTrace, devices: list[pl.DataFrame]) -> pl.DataFrame:
    alive = pl.concat([_alive_at_peak(device) for device in devices])
    named = alive.hstack(_operators(rank_trace, alive))
    rows = [_by_operator(device, named) for device in devices]
    return pl.concat(rows)


def _alive_at_peak(device: pl.DataFrame) -> pl.DataFrame:
    """Return the allocations of blocks that are not freed again until the peak."""
    until_peak = device.head(_peak(device) + 1)
    last_of_block = until_peak.filter(pl.col("address").is_not_null()).unique("address", keep="last")
    return last_of_block.filter(pl.col("bytes") > 0).sort("position")


def _peak(device: pl.DataFrame) -> int:
    return device["allocated_bytes"].arg_max() or 0


def _operators(rank_trace: RankTrace, moments: pl.DataFrame) -> pl.DataFrame:
    """Return the names of the innermost and the outermost operator around each moment of a thread."""
    columns = ["name", "track_id", "start_ns", "end_ns"]
    operators = event_ranges(rank_trace, (EventKind.CPU_OP,), columns)
    points = moments.select(
        pl.lit(0, pl.UInt32).alias("name"), "track_id", "start_ns", pl.col("start_ns").alias("end_ns")
    )
    both = pl.concat([operators, points])
    found = nesting(*(both[column].to_numpy() for column in columns[1:]))
    is_operator = np.arange(len(both)) < len(operators)
    rows = np.arange(len(operators), len(both))
    places = [reach(found.parent, is_operator, rows) for reach in (nearest_above, furthest_above)]
    names = [both["name"].gather(pl.Series(each).replace(NO_PARENT, None).cast(pl.UInt32)) for each in places]
    return pl.DataFrame(
        {label: rank_trace.texts(ids) for label, ids in zip(("operator", "top_operator"), names, strict=True)}
    )


def _by_operator(device: pl.DataFrame, alive: pl.DataFrame) -> pl.DataFrame:
    """Add up what was alive at the peak of a device, and what must have been there before the recording."""
    peak_bytes = int(device["allocated_bytes"][_peak(device)])
    own = alive.join(device.select(_DEVICE).head(1), on=_DEVICE, how="semi")
    totals = own.group_by(pl.col("operator").fill_null(OUTSIDE_OPERATORS), "top_operator").agg(
        pl.len().cast(pl.Int64).alias("block_count"), pl.col("bytes").sum()
    )
    rest = {"operator": BEFORE_RECORDING, "bytes": peak_bytes - int(own["bytes"].sum())}
    before = pl.DataFrame([rest], schema=totals.schema).filter(pl.col("bytes") > 0)
    told = pl.concat([totals, before]) if device["address"].null_count() < len(device) else totals.clear()
    share = pl.when(pl.lit(peak_bytes) > 0).then(pl.col("bytes") / max(1, peak_bytes))
    ordered = told.sort(["bytes", "operator", "top_operator"], descending=[True, False, False])
    return ordered.with_columns(share.alias("fraction"), *(pl.lit(device[name][0]).alias(name) for name in _DEVICE))


def _findings(rank: int, events: pl.DataFrame) -> tuple[str, ...]:
    told = []
    if events["total_allocated"].null_count():
        told.append(f"the memory events of rank {rank} have no totals: allocated is what changed since the first event")
    if events["address"].null_count() == len(events):
        told.append(f"the memory events of rank {rank} have no addresses: what was alive at the peak is unknown")
    return tuple(told)
