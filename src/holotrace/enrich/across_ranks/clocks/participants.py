"""Finds which ranks wait for each other in the matched calls.

    all_reduce, all_gather, reduce_scatter, barrier   every rank waits for every rank
    all_to_all                                        every rank waits for every rank, if each sends data to all others
    send, recv                                        the receiver waits for the sender; the recorded start of gloo's
                                                      sends is too late, so the time of the request is used
    broadcast, scatter, reduce, gather, others        not used, because the root is not recorded, or ranks need not wait

If some rank sends nothing to another in an all-to-all, the call is not used: these two ranks need not wait for each
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.clocks.jumps import Participants
from holotrace.enrich.across_ranks.all_to_alls import reaches_all

_EVERYONE_WAITS = ("all_reduce", "all_gather", "reduce_scatter", "barrier")
_FROM_TIMES = ("time", "stream_order")
"""Methods that guess matches from times or counts; clocks must not depend on guesses."""


def waiting_calls(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the matched calls in which ranks wait for other ranks; their times limit how far the clocks can differ.

    Returns:
        Sorted by instance and rank, at least two rows per instance:

        rank, instance    as in `calls`
        start_ns, end_ns  int64  the rounding error is added to `end_ns`, so that start ≤ end
        is_entered        bool   others wait for this call to start
        is_left           bool   this call waits for others before it ends
        is_together       bool   all ranks of the instance wait for each other
    """
    usable = _usable(calls)
    family = pl.col("family").cast(pl.String)
    by_instance = usable.with_columns(family).with_columns(
        (family.n_unique() == 1).over("instance").alias("is_one_family"),
        reaches_all(usable.with_columns(family)).alias("reaches_all"),
    )
    together = pl.col("is_one_family") & (family.is_in(_EVERYONE_WAITS) | pl.col("reaches_all"))
    rounding = 2 * _resolution_ns(usable)
    return (
        by_instance.select(
            "rank",
            "instance",
            _start(usable),
            pl.col("end_ns") + rounding,
            (together | (family == "send")).alias("is_entered"),
            (together | (family == "recv")).alias("is_left"),
            together.alias("is_together"),
        )
        .filter(pl.col("is_entered") | pl.col("is_left"))
        .filter(pl.len().over("instance") > 1)
        .sort("instance", "rank")
    )


def _usable(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the matched calls, one per rank and instance.

    Leave out guessed matches, and calls that end before they start.
    """
    is_sound = pl.col("instance").is_not_null() & (pl.col("start_ns") <= pl.col("end_ns"))
    if "matched_by" in calls.columns:
        is_sound &= ~pl.col("matched_by").cast(pl.String).is_in(_FROM_TIMES).fill_null(value=False)
    sound = calls.filter(is_sound)
    key = ["instance", "rank"]
    if sound.select(pl.struct(key).n_unique()).item() == sound.height:
        return sound
    others = [column for column in sound.columns if column not in {*key, "start_ns", "end_ns"}]
    return sound.group_by(key, maintain_order=True).agg(
        pl.col("start_ns").min(), pl.col("end_ns").max(), pl.col(others).first()
    )


def _start(calls: pl.DataFrame) -> pl.Expr:
    """Return the earliest time at which each call may have communicated.

    ProcessGroupGloo sends before it creates the object that records `gloo:send`:
    https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupGloo.cpp
    """
    if not {"asked_ns", "stream"} <= set(calls.columns):
        return pl.col("start_ns")
    is_host_send = (pl.col("family").cast(pl.String) == "send") & pl.col("stream").is_null()
    return pl.when(is_host_send).then(pl.min_horizontal("start_ns", "asked_ns")).otherwise("start_ns").alias("start_ns")


def _resolution_ns(calls: pl.DataFrame) -> int:
    """Return the resolution of the recorded times; in older traces, it is 1 µs."""
    is_microseconds = pl.all_horizontal((pl.col("start_ns", "end_ns") % 1_000 == 0).all())
    return 1_000 if calls.select(is_microseconds).item() else 1


class HostCheck(NamedTuple):
    """How often, and by how much, ranks of one host contradict the assumption that they share a clock.

    by_host    one row per host with contradictions:
               host                str
               contradicted_count  int64  instances that one rank left before another entered
               largest_ns          int64  longest time from when one rank left until another entered; the clocks
                                         differ by at least this much
    instances  one row per contradiction, with its instance and host
    """

    by_host: pl.DataFrame
    instances: pl.DataFrame


def contradictions_within_hosts(waiting: pl.DataFrame, hosts: Mapping[int, str]) -> HostCheck:
    """Look for instances in which a rank leaves before another rank of the same host enters."""
    within = (
        waiting.with_columns(pl.col("rank").replace_strict(dict(hosts), return_dtype=pl.String).alias("host"))
        .group_by("instance", "host")
        .agg(
            (
                pl.col("start_ns").filter(pl.col("is_entered")).max() - pl.col("end_ns").filter(pl.col("is_left")).min()
            ).alias("excess_ns"),
        )
        .filter(pl.col("excess_ns") > 0)
    )
    by_host = (
        within.group_by("host")
        .agg(pl.len().cast(pl.Int64).alias("contradicted_count"), pl.col("excess_ns").max().alias("largest_ns"))
        .sort("host")
    )
    return HostCheck(by_host, within.select("instance", "host"))


class OfClocks(NamedTuple):
    """The participants of each operation, one per clock; their times are relative to the clock's `base_ns`."""

    participants: Participants
    base_ns: np.ndarray[tuple[int], np.dtype[np.int64]]
    instances: pl.Series


def by_clock(waiting: pl.DataFrame, clock_of_rank: Mapping[int, int], clock_count: int) -> OfClocks:
    """Combine the ranks that share a clock: the last rank to enter and the first to leave give the tightest bounds.

    Drop operations whose ranks all share one clock.
    """
    entered, left = pl.col("start_ns").filter(pl.col("is_entered")), pl.col("end_ns").filter(pl.col("is_left"))
    combined = (
        waiting.with_columns(pl.col("rank").replace_strict(dict(clock_of_rank), return_dtype=pl.Int64).alias("clock"))
        .group_by("instance", "clock")
        .agg(
            entered.max().alias("start"),
            left.min().alias("end"),
            pl.col("end_ns").min().alias("reading"),
            pl.col("is_together").first(),
        )
        .filter(pl.len().over("instance") > 1)
        .sort("instance", "clock")
    )
    base = combined.group_by("clock").agg(pl.min_horizontal("start", "reading").min().alias("base"))
    base_ns = np.zeros(clock_count, np.int64)
    base_ns[base["clock"].to_numpy()] = base["base"].to_numpy()
    return OfClocks(_participants(combined, base_ns), base_ns, combined["instance"].unique(maintain_order=True))


def _participants(combined: pl.DataFrame, base_ns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Participants:
    clock = combined["clock"].to_numpy()
    times = combined.select(pl.col("start", "end", "reading") - pl.Series(base_ns[clock]))
    return Participants(
        operation=combined["instance"].rle_id().cast(pl.Int64).to_numpy(),
        clock=clock,
        start=times["start"].cast(pl.Float64).fill_null(float("-inf")).to_numpy(),
        end=times["end"].cast(pl.Float64).fill_null(float("inf")).to_numpy(),
        reading=times["reading"].cast(pl.Float64).to_numpy(),
        is_together=combined["is_together"].to_numpy(),
    )
