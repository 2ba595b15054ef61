"""Reads the properties of a rank's devices from its file."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.events.event_names import names_matching
from holotrace.store.trace import RankTrace

_SCHEMA = {
    "device": pl.Int32,
    "device_name": pl.String,
    "memory_bytes": pl.Int64,
    "compute_capability": pl.String,
}


def devices_of_rank(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the devices that the rank used; properties that the file lacks are null.

    Returns:
        Sorted by device:

        device              int32
        device_name         str
        memory_bytes        int64  total memory
        compute_capability  str    such as `8.0`; for AMD devices, the version of the architecture
    """
    used = device_work(rank_trace)["device"].unique().sort().to_list()
    return described_devices(rank_trace, used)


def described_devices(rank_trace: RankTrace, devices: list[int]) -> pl.DataFrame:
    """Return a table like that of `devices_of_rank`, but for these devices."""
    described = zip(devices, properties_of(rank_trace, devices), strict=True)
    return pl.DataFrame(
        [(device, *_described(properties)) for device, properties in described], schema=_SCHEMA, orient="row"
    )


def properties_of(rank_trace: RankTrace, devices: list[int]) -> list[dict[str, Any]]:
    """Return the `deviceProperties` of each device; an empty dict if the file has none.

    ROCm also numbers CPUs as devices: with two CPUs, GPU 0 is device 2. But `deviceProperties` lists only GPUs, so in a
    ROCm file, a device that is not listed gets the properties that all listed devices have in common.
    """
    listed = rank_trace.header.device_properties
    by_number = {_number(properties, place): properties for place, properties in enumerate(listed)}
    other = _in_common(listed) if is_rocm(rank_trace) else {}
    return [by_number.get(device, other) for device in devices]


def _number(properties: dict[str, Any], place: int) -> int:
    number = properties.get("id", place)
    return number if isinstance(number, int) else place


def _in_common(listed: list[dict[str, Any]]) -> dict[str, Any]:
    first = listed[0] if listed else {}
    return {key: value for key, value in first.items() if all(properties.get(key) == value for properties in listed)}


def is_rocm(rank_trace: RankTrace) -> bool:
    """Return whether calls of the HIP runtime were recorded."""
    return not names_matching(rank_trace.unselected, "^hip[A-Z]").is_empty()


def _described(properties: dict[str, Any]) -> tuple[str | None, int | None, str | None]:
    name, memory = properties.get("name"), properties.get("totalGlobalMem")
    major, minor = properties.get("computeMajor"), properties.get("computeMinor")
    return (
        name if isinstance(name, str) else None,
        memory if isinstance(memory, int) else None,
        f"{major}.{minor}" if isinstance(major, int) and isinstance(minor, int) else None,
    )
