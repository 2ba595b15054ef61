"""Fit each group's latency and bandwidth to its transfer times, and find small messages that could be merged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import polars as pl

from holotrace.algorithms.latency_fit import fit_latency

PER_FIT = {
    "process_group": pl.String,
    "group_size": pl.Int64,
    "collective": pl.String,
    "instance_count": pl.Int64,
    "size_count": pl.Int64,
    "latency_ns": pl.Float64,
    "latency_low_ns": pl.Float64,
    "latency_high_ns": pl.Float64,
    "bus_bytes_per_s": pl.Float64,
    "low_bytes_per_s": pl.Float64,
    "high_bytes_per_s": pl.Float64,
}
_GROUP = ["process_group", "group_size", "collective"]

_TINY_BYTES = 1024
"""At 1 GB/s, transferring a kilobyte takes a microsecond, which is less than the latency of any collective."""

_LONGEST_PAUSE = 1.0
"""Two calls can be merged only if the pause between them is at most this many times the latency."""


def per_fit(instances: pl.DataFrame) -> pl.DataFrame:
    """Fit latency and bus bandwidth of each group and collective; groups with too few sizes are left out.

    Args:
        instances: one row per collective, with process_group, group_size, collective, bus_bytes and transfer_ns.
    """
    return pl.DataFrame(list(_fits(instances.filter(pl.col("bus_bytes") > 0))), PER_FIT, orient="row").sort(_GROUP)


def _fits(measured: pl.DataFrame) -> Iterator[dict[str, Any]]:
    for key, rows in measured.group_by(_GROUP):
        fit = fit_latency(rows["bus_bytes"].to_numpy(), rows["transfer_ns"].to_numpy())
        if fit is not None:
            estimates = {name: value if math.isfinite(value) else None for name, value in asdict(fit).items()}
            estimates["bus_bytes_per_s"] = estimates.pop("bytes_per_s")
            counts = {"instance_count": rows.height, "size_count": rows["bus_bytes"].n_unique()}
            yield dict(zip(_GROUP, key, strict=True)) | counts | estimates


def mergeable(instances: pl.DataFrame, fits: pl.DataFrame) -> pl.DataFrame:
    """Return, for each message, whether it could be merged with the previous one, and how much time this would save.

    Two messages can be merged if

    - both are small,
    - they have the same group, collective, element type and step, and
    - the pause between them is at most one latency.

    A message is small if it has fewer bytes than latency * bandwidth: the latency is then longer than the transfer of
    the bytes. If there is no fit, messages of at most `_TINY_BYTES` bytes count as small, and the latency is their
    median transfer time. Merging two messages saves one latency and the time between the end of the first message and
    the start of the second.

    Returns:
        operation, is_mergeable bool, and saved_ns int64, sorted by operation.
    """
    known = pl.concat([_of_fits(fits), _of_tiny_messages(instances, fits)])
    fitted = instances.join(known, on=_GROUP, how="inner", nulls_equal=True)
    is_small = pl.col("bus_bytes") < pl.col("bytes_below")
    run = [*_GROUP, "dtype", "step"]
    ordered = fitted.sort("last_start_ns").with_columns(is_small.alias("is_small"))
    ended_ns = pl.col("last_end_ns").shift().over(run)
    pause = pl.col("last_start_ns") - ended_ns
    follows = pl.col("is_small").shift().over(run) & (pause <= _LONGEST_PAUSE * pl.col("latency_ns"))
    is_mergeable = (pl.col("is_small") & follows).fill_null(value=False)
    gap = (pl.col("first_start_ns") - ended_ns).clip(0)
    saved = pl.when(is_mergeable).then(pl.col("latency_ns").round().cast(pl.Int64) + gap).otherwise(0)
    return ordered.select("operation", is_mergeable.alias("is_mergeable"), saved.alias("saved_ns")).sort("operation")


def _of_fits(fits: pl.DataFrame) -> pl.DataFrame:
    bytes_below = pl.col("latency_ns") * pl.col("bus_bytes_per_s") / 1e9
    return fits.select(*_GROUP, "latency_ns", bytes_below.fill_null(math.inf).alias("bytes_below"))


def _of_tiny_messages(instances: pl.DataFrame, fits: pl.DataFrame) -> pl.DataFrame:
    """For each group without a fit, estimate the latency from its tiny messages."""
    tiny = instances.filter(pl.col("bus_bytes") <= _TINY_BYTES, pl.col("bus_bytes") > 0, pl.col("transfer_ns") > 0)
    latency = tiny.join(fits, on=_GROUP, how="anti", nulls_equal=True).group_by(_GROUP, maintain_order=True)
    return latency.agg(
        pl.col("transfer_ns").median().alias("latency_ns"), pl.lit(_TINY_BYTES + 1.0).alias("bytes_below")
    )
