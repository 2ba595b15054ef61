"""What a trace file says about itself outside its events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OPTION_NAMES = ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
"""Profiler options a trace records; a missing key means the option was off."""

HIGHEST_RANK = 2**31 - 1
"""Ranks are kept as int32; a larger number in a file is no rank."""


@dataclass(frozen=True)
class Header:
    """Top-level keys of a trace; what the file does not say is None, 0 or empty.

    rank, world_size, backend   from `distributedInfo`
    device_properties           one dict per visible device, as written
    base_time_ns                `baseTimeNanoseconds`; every stored time already has it added
    options                     every name of OPTION_NAMES: whether that profiler option was on
    host_name, trace_name       as written
    raw                         all top-level keys except `traceEvents`, as written
    """

    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    device_properties: list[dict[str, Any]] = field(default_factory=list)
    base_time_ns: int = 0
    options: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(OPTION_NAMES, False))
    host_name: str | None = None
    trace_name: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str) -> Header:
        """Read the header as the reader hands it over: one JSON object."""
        return cls.from_keys(json.loads(text))

    @classmethod
    def from_keys(cls, raw: Mapping[str, Any]) -> Header:
        """Pick the known keys; a value of an unexpected type counts as missing."""
        distributed = raw.get("distributedInfo")
        distributed = distributed if isinstance(distributed, dict) else {}
        devices = raw.get("deviceProperties")
        return cls(
            rank=rank_or_none(_count(distributed.get("rank"))),
            world_size=_count(distributed.get("world_size")),
            backend=_text(distributed.get("backend")),
            device_properties=[each for each in devices if isinstance(each, dict)] if isinstance(devices, list) else [],
            base_time_ns=_count(raw.get("baseTimeNanoseconds")) or 0,
            options={name: bool(raw.get(name)) for name in OPTION_NAMES},
            host_name=_text(raw.get("host_name")),
            trace_name=_text(raw.get("traceName")),
            raw=dict(raw),
        )


def rank_or_none(number: int | None) -> int | None:
    """Return a number that can be a rank; PyTorch writes -1 for "not set", and a damaged file may hold anything."""
    return number if number is not None and 0 <= number <= HIGHEST_RANK else None


def _count(value: object) -> int | None:
    """Return a whole number from 0; -1, which PyTorch writes for "not set", counts as missing."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
