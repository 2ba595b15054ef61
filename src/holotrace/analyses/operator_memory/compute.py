"""Which operators allocate memory, and how much of it stays allocated?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, nearest_above
from holotrace.enrich.attribution import Attribution
from holotrace.enrich.compat import Compat, attribution_of
from holotrace.enrich.events.event_rows import gathered
from holotrace.enrich.host.host_nodes import node_texts
from holotrace.enrich.job.findings import joined_findings
from holotrace.enrich.memory.memory_blocks import TimeWindow
from holotrace.enrich.memory.memory_events import (
    BEFORE_RECORDING,
    DEVICE_KEYS,
    OUTSIDE_OPERATORS,
    memory_events,
)
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import size_text

_KEYS = {"rank": pl.Int32, "device_type": pl.String, "device": pl.Int32, "operator": pl.String}
_PER_OPERATOR = {
    **_KEYS,
    **dict.fromkeys(
        (
            *("call_count", "total_increase_bytes", "self_increase_bytes", "total_allocation_count"),
            *("self_allocation_count", "total_allocated_bytes", "self_allocated_bytes", "self_unreleased_bytes"),
        ),
        pl.Int64,
    ),
}
_BLOCKS = {
    **_KEYS,
    "caller": pl.String,
    **dict.fromkeys(("block_bytes", "allocated_ns", "released_ns", "lifetime_ns"), pl.Int64),
}
_SUMMED = ("increase_bytes", "allocation_count", "allocated_bytes")


@dataclass(frozen=True, eq=False, repr=False)
class OperatorMemory(Result):
    """The memory that operators allocate and free.

    per_operator  one row per rank, device and operator that allocates or frees memory of this device, directly or in
                  nested operators; sorted by rank, device_type, device, the largest self_increase_bytes first:

        rank                    int32
        device_type             str    as PyTorch calls it: cpu, cuda (also for HIP), xpu …
        device                  int32  -1 for the CPU
        operator                str
        call_count              int64  calls on the rank, with or without allocations
        total_increase_bytes    int64  allocated minus freed, including nested operators; if the operator calls itself,
                                       the memory of the inner call counts only once
        self_increase_bytes     int64  allocated minus freed, without nested operators
        total_allocation_count  int64
        self_allocation_count   int64
        total_allocated_bytes   int64  allocated bytes; freed bytes are not subtracted
        self_allocated_bytes    int64
        self_unreleased_bytes   int64  part of self_allocated_bytes that is not freed by the end of the recording or
                                       window; null for devices whose events have no addresses

    blocks        one row per block of memory, sorted by rank, device_type, device and the time of the allocation or, if
                  unknown, of the release:

        rank, device_type, device   as above
        operator      str    innermost operator around the allocation, `(outside operators)`, or
                             `(before the recording)` if only the release was recorded
        caller        str    operator around the allocating operator; null if there is none
        block_bytes   int64
        allocated_ns  int64  ns since the Unix epoch; null if unknown
        released_ns   int64  null if not released by the end of the recording
        lifetime_ns   int64  released_ns - allocated_ns; null if either is null

    findings      ranks without memory events, and data missing from the events

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1000, "tid": 1}
    >>> args = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Addr": 16, "Total Allocated": 512}
    >>> trace = TraceBuilder().operator("aten::empty", start_us=0, duration_us=9).event(ts=3, args=args, **place).build()
    >>> holotrace.operator_memory(trace).answer
    '100.0 % of all allocated memory (512 B) is allocated by aten::empty, more than by any other operator.'
    """

    per_operator: pl.DataFrame
    blocks: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_operator: pl.DataFrame
    blocks: pl.DataFrame
    findings: tuple[str, ...]


def operator_memory(
    trace: Trace,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    compat: Compat | None = None,
    executor: Executor = IN_PROCESS,
) -> OperatorMemory:
    """Sum the memory that each operator allocates and frees on each device, and follow every block until its release.

    An allocation or free counts toward the innermost operator around it on the same thread. So an operator that only
    frees memory that other operators allocated has a negative increase. A block is released when its address is next
    freed on its device.

    Args:
        trace: the job, recorded with `profile_memory=True`; otherwise, all tables are empty.
        start_ns: beginning of a window (ns since the Unix epoch). Only events in the window count, and `blocks` lists
            only the blocks that are allocated or released in it.
        end_ns: end of the window, inclusive.
        compat: "torch_tb_profiler" pairs allocations with frees as the last version of the TensorBoard plugin did: by
            address alone, within the window, for CPU and CUDA devices only.
        executor: processes each rank.

    Source: docs/reference/analyses/operator_memory.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1000, "tid": 1}
    >>> args = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Addr": 16, "Total Allocated": 512}
    >>> trace = TraceBuilder().operator("aten::empty", start_us=0, duration_us=9).event(ts=3, args=args, **place).build()
    >>> holotrace.operator_memory(trace).per_operator.select("operator", "self_allocated_bytes").rows()
    [('aten::empty', 512)]
    """
    return plan(start_ns=start_ns, end_ns=end_ns, compat=compat).run(trace, executor)


def plan(
    *, start_ns: int | None = None, end_ns: int | None = None, compat: Compat | None = None
) -> Plan[_Partial, OperatorMemory]:
    """Return the two functions of `operator_memory`: one runs on each rank, the other combines the results of the ranks."""
    window, attribution = TimeWindow(start_ns, end_ns), attribution_of(compat)
    return Plan(partial(_one_rank, window=window, attribution=attribution), _combine)


def _combine(partials: dict[int, _Partial]) -> OperatorMemory:
    return OperatorMemory(
        pl.concat([of_rank.per_operator for of_rank in partials.values()]),
        pl.concat([of_rank.blocks for of_rank in partials.values()]),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )


def summed_operator_memory(per_operator: pl.DataFrame) -> pl.DataFrame:
    """Return `per_operator` summed over ranks and over devices of the same type, the largest self_allocated_bytes first."""
    sizes = list(_PER_OPERATOR)[len(_KEYS) + 1 :]
    sums = [pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name) for name in sizes]
    of_ranks = per_operator.group_by("rank", "device_type", "operator").agg(pl.col("call_count").first(), *sums)
    summed = of_ranks.group_by("device_type", "operator").agg(pl.col("call_count").sum(), *sums)
    order = ["self_allocated_bytes", "total_allocated_bytes", "device_type", "operator"]
    return summed.sort(order, descending=[True, True, False, False])


def _one_rank(rank_trace: RankTrace, *, window: TimeWindow, attribution: Attribution) -> _Partial:
    if memory_events(rank_trace).is_empty():
        finding = "no memory events were recorded; record with profile_memory=True"
        return _Partial(pl.DataFrame(schema=_PER_OPERATOR), pl.DataFrame(schema=_BLOCKS), (finding,))
    nodes = attribution.host_nodes(rank_trace)
    of_all = _owned_events(rank_trace, nodes, attribution)
    events = attribution.shown_memory_events(of_all)
    blocks = attribution.blocks_in_window(events, window)
    calls = _calls(attribution.nodes_in_window(nodes, of_all, window))
    per_operator = _per_operator(nodes, events, blocks, window, attribution).join(calls, on="name", how="left")
    named = per_operator.with_columns(rank_trace.texts(per_operator["name"]).alias("operator"))
    return _Partial(
        _typed(rank_trace, named, _PER_OPERATOR).sort(
            [*DEVICE_KEYS, "self_increase_bytes", "operator"], descending=[False, False, True, False]
        ),
        _typed(rank_trace, _named_blocks(rank_trace, nodes, blocks), _BLOCKS),
        _findings(events.filter(window.holds("time_ns"))),
    )


def _typed(rank_trace: RankTrace, table: pl.DataFrame, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    with_rank = table.with_columns(pl.lit(rank_trace.rank).alias("rank"))
    return with_rank.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def _owned_events(rank_trace: RankTrace, nodes: pl.DataFrame, attribution: Attribution) -> pl.DataFrame:
    """Add the host node, the operator and the caller of each memory event; -1 if there is none.

    The node is the innermost node around the event. `Attribution.operator_and_caller` finds the node's operator, and
    the caller: the next operator around it.
    """
    innermost = attribution.nodes_of_memory_events(rank_trace)
    parent = np.append(nodes["parent"].to_numpy(), NO_PARENT)
    is_counted = np.append(nodes["is_counted"].to_numpy(), False)
    operator, caller = attribution.operator_and_caller(parent, is_counted, innermost)
    return memory_events(rank_trace).with_columns(
        pl.Series("node", innermost), pl.Series("operator", operator), pl.Series("caller", caller)
    )


def _named_blocks(rank_trace: RankTrace, nodes: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    named = blocks.with_columns(
        _texts(rank_trace, nodes, blocks[name]).alias(name) for name in ("operator", "caller")
    ).with_columns(
        pl.when(pl.col("operator").is_null() & pl.col("allocated_ns").is_null())
        .then(pl.lit(BEFORE_RECORDING))
        .otherwise(pl.col("operator").fill_null(OUTSIDE_OPERATORS))
        .alias("operator"),
        (pl.col("released_ns") - pl.col("allocated_ns")).alias("lifetime_ns"),
    )
    return named.sort(*DEVICE_KEYS, pl.coalesce("allocated_ns", "released_ns"), maintain_order=True)


def _texts(rank_trace: RankTrace, nodes: pl.DataFrame, rows: pl.Series) -> pl.Series:
    """Return the name of the node in each of `rows`; null if the row number is null or -1."""
    numbers = rows.fill_null(NO_PARENT)
    distinct = numbers.unique().sort()
    known = distinct.filter(distinct != NO_PARENT)
    texts = pl.DataFrame({"row": known, "text": node_texts(rank_trace, nodes[known])})
    return numbers.alias("row").to_frame().join(texts, on="row", how="left", maintain_order="left")["text"]


def _per_operator(
    nodes: pl.DataFrame, events: pl.DataFrame, blocks: pl.DataFrame, window: TimeWindow, attribution: Attribution
) -> pl.DataFrame:
    counted = events.filter(window.holds("time_ns"))
    bytes_of = pl.col("change_bytes")
    changes = counted.group_by(*DEVICE_KEYS, "operator").agg(
        bytes_of.sum().alias("increase_bytes"),
        (bytes_of > 0).sum().cast(pl.Int64).alias("allocation_count"),
        bytes_of.clip(lower_bound=0).sum().alias("allocated_bytes"),
    )
    own = changes.with_columns(gathered(nodes["name"], changes["operator"].to_numpy())).drop_nulls("name")
    inside = _around(nodes, changes, attribution)
    keys = [*DEVICE_KEYS, "name"]
    sums = (
        inside.group_by(keys)
        .agg(pl.col(_SUMMED).sum().name.prefix("total_"))
        .join(own.group_by(keys).agg(pl.col(_SUMMED).sum().name.prefix("self_")), on=keys, how="left")
        .join(_unreleased(nodes, blocks, window), on=keys, how="left")
        .filter(pl.any_horizontal(pl.col("^(total|self)_(increase|allocat).*$") != 0))
    )
    has_address = counted.group_by(DEVICE_KEYS).agg(pl.col("address").is_not_null().any().alias("has_address"))
    unreleased = pl.col("self_unreleased_bytes").fill_null(0)
    return sums.join(has_address, on=DEVICE_KEYS, maintain_order="left").with_columns(
        pl.col("^self_(increase|allocat).*$").fill_null(0),
        pl.when("has_address").then(unreleased).alias("self_unreleased_bytes"),
    )


def _around(nodes: pl.DataFrame, changes: pl.DataFrame, attribution: Attribution) -> pl.DataFrame:
    """Repeat each row of `changes` for its operator and every operator around it, but only once per operator name."""
    parent, is_counted = nodes["parent"].to_numpy(), nodes["is_counted"].to_numpy()
    rows, at = np.arange(changes.height), changes["operator"].to_numpy()
    change_rows, operators = [rows[:0]], [at[:0]]
    while len(rows):
        rows, at = rows[at != NO_PARENT], at[at != NO_PARENT]
        change_rows.append(rows)
        operators.append(at)
        at = nearest_above(parent, is_counted, at)
    named = pl.DataFrame(
        {"row": np.concatenate(change_rows), "name": gathered(nodes["name"], np.concatenate(operators))}
    )
    once = attribution.names_around(named)
    return changes[once["row"]].with_columns(once["name"])


def _unreleased(nodes: pl.DataFrame, blocks: pl.DataFrame, window: TimeWindow) -> pl.DataFrame:
    """Return, by device and operator name, the size of all blocks allocated in the window but not released in it."""
    stays = blocks.filter(window.holds("allocated_ns") & ~window.holds("released_ns").fill_null(value=False))
    names = gathered(nodes["name"], stays["operator"].fill_null(NO_PARENT).to_numpy()).alias("name")
    return (
        stays.with_columns(names)
        .group_by(*DEVICE_KEYS, "name")
        .agg(pl.col("block_bytes").sum().alias("self_unreleased_bytes"))
    )


def _calls(nodes: pl.DataFrame) -> pl.DataFrame:
    return nodes.filter("is_counted").group_by("name").agg(pl.len().cast(pl.Int64).alias("call_count"))


def _findings(events: pl.DataFrame) -> tuple[str, ...]:
    outside = events.filter((pl.col("operator") == NO_PARENT) & (pl.col("change_bytes") > 0))
    of_all = f"{outside.height:,} of {(events['change_bytes'] > 0).sum():,} allocations"
    size = size_text(int(outside["change_bytes"].sum()))
    sentences = (
        (
            events.height > 0 and events["address"].is_null().all(),
            "the memory events have no addresses, so the lifetimes of blocks are unknown",
        ),
        (outside.height > 0, f"{of_all} ({size}) happened outside operators"),
    )
    return tuple(sentence for is_so, sentence in sentences if is_so)
