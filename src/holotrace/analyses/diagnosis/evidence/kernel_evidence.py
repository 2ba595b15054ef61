"""The device work of the steady steps: each kernel or copy, its operator, and the least time that the work needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above
from holotrace.algorithms.signatures import function_name
from holotrace.enrich.device.peaks import Device
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.events.recorded_json import recorded_list
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.kernels.kernel_calls import kernel_shapes
from holotrace.enrich.kernels.tensor_cores import uses_tensor_cores
from holotrace.enrich.operator_costs.costed_calls import CostedCalls, costed_calls, owners_of_work
from holotrace.schema import KernelKind
from holotrace.store.trace import RankTrace

ATTAINABLE_PRODUCTS = 0.6
"""Share of the peak that well-shaped matrix products reach on tensor cores: 0.55 to 0.78 in healthy recordings."""
ATTAINABLE_BANDWIDTH = 0.7
"""Share of the peak bandwidth that simple kernels reach; NVIDIA's bandwidthTest
(https://github.com/NVIDIA/cuda-samples) reaches 0.9."""

BEST_PRODUCTS = 0.87
"""Share of the peak that no matrix product exceeds: the best shapes reach 0.86 on A100, 0.83 on GH200, 0.6 on MI300X;
https://github.com/stas00/ml-engineering/tree/master/compute/accelerator#maximum-achievable-matmul-flops-comparison-table"""
BEST_BANDWIDTH = 0.92
"""Share of the peak bandwidth that no kernel exceeds; NVIDIA's bandwidthTest (https://github.com/NVIDIA/cuda-samples)
reaches 0.9."""

_SHAPES = ("blocks_per_sm", "registers_per_thread", "shared_memory_bytes", "block_x", "block_y", "block_z")


def costed_work(rank_trace: RankTrace, work: pl.DataFrame, device: Device | None) -> pl.DataFrame:
    """Return the computation and the copies of a rank, with their FLOPs, bytes and lower bounds on their time.

    The FLOPs, the bytes and the lower bound of an operator call are divided among its kernels in proportion to the time
    that each kernel takes.

    Args:
        rank_trace: the rank.
        work: rows of `RankEvidence.work`.
        device: the peak rates of the rank's device; without them, `floor_ns` is null.

    Returns:
        The rows of `work` that compute or copy, with:

        kernel        str      name of the function, without its arguments
        row           int64    row in `call_stacks` of the operator to which the work belongs; -1 if unknown
        operator      str      name of this operator; null if unknown
        phase         str      forward, backward, recompute or optimizer; null if unknown
        key           uint32   row in `CostedCalls.keys`; null if unknown
        cores         str      `matrix` if tensor cores can do the computation, `vector` if only ordinary cores can,
                               `copy` if nothing is computed; null if unknown
        precision     str      precision in which the kernel computes; null if unknown
        flops         float64  null if unknown
        bytes_moved   float64  null if unknown
        floor_ns      float64  time that the work would take at the peak rates of the device, but never more than
                               duration_ns; null if unknown
        uses_tensor_cores  bool  null if the name of the kernel does not reveal it
    """
    chosen = (work["kernel_kind"] != KernelKind.COMMUNICATION).to_numpy()
    rows = pl.Series("row", owners_of_work(rank_trace, work)[chosen])
    costed = costed_calls(rank_trace)
    owned = work.filter(chosen).with_columns(rows, _functions(rank_trace, work["name"].filter(chosen)))
    calls = costed.calls.select("row", "phase", "key").filter(pl.col("row") != NO_PARENT)
    priced = owned.join(calls, on="row", how="left", maintain_order="left").join(
        _prices(rank_trace, costed, device), on="key", how="left", maintain_order="left"
    )
    share = pl.col("duration_ns") / pl.col("duration_ns").sum().over("row")
    cores = uses_tensor_cores(rank_trace)
    return (
        priced.join(cores, on="event_index", how="left", maintain_order="left")
        .with_columns(pl.col("flops", "bytes_moved", "floor_ns") * share)
        .with_columns(pl.col("floor_ns").clip(upper_bound=pl.col("duration_ns")))
    )


def with_launch_shapes(rank_trace: RankTrace, work: pl.DataFrame) -> pl.DataFrame:
    """Add blocks per SM, threads per block, registers and shared memory of each kernel; null if not recorded."""
    shapes = kernel_shapes(rank_trace).select("event_index", *_SHAPES, "is_estimated")
    threads = pl.col("block_x") * pl.col("block_y") * pl.col("block_z")
    return work.join(shapes, on="event_index", how="left", maintain_order="left").with_columns(threads.alias("threads"))


def floor_at(precision: str, device: Device) -> pl.Expr:
    """Return a lower bound on the time that matrix products would take in this precision; null if unknown."""
    rate = device.flops_per_s(precision, matrix=True)
    return pl.max_horizontal(1e9 * pl.col("flops") / pl.lit(rate, pl.Float64), _memory_floor(device))


def attainable_products(device: Device | None) -> pl.Expr:
    """Return the share of the peak rate that matrix products can reach in each row's precision.

    This is the share that the vendor measured; if it is unknown or larger than `ATTAINABLE_PRODUCTS`, this limit is
    returned instead. For example, AMD measures 54 % for bfloat16 on an MI300X, at the clock rate that it sustains under
    load; see `holotrace.enrich.device.peaks`.
    """
    rates = dict(device.matrix_tflops) if device is not None else {}
    measured = dict(device.attainable_tflops) if device is not None else {}
    shares = {name: min(ATTAINABLE_PRODUCTS, rate / rates[name]) for name, rate in measured.items() if rates.get(name)}
    if not shares:
        return pl.lit(ATTAINABLE_PRODUCTS)
    return pl.col("precision").replace_strict(shares, default=ATTAINABLE_PRODUCTS, return_dtype=pl.Float64)


class CallInputs(NamedTuple):
    """The shapes, strides and element types of an operator's recorded inputs."""

    dims: list[object]
    strides: list[object]
    types: list[object]


def inputs_of(rank_trace: RankTrace, keys: pl.Series) -> dict[int, CallInputs]:
    """Return the recorded inputs of each key (a row in `CostedCalls.keys`); lists that were not recorded are empty."""
    known = costed_calls(rank_trace).keys
    distinct = keys.drop_nulls().unique().sort()
    rows = known[distinct]
    texts = [rank_trace.texts(rows[column]) for column in ("input_dims", "input_strides", "input_types")]
    return {
        key: CallInputs(*(recorded_list(text) for text in of_key))
        for key, of_key in zip(distinct, zip(*texts, strict=True), strict=True)
    }


def rows_inside(rank_trace: RankTrace, operators: pl.Series, rows: pl.Series) -> pl.Series:
    """Return, for each of these rows of `call_stacks`, whether it is one of the operators or is nested in one.

    `operators` contains event indexes.
    """
    stacks = call_stacks(rank_trace)
    wanted = np.zeros(stacks.height, np.bool_)
    at = rows_of_events(stacks, operators)
    wanted[at[at != NO_PARENT]] = True
    return pl.Series(itself_or_above(stacks["parent_row"].to_numpy(), wanted, rows.to_numpy()) != NO_PARENT)


def _prices(rank_trace: RankTrace, costed: CostedCalls, device: Device | None) -> pl.DataFrame:
    keys = costed.keys
    rates = [
        None
        if device is None
        else device.flops_per_s(precision if work == "matrix" else precision or "float32", matrix=work == "matrix")
        for work, precision in keys.select("work", "precision").iter_rows()
    ]
    compute = 1e9 * pl.col("flops") / pl.Series("rate", rates, pl.Float64)
    return keys.select(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("key"),
        rank_trace.texts(keys["name"]).alias("operator"),
        pl.col("work").alias("cores"),
        "precision",
        pl.col("flops", "bytes_moved").cast(pl.Float64),
        pl.max_horizontal(compute, _memory_floor(device)).alias("floor_ns"),
    )


def _memory_floor(device: Device | None) -> pl.Expr:
    if device is None or not device.bandwidth_gb_per_s:
        return pl.lit(None, pl.Float64)
    return pl.col("bytes_moved") / device.bandwidth_gb_per_s


def _functions(rank_trace: RankTrace, names: pl.Series) -> pl.Series:
    distinct = names.unique()
    functions = [function_name(text) for text in rank_trace.texts(distinct)]
    return names.replace_strict(distinct, pl.Series(functions, dtype=pl.String), default=None).alias("kernel")
