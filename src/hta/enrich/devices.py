"""What the devices of a rank are, as the file says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from hta.enrich.device_work import device_work

if TYPE_CHECKING:
    from hta.store.trace import RankTrace

_SCHEMA = {
    "device": pl.Int32,
    "device_name": pl.String,
    "memory_bytes": pl.Int64,
    "compute_capability": pl.String,
}


def devices_of_rank(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the devices on which the rank ran work; what the file does not say of one is null.

    Returns:
        Sorted by device:

        device              int32
        device_name         str
        memory_bytes        int64  of the whole device
        compute_capability  str    `8.0`; of AMD devices the numbers of the architecture
    """
    used = device_work(rank_trace)["device"].unique().sort().to_list()
    return described_devices(rank_trace, used)


def described_devices(rank_trace: RankTrace, devices: list[int]) -> pl.DataFrame:
    """Return `devices_of_rank` for these devices."""
    properties = rank_trace.header.device_properties
    by_number = {each.get("id", place): each for place, each in enumerate(properties)}
    rows = [(device, *_described(by_number.get(device, {}))) for device in devices]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _described(properties: dict[str, Any]) -> tuple[str | None, int | None, str | None]:
    name, memory = properties.get("name"), properties.get("totalGlobalMem")
    major, minor = properties.get("computeMajor"), properties.get("computeMinor")
    return (
        name if isinstance(name, str) else None,
        memory if isinstance(memory, int) else None,
        f"{major}.{minor}" if isinstance(major, int) and isinstance(minor, int) else None,
    )
