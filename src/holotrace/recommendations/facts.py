"""The facts that rules check: rows of analyses, and a few events that no analysis lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above
from holotrace.analyses.distributed.compute import plan as distributed
from holotrace.analyses.gpu_summary.compute import plan as gpu_summary
from holotrace.analyses.idle_time.compute import plan as idle_time
from holotrace.analyses.memory_timeline.compute import plan as memory_timeline
from holotrace.analyses.step_time.compute import plan as step_time
from holotrace.analyses.stragglers.compute import late_ranks
from holotrace.analyses.stragglers.compute import plan as stragglers
from holotrace.content_equality import EqualByContent
from holotrace.enrich.attribution import Attribution
from holotrace.enrich.compat import Compat, attribution_of
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.devices import is_rocm
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.host_names import NodeClass, classes_by_name
from holotrace.schema import EventKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace

EVENTS = {
    "event": pl.String,
    "call_count": pl.Int64,
    "total_ns": pl.Int64,
    "bytes": pl.Int64,
    "at_ns": pl.Int64,
}
"""The events behind a recommendation: see `holotrace.recommendations.advice.Advice.events`."""

DATA_PARALLEL = "DataParallel.forward"
DISTRIBUTED_DATA_PARALLEL = "DistributedDataParallel.forward"

_MOST_EVENTS = 10
_HOST_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)


class HostFacts(NamedTuple):
    """The facts about one rank that no analysis lists.

    loading        the waits for the data loader, with the columns of `EVENTS`
    wrappers       the calls of DataParallel and DistributedDataParallel, with the same columns
    libraries      the libraries that carry out collectives, such as gloo and nccl
    used_devices   how many devices ran work
    properties     the properties of all devices that the file describes
    is_rocm        whether the devices are AMD's
    eligible       fraction of the kernel time launched by eligible operators, whose work tensor cores could do;
                   None without kernels
    slow_eligible  eligible operators, by the time of their kernels that do not use tensor cores
    eligible_ns    kernel time launched by eligible operators
    used           fraction of the kernel time on tensor cores; None without kernels
    unknown        fraction of the eligible operators' kernel time in kernels whose names do not show whether they use
                   tensor cores; None without eligible operators
    """

    loading: pl.DataFrame
    wrappers: pl.DataFrame
    libraries: frozenset[str]
    used_devices: int
    properties: tuple[dict[str, Any], ...]
    is_rocm: bool
    eligible: float | None
    eligible_ns: int
    slow_eligible: pl.DataFrame
    used: float | None
    unknown: float | None


@dataclass(frozen=True, eq=False)
class RankFacts(EqualByContent):
    """The facts about one rank; the tables hold the rank's rows in the results of the analyses.

    late_ranks  the ranks of the job that others wait for: rows of `Stragglers.per_rank` and `longest_wait_ns`
    """

    rank: int
    step: dict[str, tuple[float, float | None]]
    step_ns: float
    step_count: int
    devices: pl.DataFrame
    mean_steps: pl.DataFrame
    operations: pl.DataFrame
    memory: pl.DataFrame
    at_peak: pl.DataFrame
    idle: pl.DataFrame
    host: HostFacts
    late_ranks: tuple[dict[str, Any], ...] = ()


_WITH_COMPAT: dict[str, Callable[..., Plan[Any, Any]]] = {
    "step_time": step_time,
    "gpu_summary": gpu_summary,
    "distributed": distributed,
}
_WITHOUT_COMPAT: dict[str, Callable[..., Plan[Any, Any]]] = {
    "memory_timeline": memory_timeline,
    "stragglers": stragglers,
    "idle_time": idle_time,
}


def analysis_plans(names: Iterable[str], compat: Compat | None) -> dict[str, Plan[Any, Any]]:
    """Return the plans of these analyses, whose results `facts` takes."""
    plans = {name: partial(plan, compat=compat) for name, plan in _WITH_COMPAT.items()} | _WITHOUT_COMPAT
    return {name: plans[name]() for name in names}


def host_plan(compat: Compat | None = None) -> Plan[HostFacts, dict[int, HostFacts]]:
    """Return the plan for the facts that no analysis computes."""
    return Plan(partial(_host_facts, attribution=attribution_of(compat)), dict)


def facts(hosts: Mapping[int, HostFacts], results: Mapping[str, Any]) -> dict[int, RankFacts]:
    """Return the facts about each rank, from the results of `host_plan` and of the analyses."""
    of_ranks = {rank: _of_rank(rank, results, host) for rank, host in hosts.items()}
    late = _late(results, of_ranks)
    return {rank: replace(of_rank, late_ranks=late) for rank, of_rank in of_ranks.items()}


def _late(results: Mapping[str, Any], of_ranks: Mapping[int, RankFacts]) -> tuple[dict[str, Any], ...]:
    """Return the ranks that the others wait for, the worst first, each with the longest mean wait of another rank in a step."""
    if "stragglers" not in results:
        return ()
    recorded = [facts.step_ns * facts.step_count for facts in of_ranks.values() if facts.step_count]
    late = late_ranks(results["stragglers"].per_rank, fmean(recorded) if recorded else 0.0)
    return tuple({**row, "longest_wait_ns": _longest_wait(of_ranks.values(), but=row["rank"])} for row in late)


def _longest_wait(of_ranks: Iterable[RankFacts], but: int) -> float | None:
    others = [facts.mean_steps for facts in of_ranks if facts.rank != but and len(facts.mean_steps)]
    waits = [wait for means in others for wait in means["mean_synchronising_ns"] if wait is not None]
    return max(waits, default=None)


def _of_rank(rank: int, results: Mapping[str, Any], host: HostFacts) -> RankFacts:
    def rows(analysis: str, table: str) -> pl.DataFrame:
        if analysis not in results:
            return pl.DataFrame(schema={"rank": pl.Int32})
        of_all: pl.DataFrame = getattr(results[analysis], table)
        return of_all.filter(pl.col("rank") == rank)

    means = rows("step_time", "mean")
    step = {row["category"]: (row["mean_ns"], row["fraction"]) for row in means.iter_rows(named=True)}
    return RankFacts(
        rank=rank,
        step=step,
        step_ns=sum(mean_ns for mean_ns, _ in step.values()),
        step_count=len(rows("step_time", "per_step")),
        devices=rows("gpu_summary", "per_device"),
        mean_steps=rows("distributed", "per_rank"),
        operations=rows("distributed", "per_operation"),
        memory=rows("memory_timeline", "per_device"),
        at_peak=rows("memory_timeline", "at_peak"),
        idle=rows("idle_time", "per_device"),
        host=host,
    )


def _host_facts(rank_trace: RankTrace, *, attribution: Attribution) -> HostFacts:
    ranges = event_ranges(rank_trace, _HOST_KINDS, ["name", "start_ns", "end_ns"])
    is_operator = np.full(ranges.height, int(NodeClass.OPERATOR), np.uint8)
    classes = pl.Series(classes_by_name(ranges["name"], is_operator, rank_trace.strings))
    is_wrapper = rank_trace.strings.is_in([DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL]).arg_true().cast(pl.UInt32)
    kernels = _owned_kernels(rank_trace, attribution)
    return HostFacts(
        loading=_by_name(rank_trace, ranges.filter(classes == NodeClass.DATALOADER)),
        wrappers=_by_name(rank_trace, ranges.filter(pl.col("name").is_in(is_wrapper.implode()))),
        libraries=attribution.communication_libraries(rank_trace),
        used_devices=device_rows(rank_trace)["device"].drop_nulls().n_unique(),
        properties=tuple(rank_trace.header.device_properties),
        is_rocm=is_rocm(rank_trace),
        eligible=_share(kernels.filter("is_counted"), pl.col("is_eligible")),
        eligible_ns=_time(kernels.filter(pl.col("is_counted") & pl.col("is_eligible"))),
        slow_eligible=_by_name(
            rank_trace, kernels.filter(pl.col("is_eligible") & ~pl.col("uses_tensor_cores").fill_null(value=False))
        ),
        used=_share(kernels, pl.col("uses_tensor_cores").fill_null(value=False)),
        unknown=_share(kernels.filter("is_eligible"), pl.col("uses_tensor_cores").is_null()),
    )


def _owned_kernels(rank_trace: RankTrace, attribution: Attribution) -> pl.DataFrame:
    """Return every kernel with the operator that launched it.

    Returns:
        name               uint32  string id of the operator; null if unknown
        start_ns, end_ns   int64
        uses_tensor_cores  bool    null if the name of the kernel does not show it
        is_counted         bool    whether the operator counts as one
        is_eligible        bool    whether the operator is, or is inside, an eligible operator that has no eligible child
    """
    nodes = attribution.host_nodes(rank_trace)
    parent, is_counted = nodes["parent"].to_numpy(), nodes["is_counted"].to_numpy()
    eligible = attribution.node_times(rank_trace)["is_tensor_core_eligible"].to_numpy()
    is_lowest = eligible.copy()
    around = parent[eligible]
    is_lowest[around[around != NO_PARENT]] = False
    kernels = attribution.kernel_calls(rank_trace).select("event_index", "start_ns", "end_ns", "uses_tensor_cores")
    owners = attribution.device_owner(rank_trace).select("event_index", "node", "operator")
    owned = kernels.join(owners, on="event_index", how="left", maintain_order="left")
    node = owned["node"].fill_null(NO_PARENT).to_numpy()
    operator = owned["operator"].fill_null(NO_PARENT).to_numpy()
    name = nodes["name"].extend(pl.Series([None], dtype=nodes.schema["name"]))
    return owned.select("start_ns", "end_ns", "uses_tensor_cores").with_columns(
        name.gather(np.where(operator == NO_PARENT, nodes.height, operator)).alias("name"),
        pl.Series("is_counted", np.append(is_counted, False)[operator]),
        pl.Series("is_eligible", itself_or_above(parent, is_lowest, node) != NO_PARENT),
    )


def _share(kernels: pl.DataFrame, chosen: pl.Expr) -> float | None:
    """Return the fraction of the kernels' summed time that the chosen kernels take; None without kernels."""
    whole = _time(kernels)
    return _time(kernels.filter(chosen)) / whole if whole else None


def _time(kernels: pl.DataFrame) -> int:
    return int((kernels["end_ns"] - kernels["start_ns"]).sum())


def _by_name(rank_trace: RankTrace, ranges: pl.DataFrame) -> pl.DataFrame:
    """Return the names whose ranges take the most time, with the start of the longest range of each name."""
    duration = pl.col("end_ns") - pl.col("start_ns")
    summed = (
        ranges.drop_nulls("name")
        .group_by("name")
        .agg(
            pl.len().cast(pl.Int64).alias("call_count"),
            duration.sum().alias("total_ns"),
            pl.col("start_ns").get(duration.arg_max()).alias("at_ns"),
        )
        .sort("total_ns", "at_ns", descending=[True, False])
        .head(_MOST_EVENTS)
    )
    named = summed.with_columns(rank_trace.texts(summed["name"]).alias("event"), pl.lit(None, pl.Int64).alias("bytes"))
    return named.select(pl.col(name).cast(kind) for name, kind in EVENTS.items())
