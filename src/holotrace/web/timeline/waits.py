"""The longest waits in collectives."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.across_ranks.timed_calls import timed_calls
from holotrace.store.trace import Trace


@dataclass(frozen=True, eq=False)
class Waits(EqualByContent):
    """Collectives in which a rank waits a long time for others, or other ranks wait a long time for this rank.

    table  one row per rank and collective, sorted by rank and start:

           rank         int32
           family       string  all_reduce, ...
           start_ns     int64   time at which the rank enters
           wait_ns      int64   time that the rank waits in the collective until the last rank arrives
           caused_ns    int64   the longest wait of another rank, if this rank came last; else 0
           late_rank    int32   the rank that came last; null if several ranks came last
           event_index  uint32  the rank's kernel or, if the host itself communicates, the range of the call on the host
    """

    table: pl.DataFrame


def longest_waits(trace: Trace, *, shortest_ns: int, most: int) -> Waits:
    """Compare when the ranks enter each collective, like `holotrace.stragglers`.

    For each rank, return up to `most` of the longest waits, each at least `shortest_ns` long.
    """
    collectives = timed_calls(trace.map(of_rank), sends=False).calls.filter(pl.col("wait_ns").is_not_null())
    compared = collectives.select(
        "rank",
        pl.col("family").cast(pl.String),
        "start_ns",
        "wait_ns",
        pl.when("is_last").then(pl.col("wait_ns").max().over("instance")).otherwise(0).alias("caused_ns"),
        pl.col("rank").filter("is_last").first().over("instance").alias("late_rank"),
        "event_index",
    )
    amount = pl.max_horizontal("wait_ns", "caused_ns")
    number = amount.rank("ordinal", descending=True).over("rank")
    return Waits(compared.filter((amount >= shortest_ns) & (number <= most)).sort("rank", "start_ns"))
