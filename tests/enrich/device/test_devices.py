"""Tests of the devices of a rank."""

from __future__ import annotations

from holotrace.enrich.device.devices import described_devices, devices_of_rank
from holotrace.testing.builder import TraceBuilder

GPU = {"id": 1, "name": "GPU-B", "totalGlobalMem": 80_000, "computeMajor": 9, "computeMinor": 0}


def test_properties_are_found_by_device_number() -> None:
    """The only listed device has id 1, so device 1 gets its properties and device 3 gets none."""
    builder = TraceBuilder().header(deviceProperties=[GPU])
    for device in (3, 1):
        builder.kernel("k", start_us=0, duration_us=1, device=device)
    assert devices_of_rank(builder.build().ranks[0]).rows() == [(1, "GPU-B", 80_000, "9.0"), (3, None, None, None)]


def test_without_numbers_the_position_counts() -> None:
    """Files from 2021 list devices by position, without ids; values of unexpected types become null."""
    builder = TraceBuilder().header(deviceProperties=[{"name": "GPU-A"}, {"name": 7, "totalGlobalMem": "much"}])
    rank_trace = builder.kernel("k", start_us=0, duration_us=1).build().ranks[0]
    assert described_devices(rank_trace, [0, 1]).rows() == [(0, "GPU-A", None, None), (1, None, None, None)]
    assert devices_of_rank(TraceBuilder().build().ranks[0]).is_empty()
