"""Where do operators spend time, on the host and on the devices?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.covered_by_group import covered_by_number
from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above, nearest_above
from holotrace.algorithms.summary import sum_or_null
from holotrace.enrich.attribution import Attribution
from holotrace.enrich.compat import Compat, attribution_of
from holotrace.enrich.device.device_work import device_rows, missing_device_work
from holotrace.enrich.events.recorded_json import texts_with_one_spacing
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.enrich.job.findings import joined_findings
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import duration_text

_Rows = npt.NDArray[np.int64]

HOST_TIMES = ("host_total_ns", "host_self_ns")
DEVICE_TIMES = (
    *("device_total_ns", "device_self_ns", "tensor_core_total_ns", "tensor_core_self_ns"),
    *("tensor_core_unknown_total_ns", "tensor_core_unknown_self_ns"),
)
_BUSY = ("device_total_busy_ns", "device_self_busy_ns")
_ON_DEVICE = (*DEVICE_TIMES, *_BUSY)
_KEYS = ("rank", "operator", "input_shape", "call_stack")
_COLUMNS = (
    *(*_KEYS, "call_count", *HOST_TIMES, "device_total_ns", "device_self_ns", *_BUSY, "is_tensor_core_eligible"),
    *("tensor_core_total_ns", "tensor_core_self_ns", "tensor_core_total_fraction", "tensor_core_self_fraction"),
    *("tensor_core_unknown_total_ns", "tensor_core_unknown_self_ns"),
    *("tensor_core_unknown_total_fraction", "tensor_core_unknown_self_fraction", "has_call_stack"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Operators(Result):
    """The host and device time of the operators.

    per_operator   one row per rank and operator, sorted by rank, the longest device_self_ns first, then host_self_ns:

        rank                        int32
        operator                    str
        call_count                  int64
        host_total_ns               int64    sum of the durations of all calls, including nested calls of the same operator
        host_self_ns                int64    time outside inner operators, runtime calls and driver calls
        device_total_ns             int64    summed durations of kernels, copies and memsets launched inside, even if they overlap
        device_self_ns              int64    part of device_total_ns in work launched outside inner operators
        device_total_busy_ns        int64    time in which at least one of these kernels, copies or memsets runs
        device_self_busy_ns         int64
        is_tensor_core_eligible     bool     whether the name suggests work that tensor or matrix cores could do
        tensor_core_total_ns        int64    part of device_total_ns in kernels that use tensor or matrix cores
        tensor_core_self_ns         int64
        tensor_core_total_fraction  float64  tensor_core_total_ns / device_total_ns, a lower bound; null if device_total_ns is 0
                                             or if no kernel's name shows which cores it uses
        tensor_core_self_fraction   float64  the same for self times
        tensor_core_unknown_total_ns, tensor_core_unknown_self_ns
                                    int64    parts of device_total_ns and device_self_ns in kernels whose names do not show which
                                             cores they use
        tensor_core_unknown_total_fraction, tensor_core_unknown_self_fraction
                                    float64  these two times as shares of device_total_ns and of device_self_ns
        has_call_stack              bool     whether at least one call has a recorded call stack

    per_input_shape  one row per rank, operator and input shapes, with the same columns and

        input_shape                 str      JSON, such as `[[32, 64], []]`; null if not recorded

    per_call_stack  one row per rank, operator, input shapes and call stack, with the same columns except
                    device_total_busy_ns and device_self_busy_ns, and

        input_shape                 str
        call_stack                  str      frames joined by `;`, the innermost first

    findings  missing data, and device work without an operator

    Device columns are null on ranks without device work.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.operators(small_job()).answer
    '61.5 % of the device self time (1.6 ms) goes into aten::mm, more than into any other operator.'
    """

    per_operator: pl.DataFrame
    per_input_shape: pl.DataFrame
    per_call_stack: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_operator: pl.DataFrame
    per_input_shape: pl.DataFrame
    per_call_stack: pl.DataFrame
    findings: tuple[str, ...]


def operators(trace: Trace, *, compat: Compat | None = None, executor: Executor = IN_PROCESS) -> Operators:
    """Sum the time of every operator on the host and on the devices, by name, by input shapes and by call stack.

    Device work counts toward the innermost operator around its launch; see
    `holotrace.enrich.host.host_nodes.device_owner`. Steps, data loaders, optimizer steps and DDP's wrapper do not count
    as operators, although old files may record them as operators.

    Args:
        trace: the job.
        compat: "torch_tb_profiler" attributes device work as the last version of the TensorBoard plugin did.
        executor: processes each rank.

    Source: docs/reference/analyses/operators.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.operators(small_job()).per_operator.select("rank", "operator", "call_count", "device_total_ns").head(2).rows()
    [(0, 'aten::mm', 2, 600000), (0, 'c10d::allreduce_', 2, 600000)]
    """
    return plan(compat=compat).run(trace, executor)


def plan(*, compat: Compat | None = None) -> Plan[_Partial, Operators]:
    """Return the two functions of `operators`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(partial(_one_rank, attribution=attribution_of(compat)), _combine)


def _combine(partials: dict[int, _Partial]) -> Operators:
    return Operators(
        _finished([of_rank.per_operator for of_rank in partials.values()]),
        _finished([of_rank.per_input_shape for of_rank in partials.values()]),
        _finished([of_rank.per_call_stack for of_rank in partials.values()]),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )


def summed_operators(table: pl.DataFrame) -> pl.DataFrame:
    """Return `per_operator`, `per_input_shape` or `per_call_stack` summed over the ranks, the longest first."""
    keys = [key for key in _KEYS[1:] if key in table.columns]
    times = [name for name in (*HOST_TIMES, *_ON_DEVICE) if name in table.columns]
    sums = table.group_by(keys).agg(
        pl.col("call_count").sum(),
        *map(sum_or_null, times),
        pl.col("is_tensor_core_eligible", "has_call_stack").any(),
    )
    return _finished([sums])


def _one_rank(rank_trace: RankTrace, *, attribution: Attribution) -> _Partial:
    nodes = attribution.host_nodes(rank_trace).hstack(attribution.node_times(rank_trace))
    described, work = _described(rank_trace, nodes, attribution), _owned_work(rank_trace, attribution)
    rows, around = _operators_around(nodes, work)
    is_eligible = attribution.is_eligible()
    busy = partial(_sums_and_busy, described, work=work, rows=rows, around=around, is_eligible=is_eligible)
    per_call_stack = _sums(described.filter("has_call_stack"), ["name", "input_dims", "stack"], is_eligible)
    shown = partial(_shown, rank_trace, has_device_work=not work.is_empty(), attribution=attribution)
    return _Partial(
        shown(busy(["name"])),
        shown(busy(["name", "input_dims"])),
        shown(per_call_stack),
        (*_findings(rank_trace, described, work, rows), *attribution.graph_findings(rank_trace)),
    )


def _described(rank_trace: RankTrace, nodes: pl.DataFrame, attribution: Attribution) -> pl.DataFrame:
    """Return the nodes that count as operators, with their input shapes and call stacks."""
    stacks = attribution.operator_stacks(rank_trace).stack_of
    shapes = described_events(rank_trace, "operator_inputs", ["event_index", "input_dims"])
    return (
        attribution.counted_operators(nodes)
        .select("node", "event_index", "name", "is_tensor_core_eligible", *HOST_TIMES, *DEVICE_TIMES)
        .join(shapes, on="event_index", how="left", maintain_order="left")
        .join(stacks, on="event_index", how="left", maintain_order="left")
        .with_columns(pl.col("stack").is_not_null().alias("has_call_stack"))
    )


def _owned_work(rank_trace: RankTrace, attribution: Attribution) -> pl.DataFrame:
    """Return the launching node, the device, the start and the end of each kernel, copy or memset."""
    owners = attribution.device_owner(rank_trace)
    return owners.join(device_rows(rank_trace), on="event_index", maintain_order="left").select(
        "node", "device", "start_ns", "end_ns"
    )


def _operators_around(nodes: pl.DataFrame, work: pl.DataFrame) -> tuple[_Rows, _Rows]:
    """Pair each row of `work` with all nodes that contain its launch and have `is_counted`, in the order of `work`."""
    parent, is_counted = nodes["parent"].to_numpy(), nodes["is_counted"].to_numpy()
    rows, at = np.arange(work.height), itself_or_above(parent, is_counted, work["node"].to_numpy())
    all_rows, all_nodes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    while len(rows):
        rows, at = rows[at != NO_PARENT], at[at != NO_PARENT]
        all_rows.append(rows)
        all_nodes.append(at)
        at = nearest_above(parent, is_counted, at)
    work_rows = np.concatenate(all_rows)
    order = np.argsort(work_rows, kind="stable")
    return work_rows[order], np.concatenate(all_nodes)[order]


def _sums(described: pl.DataFrame, keys: Sequence[str], is_eligible: pl.Expr) -> pl.DataFrame:
    return described.group_by(keys, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("call_count"),
        pl.col(*HOST_TIMES, *DEVICE_TIMES).sum(),
        is_eligible,
        pl.col("has_call_stack").any(),
    )


def _sums_and_busy(  # noqa: PLR0913 -- what belongs together, in columns
    described: pl.DataFrame,
    keys: Sequence[str],
    *,
    work: pl.DataFrame,
    rows: _Rows,
    around: _Rows,
    is_eligible: pl.Expr,
) -> pl.DataFrame:
    """Add busy times to `_sums`: how long at least one kernel or copy ran, with and without the work of inner operators."""
    sums = _sums(described, keys, is_eligible)
    groups = described.select(keys).join(
        sums.select(keys).with_row_index("group"), on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    node = described["node"].to_numpy()
    group = np.full(int(node.max(initial=0)) + 1, NO_PARENT, np.int64)
    group[node] = groups["group"].to_numpy()
    is_own = work["node"].to_numpy()[rows] == around
    covered = partial(_covered, work=work, group_count=sums.height)
    return sums.with_columns(
        pl.Series("device_total_busy_ns", covered(group[around], rows), pl.Int64),
        pl.Series("device_self_busy_ns", covered(group[around[is_own]], rows[is_own]), pl.Int64),
    )


def _covered(groups: _Rows, rows: _Rows, work: pl.DataFrame, group_count: int) -> _Rows:
    """Return, for each group, how long at least one of its kernels or copies runs, summed over the devices."""
    devices, device = np.unique(work["device"].to_numpy(), return_inverse=True)
    start, end = work["start_ns"].to_numpy()[rows], work["end_ns"].to_numpy()[rows]
    lengths = covered_by_number(groups + group_count * device[rows], start, end, group_count * len(devices))
    return np.asarray(lengths.reshape(len(devices), group_count).sum(axis=0), np.int64)


def _shown(
    rank_trace: RankTrace, table: pl.DataFrame, *, has_device_work: bool, attribution: Attribution
) -> pl.DataFrame:
    """Replace ids by strings and, if no device work was recorded, set the device columns to null."""
    named = table.with_columns(
        pl.lit(rank_trace.rank, pl.Int32).alias("rank"), rank_trace.texts(table["name"]).alias("operator")
    )
    if "input_dims" in table.columns:
        shapes = texts_with_one_spacing(rank_trace, table["input_dims"]).alias("input_shape")
        named = named.with_columns(attribution.input_shapes(shapes))
    if "stack" in table.columns:
        stacks = attribution.operator_stacks(rank_trace).texts
        named = named.with_columns(stacks.gather(table["stack"]).alias("call_stack"))
    if not has_device_work:
        named = named.with_columns(pl.lit(None, pl.Int64).alias(name) for name in _ON_DEVICE if name in table.columns)
    return named.drop("name", "input_dims", "stack", strict=False)


def _finished(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Join the tables of the ranks, add the tensor core shares, and order rows and columns."""
    table = pl.concat(parts)
    for part in ("total", "self"):
        whole, unknown = pl.col(f"device_{part}_ns"), pl.col(f"tensor_core_unknown_{part}_ns")
        share = pl.when((whole > 0) & (unknown < whole)).then(pl.col(f"tensor_core_{part}_ns") / whole)
        table = table.with_columns(
            share.alias(f"tensor_core_{part}_fraction"),
            pl.when(whole > 0).then(unknown / whole).alias(f"tensor_core_unknown_{part}_fraction"),
        )
    longest = ["device_self_ns", "host_self_ns"]
    by = sorted(set(_KEYS) & set(table.columns), key=_KEYS.index)
    by[by.index("operator") : by.index("operator")] = longest
    ordered = table.sort(by, descending=[name in longest for name in by], nulls_last=True)
    return ordered.select(name for name in _COLUMNS if name in table.columns)


def _findings(rank_trace: RankTrace, described: pl.DataFrame, work: pl.DataFrame, owned: _Rows) -> tuple[str, ...]:
    has_operator = np.zeros(work.height, np.bool_)
    has_operator[owned] = True
    unowned = work.filter(~has_operator)
    unowned_ns = int((unowned["end_ns"] - unowned["start_ns"]).sum())
    share = f"{unowned.height:,} of {work.height:,} kernels, copies and memsets"
    sentences = (
        (described.is_empty(), "no operators were recorded; record with ProfilerActivity.CPU"),
        (work.is_empty(), missing_device_work(rank_trace)),
        (
            described["input_dims"].null_count() == described.height,
            "no input shapes were recorded; record with record_shapes=True",
        ),
        (not described["has_call_stack"].any(), "no call stacks were recorded; record with with_stack=True"),
        (unowned.height > 0, f"{share} have no operator; they take {duration_text(unowned_ns)} of device time"),
    )
    return tuple(sentence for is_so, sentence in sentences if is_so)
