"""Tests of kernel_calls: the launch shapes of kernels."""

from __future__ import annotations

import gzip
import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from holotrace.enrich.kernels.kernel_calls import BLOCK, GRID, kernel_calls
from holotrace.enrich.tensorboard_plugin.kernels import plugin_kernel_calls
from holotrace.ingest.open_trace import open_trace
from holotrace.schema import LAUNCH_KINDS
from holotrace.testing.builder import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from holotrace.store.trace import RankTrace

MI300 = {"id": 0, "name": "AMD Instinct MI300X", "numSms": 304, "maxThreadsPerMultiprocessor": 2048}
THREADS = 608 * 256


def launched(call: str, grid: list[int], *, where: str, block: tuple[int, int, int] = (256, 1, 1)) -> TraceBuilder:
    """Build a launch of one kernel; `where` says whose args contain grid and block: call, kernel or both."""
    shape = {"grid": grid, "block": list(block)}
    builder = TraceBuilder().header(deviceProperties=[MI300])
    args = {"call": (shape, {}), "kernel": ({}, shape), "both": (shape, shape)}[where]
    builder.runtime(call, start_us=0, duration_us=1, correlation=1, args=args[0])
    return builder.kernel("k", start_us=2, duration_us=1, correlation=1, args=args[1])


@pytest.mark.parametrize("where", ["call", "kernel", "both"])
@pytest.mark.parametrize(
    ("call", "grid"),
    [
        ("hipLaunchKernel", [608, 1, 1]),
        ("hipExtLaunchKernel", [608, 1, 1]),
        ("hipModuleLaunchKernel", [608, 1, 1]),
        ("hipLaunchCooperativeKernel", [608, 1, 1]),
        ("hipExtModuleLaunchKernel", [THREADS, 1, 1]),
        ("hipHccModuleLaunchKernel", [THREADS, 1, 1]),
        ("cudaLaunchKernel", [608, 1, 1]),
    ],
)
def test_the_grid_counts_blocks_for_every_launching_call(call: str, grid: list[int], where: str) -> None:
    """608 blocks of 256 threads on 304 compute units are 2 blocks per unit.

    They occupy 512 of the 2,048 threads that a unit can run.
    """
    row = kernel_calls(launched(call, grid, where=where).build().ranks[0]).row(0, named=True)

    assert [row[name] for name in (*GRID, *BLOCK)] == [608, 1, 1, 256, 1, 1]
    assert (row["blocks_per_sm"], row["occupancy_fraction"], row["is_estimated"]) == (2.0, 0.25, True)


def test_a_partial_last_block_counts() -> None:
    """1,000 threads in blocks of 256 make 4 blocks, and 3 threads in blocks of 2 make 2 blocks."""
    builder = launched("hipExtModuleLaunchKernel", [1_000, 3, 1], block=(256, 2, 1), where="both")

    assert kernel_calls(builder.build().ranks[0]).select(GRID).row(0) == (4, 2, 1)


def test_a_shape_of_zeros_is_unknown() -> None:
    """Kineto writes zeros if it does not read a launch's arguments, for example for launches on several devices."""
    call = "hipExtLaunchMultiKernelMultiDevice"
    row = kernel_calls(launched(call, [0, 0, 0], block=(0, 0, 0), where="both").build().ranks[0]).row(0, named=True)

    assert (row["blocks_per_sm"], row["occupancy_fraction"], row["is_estimated"]) == (None, None, False)


def test_the_shape_remains_if_the_launch_is_not_selected() -> None:
    """The grid is converted from threads to blocks even if only the kernel, not its call, is selected."""
    rank_trace = launched("hipExtModuleLaunchKernel", [THREADS, 1, 1], where="kernel").build().ranks[0]

    assert kernel_calls(rank_trace.where(without_calls))["grid_x"].to_list() == [608]


def test_the_plugin_shows_the_grid_as_written() -> None:
    """The plugin shows the recorded grid, even if the grid counts threads instead of blocks."""
    rank_trace = launched("hipExtModuleLaunchKernel", [THREADS, 1, 1], where="kernel").build().ranks[0]

    assert plugin_kernel_calls(rank_trace)["grid_x"].to_list() == [THREADS]


@pytest.mark.parametrize("count", [1, 8])
def test_rocm_counts_the_cpus_among_the_devices_of_kernels(count: int) -> None:
    """With two CPUs, ROCm calls GPU 7 device 9, which is not listed; it gets the properties that all GPUs share."""
    gpus = [{**MI300, "id": number} for number in range(count)]
    builder = launched("hipLaunchKernel", [608, 1, 1], where="both").header(deviceProperties=gpus)
    shape = {"grid": [304, 1, 1], "block": [256, 1, 1]}
    builder.kernel("other", start_us=5, duration_us=1, launch_us=4, device=count + 1, args=shape)

    assert kernel_calls(builder.build().ranks[0])["blocks_per_sm"].to_list() == [2.0, 1.0]


@pytest.mark.parametrize("name", ["models/mi300_bert", "inference/vllm_prefilldecode_piecewise/graph_execution"])
def test_the_blocks_of_real_kernels(name: str, real_traces: Path) -> None:
    """The blocks per SM equal those computed from the JSON text.

    The grid of hipExtModuleLaunchKernel counts threads instead of blocks.
    """
    path = real_traces / f"{name}.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    calls = {event["args"].get("correlation"): event["name"] for event in events if event.get("cat") == "cuda_runtime"}
    expected = []
    for event in events:
        args = event.get("args", {})
        if event.get("cat") == "kernel" and "grid" in args:
            is_in_threads = calls[args["correlation"]] == "hipExtModuleLaunchKernel"
            expected.append(math.prod(args["grid"]) / (math.prod(args["block"]) if is_in_threads else 1) / 304)

    (rank_trace,) = open_trace(path, cache=False).ranks.values()
    blocks_per_sm = kernel_calls(rank_trace)["blocks_per_sm"].drop_nulls().to_list()

    assert sorted(blocks_per_sm) == pytest.approx(sorted(expected))


def without_calls(rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
    """Select all events except runtime and driver calls."""
    kinds = rank_trace.table("events", ["kind"])["kind"].to_numpy()
    return ~np.isin(kinds, [kind.value for kind in LAUNCH_KINDS])
