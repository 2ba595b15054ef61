"""The recommendations of PyTorch's TensorBoard plugin, with the plugin's thresholds, numbers and mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

import holotrace
from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above
from holotrace.enrich.compat import Compat, attribution_of
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.tensorboard_plugin.communication import communication_events
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace, Trace

RECOMMENDATIONS = {
    "rule": pl.String,
    "rank": pl.Int32,
    "device": pl.Int32,
    "value_fraction": pl.Float64,
    "limit_fraction": pl.Float64,
    "advice": pl.String,
}
_COMPAT: Compat = "torch_tb_profiler"
_LOADING, _COMMUNICATION, _UTILIZATION, _ELIGIBLE, _MEMORY = 0.05, 0.10, 0.50, 0.0, 0.90
_TENSOR_CORES, _NCCL = (7, 0), (3, 5)


class _Case(NamedTuple):
    """A case to which a rule applies: the device (None for a rule about ranks), the measured fraction and its limit."""

    device: int | None = None
    value: float | None = None
    limit: float | None = None


class _Rank(NamedTuple):
    """The data of one rank: its rows in results of analyses, and the compute capabilities of its devices."""

    trace: RankTrace
    step: Mapping[str, float | None]
    devices: pl.DataFrame
    memory: pl.DataFrame

    @property
    def capabilities(self) -> list[tuple[int, int]]:
        """Each compute capability as two integers, so that 3.10 counts as higher than 3.5; (0, 0) if unknown."""
        known = ((row.get("computeMajor"), row.get("computeMinor")) for row in self.trace.header.device_properties)
        return [
            (major, minor) if isinstance(major, int) and isinstance(minor, int) else (0, 0) for major, minor in known
        ]

    def calls(self, wrapper: str) -> bool:
        """Whether the rank called a wrapper, such as `DataParallel.forward`."""
        names = (self.trace.strings == wrapper).arg_true().cast(pl.UInt32)
        return len(event_ranges(self.trace, (EventKind.CPU_OP, EventKind.USER_ANNOTATION), ["name"], names=names)) > 0


def plugin_recommendations(trace: Trace) -> pl.DataFrame:
    """Return one row for each case (rank and device) to which a rule of the plugin applies.

    Returns:
        In the plugin's order:

        rule            str      data_loading, data_parallel, ddp_backend, communication, low_utilization, mixed_precision
                                 or memory_limit
        rank            int32
        device          int32    null if the rule is not about a device
        value_fraction  float64  0..1, as measured; null if the rule measures nothing
        limit_fraction  float64  the plugin's limit
        advice          str      what to try
    """
    ranks = _ranks(trace)
    rows = [
        (rule, rank.trace.rank, *case, advice)
        for rule, (cases, advice) in _RULES.items()
        for rank in ranks
        for case in cases(rank)
    ]
    return pl.DataFrame(rows, RECOMMENDATIONS, orient="row")


def _ranks(trace: Trace) -> list[_Rank]:
    means = _table(lambda: holotrace.step_time(trace, compat=_COMPAT).mean)
    devices = _table(lambda: holotrace.gpu_summary(trace, compat=_COMPAT).per_device)
    memory = _table(lambda: holotrace.memory_timeline(trace).per_device)
    return [
        _Rank(
            rank_trace,
            dict(means.filter(rank=rank).select("category", "fraction").iter_rows()) if len(means) else {},
            devices.filter(rank=rank),
            memory.filter(rank=rank),
        )
        for rank, rank_trace in trace.ranks.items()
    ]


def _table(asked: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Return the table of an analysis, or an empty table if its input was not recorded."""
    try:
        return asked()
    except holotrace.MissingDataError:
        return pl.DataFrame(schema={"rank": pl.Int32})


def _loading(rank: _Rank) -> Iterator[_Case]:
    yield from _over(rank.step.get("dataloader"), _LOADING)


def _communication(rank: _Rank) -> Iterator[_Case]:
    yield from _over(rank.step.get("communication"), _COMMUNICATION)


def _over(fraction: float | None, limit: float) -> Iterator[_Case]:
    if fraction is not None and fraction > limit:
        yield _Case(None, fraction, limit)


def _data_parallel(rank: _Rank) -> Iterator[_Case]:
    if rank.calls("DataParallel.forward") and device_rows(rank.trace)["device"].drop_nulls().n_unique() > 1:
        yield _Case()


def _ddp_backend(rank: _Rank) -> Iterator[_Case]:
    """Yield a case if DistributedDataParallel runs, a device supports NCCL, and no communication uses NCCL.

    This includes ranks that do not communicate at all.
    """
    names = communication_events(rank.trace)["name"]
    is_able = any(capability >= _NCCL for capability in rank.capabilities)
    if is_able and rank.calls("DistributedDataParallel.forward") and not names.str.starts_with("nccl:").any():
        yield _Case()


def _low_utilization(rank: _Rank) -> Iterator[_Case]:
    for row in rank.devices.iter_rows(named=True):
        if row["utilization_fraction"] is not None and row["utilization_fraction"] < _UTILIZATION:
            yield _Case(row["device"], row["utilization_fraction"], _UTILIZATION)


def _mixed_precision(rank: _Rank) -> Iterator[_Case]:
    """Yield a case if the first device has tensor cores and no kernel uses them, although some operators could."""
    if any(first >= _TENSOR_CORES for first in rank.capabilities[:1]):
        kernels = _owned_kernels(rank.trace)
        if not kernels["uses_tensor_cores"].any():
            yield from _over(_eligible_fraction(kernels.filter("is_counted")), _ELIGIBLE)


def _eligible_fraction(kernels: pl.DataFrame) -> float | None:
    whole = int(kernels["duration_ns"].sum())
    return int(kernels.filter("is_eligible")["duration_ns"].sum()) / whole if whole else None


def _memory_limit(rank: _Rank) -> Iterator[_Case]:
    """Yield at most one case.

    Repeats a mistake of the plugin, which compares the CPU's peak memory with the last GPU's capacity.
    """
    sizes = [properties.get("totalGlobalMem") for properties in rank.trace.header.device_properties]
    for row in rank.memory.iter_rows(named=True):
        size = sizes[row["device"]] if -len(sizes) <= row["device"] < len(sizes) else None
        if size and row["peak_bytes"] > _MEMORY * size:
            yield _Case(row["device"], row["peak_bytes"] / size, _MEMORY)
            return


def _owned_kernels(rank_trace: RankTrace) -> pl.DataFrame:
    """Return every kernel with properties of the operator that launched it.

    Returns:
        duration_ns        int64
        uses_tensor_cores  bool
        is_counted         bool   whether the plugin counts the operator; false if no operator launched the kernel
        is_eligible        bool   whether the operator, or one of its ancestors, could use tensor cores and has no child
                                  that could use them
    """
    attribution = attribution_of(_COMPAT)
    nodes = attribution.host_nodes(rank_trace)
    parent, is_counted = nodes["parent"].to_numpy(), nodes["is_counted"].to_numpy()
    eligible = attribution.node_times(rank_trace)["is_tensor_core_eligible"].to_numpy()
    is_lowest = eligible.copy()
    around = parent[eligible]
    is_lowest[around[around != NO_PARENT]] = False
    kernels = attribution.kernel_calls(rank_trace)
    owners = attribution.device_owner(rank_trace).select("event_index", "node", "operator")
    owned = kernels.join(owners, on="event_index", how="left", maintain_order="left")
    node = owned["node"].fill_null(NO_PARENT).to_numpy()
    operator = owned["operator"].fill_null(NO_PARENT).to_numpy()
    return owned.select(
        (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
        "uses_tensor_cores",
        pl.Series("is_counted", np.append(is_counted, False)[operator]),
        pl.Series("is_eligible", itself_or_above(parent, is_lowest, node) != NO_PARENT),
    )


_RULES: dict[str, tuple[Callable[[_Rank], Iterator[_Case]], str]] = {
    "data_loading": (_loading, "load data in several processes (num_workers)"),
    "data_parallel": (_data_parallel, "use DistributedDataParallel instead of DataParallel"),
    "ddp_backend": (_ddp_backend, "use the backend nccl, which these devices support"),
    "communication": (_communication, "communicate less: compress, accumulate gradients, or use larger batches"),
    "low_utilization": (_low_utilization, "use larger batches"),
    "mixed_precision": (_mixed_precision, "use automatic mixed precision, so that operators run on tensor cores"),
    "memory_limit": (_memory_limit, "checkpoint activations, shard the optimizer's state, or use mixed precision"),
}
"""For each rule: a function that yields the rule's cases on one rank, and the rule's advice."""
