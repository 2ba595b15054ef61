"""Idle time: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.idle_time.compute import IdleTime
from holotrace.questions.tables import View, one_device_hidden


def idle_per_device(result: IdleTime) -> pl.DataFrame:
    """Return the idle time of each device, with the share of each reason."""
    return one_device_hidden(_by_category(result.per_device))


def idle_per_stream(result: IdleTime) -> pl.DataFrame:
    """Return the idle time of each stream, with the share of each reason."""
    return one_device_hidden(_by_category(result.per_stream))


def _by_category(table: pl.DataFrame) -> pl.DataFrame:
    """Return the categories as columns instead of rows."""
    keys = [name for name in ("rank", "device", "stream") if name in table.columns]
    unknown = ["unknown"] if (table["category"] == "unknown").any() else []
    shares = [_share_of(category) for category in ("host_wait", "kernel_wait", "other", *unknown)]
    totals = [pl.col("idle_ns", "gap_count").sum()]
    return table.group_by(keys, maintain_order=True).agg(*totals, *shares)


def _share_of(category: str) -> pl.Expr:
    return pl.col("fraction").filter(pl.col("category") == category).first().alias(f"{category}_fraction")


VIEWS = (
    View("Each device: times in which no stream runs work", idle_per_device, "idle_ns"),
    View("Each stream: times in which it runs no work", idle_per_stream, "idle_ns", is_detail=True),
)
