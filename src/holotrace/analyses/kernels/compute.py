"""Which kernels ran, with which launch shape and operator, and how well did they fill the device?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import polars as pl

from holotrace.enrich.attribution import Attribution
from holotrace.enrich.compat import Compat, attribution_of
from holotrace.enrich.device.device_work import no_device_work
from holotrace.enrich.graph_attribution.findings import graph_findings
from holotrace.enrich.host.host_nodes import node_texts
from holotrace.enrich.host.source_lines import lines_of_events
from holotrace.enrich.job.findings import joined_findings
from holotrace.enrich.kernels.kernel_calls import BLOCK, GRID
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import counted

_RESOURCES = ("registers_per_thread", "shared_memory_bytes")


@dataclass(frozen=True, eq=False, repr=False)
class Kernels(Result):
    """The kernels of each rank, grouped in two ways.

    Unless the option `compat` is set, `total_ns` has the same sum in both tables.

    per_kernel    one row per rank and name, sorted by rank, the largest total_ns first:

        rank                     int32
        name                     str      as recorded
        uses_tensor_cores        bool     whether the kernel uses tensor or matrix cores; null if its name does not show this
        call_count               int64
        total_ns                 int64    sum of the durations of all calls, even if they overlap
        mean_ns                  float64
        min_ns, max_ns           int64
        mean_blocks_per_sm       float64  mean over the calls for which the value is known, weighted by duration; null if it
                                          is unknown for all calls
        mean_occupancy_fraction  float64  0..1, estimated occupancy; averaged in the same way as mean_blocks_per_sm
        blocks_per_sm_known_fraction, occupancy_known_fraction
                            float64  0..1, share of total_ns spent in calls for which the value is known; null if total_ns is 0
        source_line              str      line of the user's code, as in `source_lines`, whose kernels take the largest
                                          part of total_ns; null if unknown

    per_launch_shape  one row per rank, name, operator and launch shape, sorted by rank, the largest total_ns first:

        rank, name                            as above
        operator                              str    operator that launched the kernel; null if unknown
        grid, block                           str    "[1, 2, 3]"; null if not recorded
        registers_per_thread                  int64  null if not recorded
        shared_memory_bytes                   int64  null if not recorded
        is_operator_eligible                  bool   whether tensor cores could do the operator's work
        uses_tensor_cores … source_line       as above

    findings   ranks without device work, and missing data

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.kernels(small_job()).answer
    '61.5 % of the kernel time (1.6 ms) goes into gemm, more than into any other kernel.'
    """

    per_kernel: pl.DataFrame
    per_launch_shape: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_kernel: pl.DataFrame
    per_launch_shape: pl.DataFrame
    findings: tuple[str, ...]


def kernels(trace: Trace, *, compat: Compat | None = None, executor: Executor = IN_PROCESS) -> Kernels:
    """Count the kernels of each rank, once by name and once by name, operator and launch shape.

    Copies and memsets are ignored. The operator of a kernel is the innermost operator around the kernel's launch.

    Args:
        trace: the job.
        compat: "torch_tb_profiler" gives the numbers of PyTorch's TensorBoard plugin. The means then treat missing values as
            0, and `per_launch_shape` lacks kernels whose launching thread is unknown.
        executor: processes each rank.

    Raises:
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/kernels.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.kernels(small_job()).per_kernel.select("rank", "name", "call_count", "mean_ns").head(2).rows()
    [(0, 'gemm', 2, 300000.0), (0, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', 2, 300000.0)]
    """
    return plan(compat=compat).run(trace, executor)


def plan(*, compat: Compat | None = None) -> Plan[_Partial, Kernels]:
    """Return the two functions of `kernels`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(partial(_one_rank, attribution=attribution_of(compat)), _combine)


def joined_over_ranks(result: Kernels) -> pl.DataFrame:
    """Return `per_kernel` joined over all ranks, the largest total first, with each kernel's share of all kernel time."""
    weights = pl.col("total_ns")
    joined = result.per_kernel.group_by("name").agg(
        pl.col("uses_tensor_cores").first(),
        pl.col("call_count", "total_ns").sum(),
        pl.col("min_ns").min(),
        pl.col("max_ns").max(),
        *_mean_of_means("mean_blocks_per_sm", "blocks_per_sm_known_fraction"),
        *_mean_of_means("mean_occupancy_fraction", "occupancy_known_fraction"),
        pl.col("source_line").sort_by("total_ns", descending=True).drop_nulls().first(),
    )
    total = max(1, joined.get_column("total_ns").sum())
    shared = joined.with_columns(fraction=weights / total, mean_ns=weights / pl.col("call_count"))
    return shared.sort(["total_ns", "name"], descending=[True, False])


def _mean_of_means(mean: str, known_fraction: str) -> tuple[pl.Expr, pl.Expr]:
    weight, known = pl.col("total_ns"), pl.col("total_ns") * pl.col(known_fraction)
    return (
        pl.when(known.sum() > 0).then((pl.col(mean) * known).sum() / known.sum()).alias(mean),
        pl.when(weight.sum() > 0).then(known.sum() / weight.sum()).alias(known_fraction),
    )


def _one_rank(rank_trace: RankTrace, *, attribution: Attribution) -> _Partial:
    calls = attribution.kernel_calls(rank_trace).with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
    if calls.is_empty():
        raise no_device_work(rank_trace, "kernels")
    calls = calls.with_columns(lines_of_events(rank_trace, calls["event_index"])["source_line"])
    per_launch_shape = attribution.listed_launches(_with_operators(rank_trace, calls, attribution))
    keys = ["name", "operator", *GRID, *BLOCK, *_RESOURCES, "is_operator_eligible"]
    return _Partial(
        _summed(rank_trace, attribution.kernels_by_name(rank_trace, calls), ["name"], attribution),
        _with_texts(_summed(rank_trace, per_launch_shape, keys, attribution)),
        attribution.shown_findings((*_findings(calls, per_launch_shape), *graph_findings(rank_trace))),
    )


def _with_operators(rank_trace: RankTrace, calls: pl.DataFrame, attribution: Attribution) -> pl.DataFrame:
    """Add the name of each call's operator, and whether tensor cores could do the operator's work."""
    nodes = attribution.host_nodes(rank_trace)
    owners = attribution.device_owner(rank_trace).select("event_index", pl.col("operator").replace(-1, None))
    owned = calls.join(owners, on="event_index", how="left", maintain_order="left")
    distinct = owned["operator"].unique().drop_nulls()
    texts = node_texts(rank_trace, nodes[distinct])
    is_eligible = attribution.is_tensor_core_eligible(texts)
    names = pl.DataFrame({"operator": distinct, "text": texts, "is_operator_eligible": is_eligible})
    named = owned.join(names, on="operator", how="left", maintain_order="left").drop("operator")
    return named.rename({"text": "operator"}).with_columns(pl.col("is_operator_eligible").fill_null(value=False))


def _summed(rank_trace: RankTrace, calls: pl.DataFrame, keys: Sequence[str], attribution: Attribution) -> pl.DataFrame:
    duration = pl.col("duration_ns")
    sums = calls.group_by(keys).agg(
        pl.col("uses_tensor_cores").first(),
        pl.len().cast(pl.Int64).alias("call_count"),
        duration.sum().alias("total_ns"),
        duration.mean().alias("mean_ns"),
        duration.min().alias("min_ns"),
        duration.max().alias("max_ns"),
        attribution.mean_by_duration("blocks_per_sm").alias("mean_blocks_per_sm"),
        _known("blocks_per_sm").alias("blocks_per_sm_known_fraction"),
        attribution.mean_by_duration("occupancy_fraction").alias("mean_occupancy_fraction"),
        _known("occupancy_fraction").alias("occupancy_known_fraction"),
    )
    sums = sums.join(_longest_lines(calls, keys), on=keys, how="left", nulls_equal=True)
    named = sums.with_columns(rank_trace.texts(sums["name"]), pl.lit(rank_trace.rank, pl.Int32).alias("rank"))
    order = ["total_ns", *keys]
    return named.select("rank", *keys, pl.exclude("rank", *keys)).sort(
        order, descending=[True] + [False] * len(keys), nulls_last=True
    )


def _longest_lines(calls: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return, for each group of calls, the line of code whose kernels take the most time in total."""
    known = calls.select(*keys, "source_line", "duration_ns").drop_nulls("source_line")
    sums = known.group_by(*keys, "source_line").agg(pl.col("duration_ns").sum())
    first = sums.sort("duration_ns", "source_line", descending=[True, False]).unique(keys, keep="first")
    return first.drop("duration_ns")


def _with_texts(per_launch_shape: pl.DataFrame) -> pl.DataFrame:
    """Merge the three dimensions of the grid into one column, and the three dimensions of the block into another."""
    texts = [_text(columns).alias(name) for name, columns in (("grid", GRID), ("block", BLOCK))]
    head = ["rank", "name", "operator"]
    return per_launch_shape.select(*head, *texts, pl.exclude(*head, *GRID, *BLOCK))


def _text(columns: tuple[str, str, str]) -> pl.Expr:
    x, y, z = map(pl.col, columns)
    return pl.when(x.is_not_null()).then(pl.format("[{}, {}, {}]", x, y, z))


def _known(column: str) -> pl.Expr:
    weight = pl.col("duration_ns")
    return pl.when(weight.sum() > 0).then(weight.filter(pl.col(column).is_not_null()).sum() / weight.sum())


def _findings(calls: pl.DataFrame, per_launch_shape: pl.DataFrame) -> tuple[str, ...]:
    unowned = per_launch_shape["operator"].null_count()
    is_estimated = bool(calls["is_estimated"].any())
    unknown = calls.filter(pl.col("uses_tensor_cores").is_null())["name"].n_unique()
    sentences = (
        (unowned, f"{unowned:,} of {counted(len(calls), 'kernel')} have no known operator"),
        (calls["blocks_per_sm"].count() == 0, "blocks per SM and occupancy were not recorded"),
        (is_estimated, "occupancy is estimated from launch shapes; it is an upper bound"),
        (unknown, f"the names of {counted(unknown, 'kernel')} do not show whether they use tensor cores"),
    )
    return tuple(sentence for is_so, sentence in sentences if is_so)


def _combine(partials: dict[int, _Partial]) -> Kernels:
    return Kernels(
        pl.concat([of_rank.per_kernel for of_rank in partials.values()]),
        pl.concat([of_rank.per_launch_shape for of_rank in partials.values()]),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )
