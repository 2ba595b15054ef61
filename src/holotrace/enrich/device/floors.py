"""Computes lower bounds on the times of operators, from the peak rates of the device."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from holotrace.enrich.device.peaks import Device

MEMORY = "memory"
"""The `resource` of the memory bandwidth in the table of peaks; the resource of each other peak is a precision."""

_SHORTEST_NS = 10_000
"""Shorter calls do not show which rates a device attains, because clocks and launches distort their times."""

PEAKS_SCHEMA = {"resource": pl.String, "is_matrix": pl.Boolean, "peak": pl.Float64, "source": pl.String}


class Peaks(NamedTuple):
    """The peak rates of a device.

    table        resource (a precision, or "memory"), is_matrix, peak in FLOP/s or bytes/s, source
    cache_bytes  size of the last-level cache; 0 if unknown
    is_attained  whether the peaks are the best rates in this trace, because the device is unknown
    """

    table: pl.DataFrame
    cache_bytes: float
    is_attained: bool


def peaks_of(device: Device | None, operators: pl.DataFrame) -> Peaks:
    """Return the peaks of a device or, if the device is unknown, the best rates that the operators attain."""
    if device is None:
        return Peaks(attained_rates(operators), 0, is_attained=True)
    source = device.source
    matrix = [(name, True, float(round(1e12 * rate)), source(name)) for name, rate in device.matrix_tflops]
    vector = [
        (name, False, float(round(1e12 * rate)), source(name))
        for name, rate in zip(("float32", "float64"), device.vector_tflops, strict=True)
        if rate
    ]
    memory = [(MEMORY, False, 1e9 * device.bandwidth_gb_per_s, source(MEMORY))] if device.bandwidth_gb_per_s else []
    table = pl.DataFrame([*matrix, *vector, *memory], schema=PEAKS_SCHEMA, orient="row")
    return Peaks(table, 1e6 * device.cache_megabytes, is_attained=False)


def with_floors(operators: pl.DataFrame, peaks: Peaks) -> pl.DataFrame:
    """Add rates, lower bounds and contradictions to the operators.

    The lower bound of a call is the larger of flops / peak and bytes / bandwidth. If the peak of the precision is
    unknown, the lower bound is bytes / bandwidth. If the lower bound exceeds the measured time, `contradiction` gives
    the reason.
    """
    calls, busy = pl.col("call_count"), pl.col("busy_ns")
    seconds = pl.when(busy > 0).then(busy / 1e9)
    peak, bandwidth = peak_of_work(operators, peaks), _peak(peaks, MEMORY, is_matrix=False)
    compute = calls * pl.col("flops") / pl.col("_peak") * 1e9
    memory = calls * pl.col("bytes_moved") / pl.lit(bandwidth, pl.Float64) * 1e9
    return (
        operators.with_columns(_peak=peak)
        .with_columns(_compute=compute, _memory=memory)
        .with_columns(
            flops_per_s=calls * pl.col("flops") / seconds,
            moved_bytes_per_s=calls * pl.col("bytes_moved") / seconds,
            flops_per_byte=pl.when(pl.col("bytes_moved") > 0).then(pl.col("flops") / pl.col("bytes_moved")),
            bound=_bound(),
            floor_ns=pl.max_horizontal("_compute", "_memory").round().cast(pl.Int64),
        )
        .with_columns(
            roofline_fraction=pl.when(busy > 0).then(pl.col("floor_ns") / busy), gap_ns=busy - pl.col("floor_ns")
        )
        .with_columns(contradiction=_contradiction(peaks))
        .drop("_peak", "_compute", "_memory")
    )


def _bound() -> pl.Expr:
    """Return the larger lower bound, `compute` or `memory`; null if bytes or a matrix product's FLOPs are unknown."""
    compute, memory = pl.col("_compute"), pl.col("_memory")
    is_half_known = pl.col("bytes_moved").is_null() | ((pl.col("work") == "matrix") & pl.col("flops").is_null())
    return (
        pl.when(is_half_known | (memory.is_null() & compute.is_null()))
        .then(None)
        .when(compute.fill_null(0) > memory.fill_null(0))
        .then(pl.lit("compute"))
        .when(memory > 0)
        .then(pl.lit(MEMORY))
    )


def _contradiction(peaks: Peaks) -> pl.Expr:
    """Return the reason why a lower bound exceeds the measured time; null if no bound exceeds it."""
    # Up to `cache_bytes` of the inputs may already be in the cache.
    # Up to `cache_bytes` of the results may stay in the cache.
    if_cached = pl.col("_memory") * (1 - 2 * peaks.cache_bytes / pl.col("bytes_moved")) <= pl.col("busy_ns")
    return (
        pl.when((pl.col("floor_ns") > pl.col("busy_ns")).fill_null(value=False))
        .then(
            pl.when((pl.col("_compute").fill_null(0) <= pl.col("busy_ns")) & if_cached & (peaks.cache_bytes > 0))
            .then(pl.lit("data may come from the cache, which is faster than the memory"))
            .otherwise(pl.lit("faster than the peak: a wrong device or clock, or less work than the shapes suggest"))
        )
        .otherwise(None)
    )


def peak_of_work(operators: pl.DataFrame, peaks: Peaks) -> pl.Series:
    """Return the peak rate that applies to each operator.

    For matrix products, this is the peak of their precision; for all other operators, the peak of ordinary cores.
    """
    known = {(resource, is_matrix): peak for resource, is_matrix, peak, _ in peaks.table.rows()}
    return pl.Series(
        [
            known.get((precision, True))
            if work == "matrix"
            else known.get(("float64" if precision == "float64" else "float32", False))
            for work, precision in operators.select("work", "precision").iter_rows()
        ],
        dtype=pl.Float64,
    )


def _peak(peaks: Peaks, resource: str, *, is_matrix: bool) -> float | None:
    chosen = peaks.table.filter((pl.col("resource") == resource) & (pl.col("is_matrix") == is_matrix))["peak"]
    return chosen[0] if len(chosen) else None


def attained_rates(operators: pl.DataFrame, cache_bytes: float = 0) -> pl.DataFrame:
    """Return the best attained rate of each precision and of the memory.

    Calls shorter than `_SHORTEST_NS` are ignored. The rate of the memory is taken only from calls that move more than
    2 * `cache_bytes`, because smaller calls may have read their data from the cache.

    Returns:
        The columns of `Peaks.table`.
    """
    long = operators.filter(pl.col("busy_ns") >= _SHORTEST_NS * pl.col("call_count"))
    seconds = pl.col("busy_ns") / 1e9
    products = (
        long.filter((pl.col("work") == "matrix") & pl.col("precision").is_not_null())
        .group_by(pl.col("precision").alias("resource"))
        .agg((pl.col("call_count") * pl.col("flops") / seconds).max().alias("peak"))
        .with_columns(is_matrix=pl.lit(value=True))
    )
    memory = (
        long.filter(pl.col("bytes_moved") > 2 * cache_bytes)
        .select(
            pl.lit(MEMORY).alias("resource"),
            (pl.col("call_count") * pl.col("bytes_moved") / seconds).max().alias("peak"),
            is_matrix=pl.lit(value=False),
        )
        .unique()
    )
    best = pl.concat([products, memory], how="diagonal").drop_nulls("peak").filter(pl.col("peak") > 0)
    return best.sort("resource").select("resource", "is_matrix", "peak", source=pl.lit("attained in this trace"))
