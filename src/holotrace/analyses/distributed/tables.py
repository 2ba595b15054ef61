"""Distributed: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.distributed.compute import Distributed
from holotrace.questions.tables import View


def mean_steps_of_ranks(result: Distributed) -> pl.DataFrame:
    """Return, for each rank, the parts of its mean step and the parts of its time in collectives."""
    return _divided_steps(result.per_rank, ["rank", "step_count"], prefix="mean_")


def steps_of_ranks(result: Distributed) -> pl.DataFrame:
    """Return, for each step of each rank, the parts of the step and the parts of the time in collectives."""
    return _divided_steps(result.per_step, ["rank", "step"])


def _divided_steps(table: pl.DataFrame, keys: list[str], prefix: str = "") -> pl.DataFrame:
    parts = ("computation_only_ns", "overlap_ns", "exposed_ns", "neither_ns")
    waiting = ("transfer_ns", "synchronising_ns", "unmatched_ns")
    return table.select(*keys, *(f"{prefix}{name}" for name in ("step_ns", *parts, *waiting)))


def collectives_of_ranks(result: Distributed) -> pl.DataFrame:
    """Return the calls, sizes and times of each rank's collectives."""
    chosen = (
        "call_count",
        "bytes",
        "mean_bytes",
        "collective_ns",
        "mean_collective_ns",
        "transfer_ns",
        "mean_transfer_ns",
    )
    return result.per_operation.select("rank", "collective", "dtype", *chosen)


def devices_of_ranks(result: Distributed) -> pl.DataFrame:
    """Return the devices that the ranks use, and their properties."""
    process = pl.col("process_id").cast(pl.String)
    return result.per_device.with_columns(process)


VIEWS = (
    View("The mean step of each rank, and its time in collectives", mean_steps_of_ranks, "mean_step_ns"),
    View("Collectives of each rank, by element type", collectives_of_ranks, "collective_ns"),
    View("Each step of each rank", steps_of_ranks, "step_ns", is_detail=True),
    View("Devices", devices_of_ranks, "memory_bytes", is_detail=True),
)
