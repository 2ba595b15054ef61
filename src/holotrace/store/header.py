"""The header of a trace file: everything outside its events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

OPTION_NAMES = ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
"""Profiler options in the header of a trace; a missing key means that the option was off."""

_NO_INT64 = 2**63
_MOST_DIGITS = 40

HIGHEST_RANK = 2**31 - 1
"""Ranks are stored as int32; larger numbers in a file are not accepted as ranks."""


@dataclass(frozen=True)
class Header:
    """Top-level keys of a trace; missing keys are None, 0 or empty.

    rank, world_size, backend   from `distributedInfo`
    device_properties           one dict per visible device; its values are strings, or numbers that fit into 64 bits
    base_time_ns                `baseTimeNanoseconds`; it is already added to all stored times
    options                     for each name in OPTION_NAMES, whether the profiler option was on
    host_name, trace_name       names as written in the file
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
        """Parse the header from the JSON object that the reader returns."""
        return cls.from_keys(json.loads(text, parse_int=_whole_number))

    @classmethod
    def from_keys(cls, raw: Mapping[str, Any]) -> Header:
        """Pick the known keys; treat values of unexpected types as missing."""
        distributed = raw.get("distributedInfo")
        distributed = distributed if isinstance(distributed, dict) else {}
        devices = raw.get("deviceProperties")
        return cls(
            rank=rank_or_none(_count(distributed.get("rank"))),
            world_size=_count(distributed.get("world_size")),
            backend=_text(distributed.get("backend")),
            device_properties=[_properties(device) for device in devices if isinstance(device, dict)]
            if isinstance(devices, list)
            else [],
            base_time_ns=_count(raw.get("baseTimeNanoseconds")) or 0,
            options={name: bool(raw.get(name)) for name in OPTION_NAMES},
            host_name=_text(raw.get("host_name")),
            trace_name=_text(raw.get("traceName")),
            raw=dict(raw),
        )


def rank_or_none(number: int | None) -> int | None:
    """Return the number if it can be a rank, else None; PyTorch writes -1 for "not set"."""
    return number if number is not None and 0 <= number <= HIGHEST_RANK else None


def _whole_number(text: str) -> int | float:
    """Parse an integer; if it has more than `_MOST_DIGITS` digits, return a float.

    By default, Python refuses to parse integers with thousands of digits:
    https://docs.python.org/3/library/stdtypes.html#int-max-str-digits
    """
    return int(text) if len(text) <= _MOST_DIGITS else float(text)


def _count(value: object) -> int | None:
    """Return the value if it is an integer of 0 or more that fits into int64, else None.

    PyTorch writes -1 for "not set".
    """
    if isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _NO_INT64 else None


def _text(value: object) -> str | None:
    """Return a string; an unpaired surrogate, which UTF-8 cannot encode, becomes a question mark."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _properties(device: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a device; values other than strings and numbers are dropped."""
    texts = {name: _text(value) for name, value in device.items() if isinstance(value, str)}
    return texts | {name: value for name, value in device.items() if _is_number(value)}


def _is_number(value: object) -> bool:
    """Return whether a value is a whole number that fits into 64 bits, or a finite float."""
    if isinstance(value, bool):
        return False
    return -_NO_INT64 <= value < _NO_INT64 if isinstance(value, int) else isinstance(value, float) and isfinite(value)
