"""Tests of the rules about kernels with too few blocks, too few warps, or too little work."""

from __future__ import annotations

import pytest

from device_jobs import H100, DeviceJob, cases_of, missing_for, said

SHAPE = {"block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}


def one_kernel(duration_us: float = 100, **args: object) -> DeviceJob:
    """Return a job with one hand-written kernel per step."""
    return DeviceJob().call("mine::scan", "scan_rows", start_us=10, duration_us=duration_us, args={**SHAPE, **args})


def test_a_grid_of_eight_blocks_leaves_most_of_the_device_idle() -> None:
    """The kernel has 8 blocks for 132 SMs; with a block on each SM, its 100 µs could become 6.1 µs."""
    (case,) = cases_of(one_kernel(grid=[8, 1, 1], **{"blocks per SM": 8 / 132}).build(), "small_grid").values()

    assert case.cost_ns == pytest.approx(100_000 * (1 - 8 / 132), rel=0.001)


@pytest.mark.parametrize(("duration_us", "blocks"), [(8, 8), (100, 132), (100, 66)])
def test_short_kernels_and_full_grids_are_silent(duration_us: float, blocks: int) -> None:
    """Not reported: a short kernel of 8 µs, and kernels with at least one block for every two SMs."""
    job = one_kernel(duration_us, grid=[blocks, 1, 1], **{"blocks per SM": blocks / 132})

    assert not cases_of(job.build(), "small_grid")


@pytest.mark.parametrize(
    ("args", "occupancy", "limit"),
    [
        ({"registers per thread": 255, "block": [256, 1, 1]}, 256 / 2048, "registers"),
        ({"shared memory": 100_000}, 2 * 128 / 2048, "shared memory"),
        ({"block": [800, 1, 1], "registers per thread": 70}, 800 / 2048, None),
        ({"block": [16, 1, 1]}, 32 * 16 / 2048, "block size"),
    ],
)
def test_what_limits_occupancy(args: dict[str, object], occupancy: float, limit: str | None) -> None:
    """The scarcest resource of an SM (threads, registers, or 233,472 bytes of shared memory) limits the occupancy."""
    trace = one_kernel(grid=[1000, 1, 1], **{"blocks per SM": 7.6}, **args).build()
    cases = list(cases_of(trace, "low_occupancy").values())

    assert [case.words["limit"] for case in cases] == ([limit] if limit else [])
    for case in cases:
        assert case.words["occupancy"] == pytest.approx(occupancy)
        assert case.cost_ns == pytest.approx(100_000 * (1 - occupancy / 0.5), rel=0.001)
        assert str(limit) in said(trace, "low_occupancy").what


def test_occupancy_needs_the_properties_of_the_device() -> None:
    """Without the number of registers per SM, the rule cannot decide and asks for the device properties."""
    job = DeviceJob({"id": 0, "name": H100["name"], "numSms": 132}).call("a", "scan", start_us=10, duration_us=9)

    assert "deviceProperties" in (missing_for(job.build(), "low_occupancy") or "")


def test_tiny_kernels_cost_their_fixed_time() -> None:
    """Fusing 150 tiny kernels saves 598 to 748 µs; fusing 20 kernels would save too little.

    The 598 µs are 2 µs for each kernel and 2 µs for each gap. The 748 µs are 3 µs, the full duration, for each kernel
    and 2 µs for each gap.
    """
    for count, cost_ns in ((150, [748_000]), (20, [])):
        job = DeviceJob()
        for number in range(count):
            job.call("aten::add", "add_kernel", start_us=10 + 5 * number, duration_us=3)
        cases = cases_of(job.build(), "tiny_kernels").values()
        assert [round(case.cost_ns) for case in cases] == [pytest.approx(cost, rel=0.001) for cost in cost_ns]
        assert [case.value for case in cases] == [pytest.approx(0.598, rel=0.05) for _ in cost_ns]
