"""The kernels of a rank: when each ran, how it was launched, and how well it fills its device."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.device.device_work import device_rows, device_work
from holotrace.enrich.device.devices import properties_of
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.kernels.tensor_cores import uses_tensor_cores
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived, derived_under_rules
from holotrace.store.trace import RankTrace

_KERNEL_KINDS = (EventKind.KERNEL, EventKind.COLLECTIVE_COMM, EventKind.ACCELERATOR)
_COLUMNS = ("event_index", "registers_per_thread", "shared_memory_bytes", "blocks_per_sm", "occupancy_percent")
GRID, BLOCK = ("grid_x", "grid_y", "grid_z"), ("block_x", "block_y", "block_z")

_GRID_COUNTS_THREADS = "^hip(Ext|Hcc)ModuleLaunchKernel"
"""Launch calls that give the grid in threads ("work-items"); all other calls give it in blocks.

Kineto copies the grid from the arguments of the launch call, unchanged, into the row of the call and the row of the
kernel. In both rows, the name of the launch call therefore shows whether the grid counts threads or blocks.
https://github.com/ROCm/HIP/blob/rocm-6.2.x/include/hip/hip_ext.h
https://github.com/pytorch/kineto/blob/main/libkineto/src/RocprofActivity_inl.h
"""


@derived_under_rules
def kernel_calls(rank_trace: RankTrace) -> pl.DataFrame:
    """Return all kernels, but no copies, memsets or synchronisations.

    Returns:
        Sorted by start_ns:

        event_index        uint32
        name               uint32  string id
        start_ns, end_ns   int64
        device             int32   -1 if unknown
        uses_tensor_cores  bool    null if the name does not show it

        and the columns of `kernel_shapes`; if the shape of a kernel is unknown, is_estimated is false, and the other
        columns are null.
    """
    return described_calls(_kernels(rank_trace), kernel_shapes(rank_trace), uses_tensor_cores(rank_trace))


def described_calls(kernels: pl.DataFrame, shapes: pl.DataFrame, uses_tensor_cores: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of `kernel_calls` for these kernels."""
    return (
        kernels.select("event_index", "name", "start_ns", "end_ns", pl.col("device").fill_null(-1))
        .join(shapes, on="event_index", how="left", maintain_order="left")
        .join(uses_tensor_cores, on="event_index", how="left", maintain_order="left")
        .with_columns(pl.col("is_estimated").fill_null(value=False))
    )


def kernel_shapes(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the known launch shapes of kernels, and how well each kernel fills its device.

    The profiler writes blocks per SM and the estimated achieved occupancy only for NVIDIA devices. For other devices,
    holotrace computes these two values if the file gives the launch shape and the device's properties. Registers and
    shared memory may limit the occupancy further, so the computed occupancy is an upper bound. The formulas:

        blocks_per_sm = blocks / SMs (or compute units)
        occupancy     = blocks · threads per block / SMs / maximum threads per SM, at most 1

    Returns:
        One row for each kernel with a known shape:

        event_index           uint32
        grid_x … block_z      int64    blocks of the launch and threads of a block; null if unknown
        registers_per_thread  int64    null if unknown
        shared_memory_bytes   int64    null if unknown
        blocks_per_sm         float64  null if unknown, or if the file gives 0 or infinity
        occupancy_fraction    float64  0..1, null if unknown
        is_estimated          bool     whether holotrace computed blocks_per_sm and occupancy_fraction
    """
    return _shapes(rank_trace.unselected)  # the shape of a selected kernel may come from a launch that is not selected


@derived
def written_shapes(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the columns of `kernel_shapes` as the file gives them."""
    return _described(rank_trace.table("kernels", [*_COLUMNS, *GRID, *BLOCK]))


def _kernels(rank_trace: RankTrace) -> pl.DataFrame:
    kernels = device_rows(rank_trace).filter(pl.col("kind").is_in(_KERNEL_KINDS))
    return device_work(rank_trace).join(kernels, on="event_index", how="semi", maintain_order="left")


@derived
def _shapes(rank_trace: RankTrace) -> pl.DataFrame:
    blocks, occupancy = pl.col("blocks_per_sm"), pl.col("occupancy_fraction")
    table = _in_blocks(rank_trace, _with_shapes_of_launches(rank_trace))
    shapes = _described(table).with_columns(
        pl.when(blocks.is_finite() & (blocks > 0)).then(blocks), pl.when(occupancy >= 0).then(occupancy)
    )
    return shapes if shapes["blocks_per_sm"].count() else _estimated(rank_trace, table, shapes)


def _described(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(
        "event_index",
        *GRID,
        *BLOCK,
        "registers_per_thread",
        "shared_memory_bytes",
        "blocks_per_sm",
        (pl.col("occupancy_percent") / 100).alias("occupancy_fraction"),
        pl.lit(value=False).alias("is_estimated"),
    )


def _with_shapes_of_launches(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the arguments of all kernels; kernels without a grid (older ROCm versions) get those of their launch."""
    table = rank_trace.table("kernels", [*_COLUMNS, *GRID, *BLOCK])
    on_host = table.filter(rows_of_events(device_rows(rank_trace), table["event_index"]) < 0)
    if on_host.is_empty():
        return table
    calls = rank_trace.events_of(LAUNCH_KINDS, ["event_index"])
    shapes = on_host.join(calls, on="event_index").filter(pl.col("grid_x").is_not_null())
    if shapes.is_empty():
        return table
    own = table.filter(pl.col("grid_x").is_not_null()).select("event_index")
    launched = launches(rank_trace).select("event_index", "launch_index").join(own, on="event_index", how="anti")
    of_launches = shapes.rename({"event_index": "launch_index"})
    taken = launched.join(of_launches, on="launch_index", maintain_order="left").select(table.columns)
    return pl.concat([table.join(taken, on="event_index", how="anti", maintain_order="left"), taken])


def _in_blocks(rank_trace: RankTrace, table: pl.DataFrame) -> pl.DataFrame:
    """Convert grids that are given in threads to grids in blocks."""
    named = launches(rank_trace).select("event_index", "launch_name").drop_nulls()
    counts_threads = rank_trace.texts(named["launch_name"]).str.contains(_GRID_COUNTS_THREADS)
    is_counted = pl.col("event_index").is_in(named.filter(counts_threads)["event_index"].implode())
    return table.with_columns(
        pl.when(is_counted).then(-(-pl.col(grid) // pl.col(block))).otherwise(grid).alias(grid)
        for grid, block in zip(GRID, BLOCK, strict=True)
    )


def _estimated(rank_trace: RankTrace, table: pl.DataFrame, shapes: pl.DataFrame) -> pl.DataFrame:
    devices = rank_trace.events_of([EventKind.KERNEL], ["event_index", "device"])
    known = (
        table.select("event_index", _product(GRID).alias("blocks"), _product(BLOCK).alias("threads"))
        .join(devices, on="event_index", how="left", maintain_order="left")
        .join(_processors(rank_trace, devices["device"]), on="device", how="left", maintain_order="left")
    )
    per_sm = pl.col("blocks") / pl.col("sm_count")
    occupancy = (per_sm * pl.col("threads") / pl.col("most_threads")).clip(upper_bound=1)
    estimates = known.select(
        pl.when(per_sm > 0).then(per_sm).alias("blocks_per_sm"),
        pl.when(occupancy > 0).then(occupancy).alias("occupancy_fraction"),
    )
    is_estimated = estimates["blocks_per_sm"].is_not_null().alias("is_estimated")
    return shapes.with_columns(*estimates.get_columns(), is_estimated)


def _processors(rank_trace: RankTrace, used: pl.Series) -> pl.DataFrame:
    """Return each device's number of SMs and its maximum number of threads per SM."""
    devices = used.drop_nulls().unique().to_list()
    rows = [
        (
            device,
            properties.get("numSms"),
            properties.get("maxThreadsPerMultiprocessor") or properties.get("maxThreadsPerMultiProcessor"),
        )
        for device, properties in zip(devices, properties_of(rank_trace, devices), strict=True)
    ]
    whole = [row for row in rows if all(type(value) is int and value > 0 for value in row[1:])]
    return pl.DataFrame(whole, {"device": pl.Int32, "sm_count": pl.Int64, "most_threads": pl.Int64}, orient="row")


def _product(columns: tuple[str, str, str]) -> pl.Expr:
    x, y, z = map(pl.col, columns)
    return x * y * z
