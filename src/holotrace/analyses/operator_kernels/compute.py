"""Which kernels does each operator launch, how soon do they start, and which forward operator and module cause them?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above
from holotrace.enrich.device.device_work import device_work, no_device_work
from holotrace.enrich.device.launches import launches, of_work
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.graph_attribution.findings import graph_findings
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.host.forward_backward import forward_of
from holotrace.enrich.host.host_names import MODULE_PREFIX
from holotrace.enrich.host.modules import module_of
from holotrace.enrich.host.operators import launching_operator
from holotrace.enrich.job.findings import joined_findings
from holotrace.enrich.kernels.kernel_sequences import SEQUENCE_SEPARATOR, sequence_texts, sequences
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import KernelKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace


@dataclass(frozen=True, eq=False, repr=False)
class OperatorKernels(Result):
    """The kernels of each operator.

    per_sequence  one row per rank, operator and sequence of kernels, sorted by rank, call_count (largest first),
                  operator and kernels:

        rank                        int32
        operator                    str      innermost operator around the launches
        kernels                     str      names in the order of their launches, joined by ` -> `
        call_count                  int64    operator calls that launched this sequence
        kernel_ns                   int64    summed durations of the kernels that these calls launched
        mean_operator_to_launch_ns  float64  from the start of the operator to the start of its first launch
        mean_launch_to_kernel_ns    float64  from the start of the first launch to the start of the kernel that it launched

    per_forward   the device time that each forward operator causes: one row per rank, operator and module, sorted by
                  rank, the longest kernel_ns first, then by name:

        rank                   int32
        operator               str      forward operator; an operator that belongs to no forward operator gets its own row
        module                 str      innermost nn.Module around the operator, for example `Linear_3`; null if unknown
        forward_kernel_count   int64    kernels launched in the operator, but not in forward operators inside it
        forward_kernel_ns      int64
        backward_kernel_count  int64    kernels launched in its backward operator
        backward_kernel_ns     int64
        kernel_ns              int64    forward_kernel_ns + backward_kernel_ns

    findings      ranks without device work, and kernels without a known operator

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.operator_kernels(small_job()).answer
    '61.5 % of the kernel time (1.6 ms) is in kernels that aten::mm launches, more than for any other operator.'
    """

    per_sequence: pl.DataFrame
    per_forward: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_sequence: pl.DataFrame
    per_forward: pl.DataFrame
    findings: tuple[str, ...]


def operator_kernels(trace: Trace, *, include_memory: bool = False, executor: Executor = IN_PROCESS) -> OperatorKernels:
    """Assign each kernel to the operator that launched it, and backward kernels also to their forward operator.

    The operator that launched a kernel is the innermost operator around the launch, on the same thread; see
    `holotrace.enrich.host.operators`. Backward operators are operators that the profiler links to a forward operator, and all
    operators inside them.

    Args:
        trace: the job.
        include_memory: count copies and memsets as well as kernels.
        executor: processes each rank.

    Raises:
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/operator_kernels.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.operator_kernels(small_job()).per_sequence.select("operator", "kernels", "kernel_ns").head(2).rows()
    [('aten::mm', 'gemm', 600000), ('aten::relu', 'relu', 100000)]
    """
    return plan(include_memory=include_memory).run(trace, executor)


def plan(*, include_memory: bool = False) -> Plan[_Partial, OperatorKernels]:
    """Return the two functions of `operator_kernels`: one runs on each rank, the other combines the results of the ranks."""
    one_rank = partial(_one_rank, include_memory=include_memory)
    return Plan(one_rank, _combine)


def operators_over_ranks(result: OperatorKernels) -> pl.DataFrame:
    """Return one row per operator and module, with counts and times summed over the ranks, the longest first."""
    sums = pl.col("^(forward|backward)_kernel_(count|ns)$", "kernel_ns").sum()
    table = result.per_forward.group_by("operator", "module").agg(sums)
    return table.sort("kernel_ns", "operator", "module", descending=[True, False, False])


def _one_rank(rank_trace: RankTrace, *, include_memory: bool) -> _Partial:
    work = device_work(rank_trace)
    if work.is_empty():
        raise no_device_work(rank_trace, "operator_kernels")
    kernels = work if include_memory else work.filter(pl.col("kernel_kind") != KernelKind.MEMORY)
    owned = _owned(rank_trace, kernels)
    rank = pl.lit(rank_trace.rank, pl.Int32).alias("rank")
    return _Partial(
        _per_sequence(rank_trace, owned).select(rank, pl.all()),
        _per_forward(rank_trace, owned).select(rank, pl.all()),
        (*_findings(kernels.height, kernels.height - owned.height), *graph_findings(rank_trace)),
    )


def _owned(rank_trace: RankTrace, kernels: pl.DataFrame) -> pl.DataFrame:
    """Return the kernels with a known operator, sorted by launch; `row` is the operator's row in `call_stacks`."""
    stacks = call_stacks(rank_trace)
    operator_index = of_work(launching_operator(rank_trace), kernels)["operator_index"]
    launch_start_ns = of_work(launches(rank_trace), kernels)["launch_start_ns"]
    rows = pl.Series("row", rows_of_events(stacks, operator_index))
    return (
        kernels.select("name", "start_ns", rows, launch_start_ns, kernel_ns=pl.col("end_ns") - pl.col("start_ns"))
        .filter(rows != NO_PARENT)
        .sort("launch_start_ns", maintain_order=True, nulls_last=True)
    )


def _per_sequence(rank_trace: RankTrace, owned: pl.DataFrame) -> pl.DataFrame:
    stacks = call_stacks(rank_trace)
    firsts = owned.unique("row", keep="first", maintain_order=True)
    launched = sequences(owned, "row").with_columns(
        stacks["name"].gather(firsts["row"]).alias("name"),
        (firsts["launch_start_ns"] - stacks["start_ns"].gather(firsts["row"])).alias("launch_delay"),
        (firsts["start_ns"] - firsts["launch_start_ns"]).alias("start_delay"),
    )
    table = launched.group_by("name", "sequence").agg(
        pl.len().cast(pl.Int64).alias("call_count"),
        pl.col("kernel_ns").sum(),
        pl.col("launch_delay").mean().alias("mean_operator_to_launch_ns"),
        pl.col("start_delay").mean().alias("mean_launch_to_kernel_ns"),
    )
    operator = rank_trace.texts(table["name"]).alias("operator")
    kernels = sequence_texts(rank_trace, table["sequence"], SEQUENCE_SEPARATOR).alias("kernels")
    named = table.select(operator, kernels, pl.all().exclude("name", "sequence"))
    return named.sort("call_count", "operator", "kernels", descending=[True, False, False])


def _per_forward(rank_trace: RankTrace, owned: pl.DataFrame) -> pl.DataFrame:
    stacks = call_stacks(rank_trace)
    forward_row, is_backward = _forward_rows(rank_trace, stacks, owned["row"].to_numpy())
    modules = module_of(rank_trace).rename({"event_index": "operator_index"})
    table = owned.select("kernel_ns").with_columns(
        gathered(stacks["event_index"], forward_row).alias("operator_index"),
        gathered(stacks["name"], forward_row).alias("name"),
        pl.Series("is_backward", is_backward),
    )
    sums = (
        table.join(modules, on="operator_index", how="left")
        .group_by("name", "module")
        .agg(
            *_kernels("forward", ~pl.col("is_backward")),
            *_kernels("backward", pl.col("is_backward")),
            pl.col("kernel_ns").sum(),
        )
    )
    operator, module = rank_trace.texts(sums["name"]).alias("operator"), rank_trace.texts(sums["module"])
    named = sums.select(operator, module.str.strip_prefix(MODULE_PREFIX), pl.all().exclude("name", "module"))
    return named.sort("kernel_ns", "operator", "module", descending=[True, False, False])


def _kernels(direction: str, chosen: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    return (
        chosen.sum().cast(pl.Int64).alias(f"{direction}_kernel_count"),
        pl.col("kernel_ns").filter(chosen).sum().alias(f"{direction}_kernel_ns"),
    )


def _forward_rows(
    rank_trace: RankTrace, stacks: pl.DataFrame, operators: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the row of the forward operator that each operator counts toward, and whether the operator is backward."""
    links = forward_of(rank_trace)
    forward_of_row = np.full(stacks.height, NO_PARENT, np.int64)
    forward = rows_of_events(stacks, links["forward_index"])
    forward_of_row[rows_of_events(stacks, links["event_index"])] = forward
    is_forward = np.zeros(stacks.height, np.bool_)
    is_forward[forward] = True
    parent = stacks["parent_row"].to_numpy()
    backward = itself_or_above(parent, forward_of_row != NO_PARENT, operators)
    within_forward = itself_or_above(parent, is_forward, operators)
    is_backward = backward != NO_PARENT
    itself = np.where(within_forward == NO_PARENT, operators, within_forward)
    return np.where(is_backward, forward_of_row[backward], itself), is_backward


def _findings(count: int, unknown_launch_count: int) -> tuple[str, ...]:
    if not unknown_launch_count:
        return ()
    return (f"{unknown_launch_count:,} of {count:,} kernels have no known operator",)


def _combine(partials: dict[int, _Partial]) -> OperatorKernels:
    return OperatorKernels(
        pl.concat([of_rank.per_sequence for of_rank in partials.values()]),
        pl.concat([of_rank.per_forward for of_rank in partials.values()]),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )
