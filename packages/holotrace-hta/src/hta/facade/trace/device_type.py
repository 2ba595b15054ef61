"""Infers the vendor of a trace's devices; vendors have the same names as in HTA."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.trace import RankTrace

UNKNOWN = "UNKNOWN GPU"

_CALLS = (
    (re.compile(r"hip[A-Z_]"), "AMD GPU"),
    (re.compile(r"cu(da)?[A-Z]"), "NVIDIA GPU"),
    (re.compile(r"runFunction - "), "MTIA"),
)
"""Prefixes of runtime calls. AMD comes first, because programs ported to AMD may keep some CUDA names."""


def device_type(rank_trace: RankTrace) -> str:
    """Infer the vendor from calls that launch device work; `UNKNOWN GPU` if none of these calls is known."""
    if is_mtia(rank_trace.header.raw):
        return "MTIA"
    kinds = (*LAUNCH_KINDS, EventKind.ACCELERATOR)
    return vendor_of(rank_trace.texts(event_ranges(rank_trace, kinds, ["name"])["name"].unique()).to_list())


def vendor_of(calls: Sequence[str]) -> str:
    """Return the vendor whose runtime has one of these calls, or `UNKNOWN GPU`."""
    return next((vendor for call, vendor in _CALLS if any(call.match(name) for name in calls)), UNKNOWN)


def is_mtia(header: Mapping[str, Any]) -> bool:
    """Return whether the distributed backend in the header is a backend for MTIA devices."""
    distributed = header.get("distributedInfo")
    return isinstance(distributed, Mapping) and "mtia" in str(distributed.get("backend", ""))
