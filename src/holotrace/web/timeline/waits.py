"""The longest waits in collectives."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.across_ranks.matching.matching import match
from holotrace.store.trace import Trace

_DURATION = pl.col("end_ns") - pl.col("start_ns")


@dataclass(frozen=True, eq=False)
class Waits(EqualByContent):
    """Collectives in which a rank waits long for another rank, or others wait long for it.

    table  one row per rank and collective, sorted by rank and start:

           rank       int32
           family     string  all_reduce, ...
           start_ns   int64   time at which the rank enters
           wait_ns    int64   time of the rank in the collective minus the shortest time of any rank
           caused_ns  int64   the longest wait, if this rank came last; else 0
           late_rank  int32   the rank that came last; null if several did
    """

    table: pl.DataFrame


def longest_waits(trace: Trace, *, shortest_ns: int, most: int) -> Waits:
    """Compare how long each rank stays in each collective, as `holotrace.stragglers` does.

    A rank that stays longer than another waits for it. Return the waits of at least `shortest_ns`, at most `most` for
    each rank.
    """
    collectives = match(trace.map(of_rank), sends=False).calls.drop_nulls("instance")
    compared = collectives.join(_per_operation(collectives), on="instance").select(
        "rank",
        pl.col("family").cast(pl.String),
        "start_ns",
        (_DURATION - pl.col("shortest")).alias("wait_ns"),
        pl.when(pl.col("rank") == pl.col("late_rank"))
        .then(pl.col("longest") - pl.col("shortest"))
        .otherwise(0)
        .alias("caused_ns"),
        "late_rank",
    )
    amount = pl.max_horizontal("wait_ns", "caused_ns")
    number = amount.rank("ordinal", descending=True).over("rank")
    return Waits(compared.filter((amount >= shortest_ns) & (number <= most)).sort("rank", "start_ns"))


def _per_operation(collectives: pl.DataFrame) -> pl.DataFrame:
    late_rank = pl.col("rank").get(_DURATION.arg_min())
    return collectives.group_by("instance").agg(
        _DURATION.min().alias("shortest"),
        _DURATION.max().alias("longest"),
        pl.when((_DURATION.min() == _DURATION).sum() == 1).then(late_rank).alias("late_rank"),
    )
