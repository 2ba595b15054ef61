"""What the rules ask about one rank: rows of analyses, and a few events that no analysis lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.nesting import NO_PARENT, itself_or_above
from holotrace.analyses.distributed.compute import distributed
from holotrace.analyses.gpu_summary.compute import gpu_summary
from holotrace.analyses.idle_time.compute import idle_time
from holotrace.analyses.memory_timeline.compute import memory_timeline
from holotrace.analyses.step_time.compute import step_time
from holotrace.analyses.stragglers.compute import late_ranks, stragglers
from holotrace.content_equality import EqualByContent
from holotrace.enrich.device.device_work import device_rows, device_work
from holotrace.enrich.device.devices import is_rocm
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.attribution import device_owner, host_nodes
from holotrace.enrich.host.host_names import Compat, NodeClass, classes_by_name
from holotrace.enrich.host.node_times import node_times
from holotrace.enrich.kernels.kernel_calls import kernel_calls
from holotrace.enrich.kernels.tensor_cores import with_current_rules
from holotrace.enrich.tensorboard_plugin.communication import communication_events
from holotrace.errors import MissingDataError
from holotrace.execution.executor import Executor
from holotrace.schema import EventKind, KernelKind
from holotrace.store.trace import RankTrace, Trace

EVENTS = {
    "event": pl.String,
    "calls": pl.Int64,
    "total_ns": pl.Int64,
    "bytes": pl.Int64,
    "at_ns": pl.Int64,
}
"""What a finding rests on: see `holotrace.recommendations.advice.Advice.events`."""

DATA_PARALLEL = "DataParallel.forward"
DISTRIBUTED_DATA_PARALLEL = "DistributedDataParallel.forward"

_MOST_EVENTS = 10
_DEVICE_LIBRARIES = ("nccl", "rccl", "xccl", "hccl", "mccl", "cncl")
_HOST_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)


class HostFacts(NamedTuple):
    """What no analysis lists, of one rank.

    loading        the waits for the data loader, with the columns of `EVENTS`
    wrappers       the calls of DataParallel and DistributedDataParallel, likewise
    libraries      that carry out collectives, such as gloo and nccl
    used_devices   how many devices ran work
    properties     of all devices that the file describes
    is_rocm        whether the devices are AMD's
    eligible       share of the kernels' time that operators launch whose work tensor cores could do; None without any
    slow_eligible  these operators, by the time of their kernels that use no tensor cores
    eligible_ns    that time
    used           share of the kernels' time on tensor cores; None without any
    unknown        of eligible operators, the share whose name does not tell; None without any
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
    """All that the rules ask about one rank; the tables are its rows of the analyses' results.

    late_ranks  the ranks of the job that the others wait for, rows of `Stragglers.per_rank` and `longest_wait_ns`
    """

    rank: int
    compat: Compat | None
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


ADVICE_ANALYSES = ("step_time", "gpu_summary", "distributed", "memory_timeline", "stragglers", "idle_time")
"""Whose results the rules look at; they do without those that lack their input."""

_ANALYSES: dict[str, Callable[..., Any]] = {
    "step_time": step_time,
    "gpu_summary": gpu_summary,
    "distributed": distributed,
}


_OWN_ANALYSES: dict[str, Callable[..., Any]] = {"stragglers": stragglers, "idle_time": idle_time}


def results_for_facts(trace: Trace, compat: Compat | None, executor: Executor) -> dict[str, Any]:
    """Return the results that `facts` needs, without those that lack their input."""
    asked: dict[str, Callable[..., Any]] = {
        **{name: partial(compute, compat=compat) for name, compute in _ANALYSES.items()},
        **({} if compat else _OWN_ANALYSES),  # the plugin had nothing like them
    }
    answers = {name: _answer(compute, trace, executor) for name, compute in asked.items()}
    found = {name: answer for name, answer in answers.items() if answer is not None}
    return {**found, "memory_timeline": memory_timeline(trace, executor=executor)}


def _answer(compute: Callable[..., Any], trace: Trace, executor: Executor) -> Any:  # noqa: ANN401 -- results have no common type
    try:
        return compute(trace, executor=executor)
    except MissingDataError:
        return None  # the rules that need it say so


def facts(trace: Trace, results: Mapping[str, Any], compat: Compat | None, executor: Executor) -> dict[int, RankFacts]:
    """Return what the rules ask about each rank."""
    hosts = trace.map(with_current_rules(partial(_host_facts, compat=compat)), executor)
    found = {rank: _of_rank(rank, results, compat, host) for rank, host in hosts.items()}
    late = _late(results, found)
    return {rank: replace(each, late_ranks=late) for rank, each in found.items()}


def _late(results: Mapping[str, Any], found: Mapping[int, RankFacts]) -> tuple[dict[str, Any], ...]:
    """Return the ranks that the others wait for, with what another rank waits in a step at most, the worst first."""
    if "stragglers" not in results or any(each.compat for each in found.values()):
        return ()
    recorded = [each.step_ns * each.step_count for each in found.values() if each.step_count]
    late = late_ranks(results["stragglers"].per_rank, fmean(recorded) if recorded else 0.0)
    waits = {
        rank: each.mean_steps["mean_synchronising_ns"].max() for rank, each in found.items() if len(each.mean_steps)
    }
    others = [{each: wait for each, wait in waits.items() if each != row["rank"]} for row in late]
    return tuple(
        {**row, "longest_wait_ns": max((wait for wait in each.values() if wait is not None), default=None)}
        for row, each in zip(late, others, strict=True)
    )


def _of_rank(rank: int, results: Mapping[str, Any], compat: Compat | None, host: HostFacts) -> RankFacts:
    def rows(analysis: str, table: str) -> pl.DataFrame:
        found = getattr(results[analysis], table) if analysis in results else pl.DataFrame(schema={"rank": pl.Int32})
        return found.filter(pl.col("rank") == rank)

    means = rows("step_time", "mean")
    step = {row["category"]: (row["mean_ns"], row["fraction"]) for row in means.iter_rows(named=True)}
    return RankFacts(
        rank=rank,
        compat=compat,
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


def _host_facts(rank_trace: RankTrace, *, compat: Compat | None) -> HostFacts:
    ranges = event_ranges(rank_trace, _HOST_KINDS, ["name", "start_ns", "end_ns"])
    is_operator = np.full(ranges.height, int(NodeClass.OPERATOR), np.uint8)
    classes = pl.Series(classes_by_name(ranges["name"], is_operator, rank_trace.strings))
    is_wrapper = rank_trace.strings.is_in([DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL]).arg_true().cast(pl.UInt32)
    kernels = _owned_kernels(rank_trace, compat)
    return HostFacts(
        loading=_by_name(rank_trace, ranges.filter(classes == NodeClass.DATALOADER)),
        wrappers=_by_name(rank_trace, ranges.filter(pl.col("name").is_in(is_wrapper.implode()))),
        libraries=_libraries(rank_trace, ranges, compat),
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


def _owned_kernels(rank_trace: RankTrace, compat: Compat | None) -> pl.DataFrame:
    """Return every kernel with the operator that launched it.

    Returns:
        name               uint32  string id of the operator; null where it is not known
        start_ns, end_ns   int64
        uses_tensor_cores  bool    null where the name of the kernel does not tell
        is_counted         bool    whether the operator counts as one
        is_eligible        bool    whether it is within an eligible operator that has no eligible ones inside it
    """
    nodes = host_nodes(rank_trace, compat)
    parent, is_counted = nodes["parent"].to_numpy(), nodes["is_counted"].to_numpy()
    eligible = node_times(rank_trace, compat)["is_tensor_core_eligible"].to_numpy()
    is_lowest = eligible.copy()
    around = parent[eligible]
    is_lowest[around[around != NO_PARENT]] = False
    kernels = kernel_calls(rank_trace, compat).select("event_index", "start_ns", "end_ns", "uses_tensor_cores")
    owners = device_owner(rank_trace, compat).select("event_index", "node", "operator")
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
    """Return the share of the chosen ones in the summed time; None where there is none."""
    whole = _time(kernels)
    return _time(kernels.filter(chosen)) / whole if whole else None


def _time(kernels: pl.DataFrame) -> int:
    return int((kernels["end_ns"] - kernels["start_ns"]).sum())


def _by_name(rank_trace: RankTrace, ranges: pl.DataFrame) -> pl.DataFrame:
    """Return the longest of the ranges by name, with the start of the longest one of each."""
    duration = pl.col("end_ns") - pl.col("start_ns")
    summed = (
        ranges.drop_nulls("name")
        .group_by("name")
        .agg(
            pl.len().cast(pl.Int64).alias("calls"),
            duration.sum().alias("total_ns"),
            pl.col("start_ns").get(duration.arg_max()).alias("at_ns"),
        )
        .sort("total_ns", "at_ns", descending=[True, False])
        .head(_MOST_EVENTS)
    )
    named = summed.with_columns(rank_trace.texts(summed["name"]).alias("event"), pl.lit(None, pl.Int64).alias("bytes"))
    return named.select(pl.col(name).cast(kind) for name, kind in EVENTS.items())


def _libraries(rank_trace: RankTrace, ranges: pl.DataFrame, compat: Compat | None) -> frozenset[str]:
    """Return which libraries the host names, and nccl for kernels that communicate whoever asked for them."""
    if compat:
        names = rank_trace.derive(communication_events)["name"]
        return frozenset(names.str.extract(r"^(\w+):").drop_nulls().to_list())
    said = rank_trace.texts(ranges["name"].unique()).str.extract(r"^(\w+):\w").drop_nulls()
    host = {name for name in said.to_list() if name in {*_DEVICE_LIBRARIES, "gloo", "mpi", "ucc"}}
    is_communication = pl.col("kernel_kind") == KernelKind.COMMUNICATION
    has_kernels = not device_work(rank_trace).filter(is_communication).is_empty()
    return frozenset(host | ({"nccl"} if has_kernels else set()))


def uses_device_library(libraries: frozenset[str]) -> bool:
    """Say whether collectives run on the devices."""
    return bool(libraries.intersection(_DEVICE_LIBRARIES))
