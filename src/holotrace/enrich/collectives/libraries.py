"""The libraries that perform the collectives of a rank."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import EventKind, KernelKind
from holotrace.store.trace import RankTrace

_ON_DEVICES = frozenset({"nccl", "rccl", "xccl", "hccl", "mccl", "cncl"})
_KNOWN = _ON_DEVICES | {"gloo", "mpi", "ucc"}
_HOST_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)


def communication_libraries(rank_trace: RankTrace) -> frozenset[str]:
    """Return the libraries named by host events (such as `gloo:all_reduce`), and nccl if any kernel communicates."""
    names = event_ranges(rank_trace, _HOST_KINDS, ["name"])["name"].unique()
    prefixes = rank_trace.texts(names).str.extract(r"^(\w+):\w").drop_nulls()
    is_communication = pl.col("kernel_kind") == KernelKind.COMMUNICATION
    has_kernels = not device_work(rank_trace).filter(is_communication).is_empty()
    return _KNOWN.intersection(prefixes) | ({"nccl"} if has_kernels else set())


def uses_device_library(libraries: frozenset[str]) -> bool:
    """Return whether collectives run on the devices."""
    return not libraries.isdisjoint(_ON_DEVICES)
