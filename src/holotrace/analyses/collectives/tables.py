"""Collectives: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.collectives.compute import Collectives
from holotrace.questions.tables import View


def equal_collectives(result: Collectives) -> pl.DataFrame:
    """Return waiting, transfer, bandwidth and verdict of the collectives by kind, size and group."""
    keys = ("collective", "message_bytes", "dtype", "process_group", "instance_count")
    late = pl.when(pl.col("late_fraction") > 1 / 2).then("late_rank").alias("late_rank")
    times = ("collective_ns", "wait_fraction", "median_transfer_ns", "algorithm_bytes_per_s", "bus_bytes_per_s")
    return result.per_collective.select(*keys, *times, "verdict", late, "mergeable_count", "mergeable_ns")


def ranks(result: Collectives) -> pl.DataFrame:
    """Return how long each rank waits, how long others wait for it, and the bandwidth of its link."""
    return result.per_rank


def fits(result: Collectives) -> pl.DataFrame:
    """Return latency and bandwidth of each group, with their confidence intervals."""
    return result.per_fit.drop("group_size")


def slow(result: Collectives) -> pl.DataFrame:
    """Return the hosts, links and groups that are slower than their peers."""
    return result.slow


def pairs(result: Collectives) -> pl.DataFrame:
    """Return how much data each rank sent to every other rank, in sends and in all-to-alls."""
    return result.per_pair


def clocks(result: Collectives) -> pl.DataFrame:
    """Return the clock of each host."""
    return result.per_host


def coverage(result: Collectives) -> pl.DataFrame:
    """Return how the calls were matched."""
    return result.coverage


def calls(result: Collectives) -> pl.DataFrame:
    """Return each call of each rank."""
    times = ("lateness_ns", "lateness_half_width_ns", "wait_ns", "transfer_ns", "transfer_basis", "bus_bytes_per_s")
    keys = ("instance", "step", "collective", "message_bytes", "process_group", "rank", "duration_ns")
    return result.per_call.select(*keys, *times, "matched_by")


VIEWS = (
    View("Collectives of equal kind, size and group", equal_collectives, "collective_ns"),
    View("Each rank", ranks, "caused_wait_ns"),
    View("Slow hosts and links", slow, "slowdown"),
    View("Latency and bandwidth by message size, with 95 % confidence intervals", fits, "instance_count"),
    View("Sends and all-to-alls between pairs of ranks", pairs, "bytes", is_detail=True),
    View("Clocks of the hosts", clocks, "half_width_ns", is_detail=True),
    View("How calls were matched", coverage, "call_count", is_detail=True),
    View("Each call", calls, "wait_ns", is_detail=True),
)
