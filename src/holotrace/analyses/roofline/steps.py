"""Compute the model FLOPs utilization (MFU) and hardware FLOPs utilization (HFU) of each step."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.device.devices import devices_of_rank
from holotrace.enrich.device.floors import Peaks, peak_of_work
from holotrace.enrich.events.event_rows import gathered
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.operator_costs.costed_calls import CostedCalls
from holotrace.enrich.steps.steps import device_extended_windows, rows_of_windows, steps, windows
from holotrace.store.trace import RankTrace


def per_step(rank_trace: RankTrace, costed: CostedCalls, peaks: Peaks) -> pl.DataFrame:
    """Return, for each step, the FLOPs of its matrix products and its MFU and HFU.

    The HFU is the time that the matrix products of a step would take at peak rate, divided by the length of the step
    and by the number of devices. Each product is timed at the peak rate of its own precision. The MFU is the HFU
    without recomputation. MFU and HFU are null if a peak is unknown. Work counts toward the step in which its operator
    begins. A recording without steps counts as one step.
    """
    within = windows(rank_trace)
    products = _products(costed, peaks).with_columns(
        pl.Series("row", rows_of_windows(within, _starts(rank_trace, costed.calls).to_numpy()))
    )
    sums = (
        products.filter(pl.col("row") >= 0)
        .group_by("row")
        .agg(
            pl.col("model_flops", "hardware_flops", "dense_flops").sum(),
            _known_share("busy_ns", "is_known").alias("covered_fraction"),
            *(_sum_or_null(f"{kind}_ns") for kind in ("model", "hardware")),
        )
    )
    lengths = device_extended_windows(rank_trace).select("window", step_ns=pl.col("end_ns") - pl.col("start_ns"))
    numbered = within.with_row_index("row").select(pl.col("row").cast(pl.Int64), "window")
    joined = numbered.join(lengths, on="window").join(sums, on="row", how="left").sort("row")
    return _shares(joined, _device_count(rank_trace, peaks), has_steps=not steps(rank_trace).is_empty())


def _products(costed: CostedCalls, peaks: Peaks) -> pl.DataFrame:
    """Return, for each call, the FLOPs of its matrix products and the time that they would take at peak rate."""
    peak, is_product = peak_of_work(costed.keys, peaks), pl.col("work") == "matrix"
    flops = pl.when(is_product).then(pl.col("flops")).otherwise(0)
    once = flops - pl.col("repeated_flops").fill_null(0)
    of_keys = costed.keys.select(
        "dense_flops",
        model_flops=once,
        hardware_flops=flops,
        is_known=pl.col("flops").is_not_null() | pl.col("bytes_moved").is_not_null(),
        model_ns=pl.when(once == 0).then(0.0).otherwise(1e9 * once / peak),
        hardware_ns=pl.when(flops == 0).then(0.0).otherwise(1e9 * flops / peak),
        lacks_peak=is_product & pl.col("flops").is_not_null() & peak.is_null(),
    )
    is_again = (costed.calls["phase"] == "recompute").fill_null(value=False)
    products = of_keys[costed.calls["key"]].with_columns(costed.calls["busy_ns"])
    return products.with_columns(
        model_flops=pl.when(is_again).then(0).otherwise("model_flops"),
        model_ns=pl.when(is_again).then(0.0).otherwise("model_ns"),
    )


def _starts(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.Series:
    return gathered(call_stacks(rank_trace)["start_ns"], calls["row"].to_numpy()).fill_null(-1)


def _known_share(time: str, is_known: str) -> pl.Expr:
    total = pl.col(time).sum()
    return pl.when(total > 0).then(pl.col(time).filter(pl.col(is_known)).sum() / total)


def _sum_or_null(column: str) -> pl.Expr:
    return pl.when(~pl.col("lacks_peak").any()).then(pl.col(column).sum()).alias(column)


def _shares(table: pl.DataFrame, devices: int | None, *, has_steps: bool) -> pl.DataFrame:
    time = pl.when(pl.col("step_ns") > 0).then(pl.col("step_ns") * pl.lit(devices, pl.Int64))
    return table.select(
        step=pl.col("window") if has_steps else pl.lit(None, pl.Int64),
        step_ns="step_ns",
        model_flops=pl.col("model_flops").fill_null(0),
        hardware_flops=pl.col("hardware_flops").fill_null(0),
        dense_flops=pl.col("dense_flops").fill_null(0),
        mfu_fraction=pl.col("model_ns") / time,
        hfu_fraction=pl.col("hardware_ns") / time,
        covered_fraction="covered_fraction",
    )


def _device_count(rank_trace: RankTrace, peaks: Peaks) -> int | None:
    """Return the number of devices of the rank; None if its peak rates are unknown.

    In this case, the best rates in the trace are used instead, and MFU and HFU are null.
    """
    return None if peaks.is_attained else max(1, devices_of_rank(rank_trace).height)
