"""Measure how much data each rank sends to every other rank, in sends and in all-to-alls."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.across_ranks.arrivals import SHORTEST_DURATION
from holotrace.enrich.collectives.collectives import POINT_TO_POINT
from holotrace.enrich.job.outliers import stands_out
from holotrace.enrich.job.rank_tables import typed

PER_PAIR = {
    "collective": pl.String,
    "source_rank": pl.Int32,
    "destination_rank": pl.Int32,
    "instance_count": pl.Int64,
    "bytes": pl.Int64,
    "median_transfer_ns": pl.Float64,
    "median_bytes_per_s": pl.Float64,
    "slowdown": pl.Float64,
    "is_slow": pl.Boolean,
}
FEWEST_INSTANCES = 3
"""A pair with fewer transfers is not judged."""

MOST_RANKS = 128
MOST_TRANSFERS = 1_000_000
"""The table of pairs leaves out all-to-alls of more than 128 ranks. If all other all-to-alls together have more than a
million transfers, the table contains only the first of them: as many as have at most a million transfers in total."""

_PAIR = ("collective", "source_rank", "destination_rank")
_PEERS = ("collective", "is_one_host")
_MOST_NAMED = 3


def per_pair(calls: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Return how much data each rank sent to every other rank, and how long the transfers took.

    A matched send and receive are one transfer, counted at the sender. In an all-to-all, each rank makes one transfer to every
    other rank that it sends data to. Such a transfer begins when the last rank of the group enters the all-to-all, and
    ends when either its sender or its receiver leaves the all-to-all, whichever leaves first:

        transfer = earlier end of sender and receiver - last start of all ranks

    If the clocks are not exact enough, all pairs of an all-to-all get the transfer time of the whole all-to-all.

    The slowdown of a transfer is its time divided by the median time of its peers. A transfer in an
    all-to-all has as peers all transfers of the same all-to-all; a send has as peers all sends of the same size and
    element type. The slowdown of a send of unknown size is null. Transfers within a host are compared only with other
    transfers within a host, and transfers between hosts only with other transfers between hosts. A pair is slow if its
    median slowdown is an outlier (`holotrace.enrich.job.outliers`).

    Args:
        calls: `JobCalls.calls` with the column `operation` added.
        groups: `JobCalls.groups`.
    """
    transfers = pl.concat([_sends(calls), _exchanges(calls, groups)])
    peers = pl.col("transfer_ns").median().over(*_PEERS, "alike")
    has_peers = pl.col("alike").is_not_null() & (peers > 0)
    compared = transfers.with_columns(pl.when(has_peers).then(pl.col("transfer_ns") / peers).alias("slowdown"))
    pairs = compared.group_by(*_PAIR, "is_one_host").agg(
        pl.len().alias("instance_count"),
        pl.when(pl.col("bytes").null_count() == 0).then(pl.col("bytes").sum()).alias("bytes"),
        pl.col("transfer_ns").median().alias("median_transfer_ns"),
        _bandwidth().median().alias("median_bytes_per_s"),
        pl.col("slowdown").median(),
    )
    return typed(pairs.join(_slow(pairs), on=_PAIR, how="left"), PER_PAIR).sort(_PAIR)


def slow_pairs(pairs: pl.DataFrame) -> tuple[str, ...]:
    """Name the pairs of ranks with slow all-to-alls; `slow_parts` reports slow sends."""
    slow = pairs.filter(pl.col("is_slow") & (pl.col("collective") == "all_to_all")).select(
        pl.min_horizontal("source_rank", "destination_rank").alias("one"),
        pl.max_horizontal("source_rank", "destination_rank").alias("other"),
        "slowdown",
    )
    both = slow.group_by("one", "other").agg(pl.col("slowdown").max()).sort("slowdown", "one", "other", descending=True)
    named = [
        f"{one} and {other} ({factor:.1f} times as long)" for one, other, factor in both.head(_MOST_NAMED).iter_rows()
    ]
    more = f", and {len(both) - len(named):,} more pairs" if len(both) > len(named) else ""
    if not named:
        return ()
    return (
        f"all-to-alls are slower between ranks {', '.join(named)}{more} than between the median pair; check these links",
    )


def left_out(calls: pl.DataFrame) -> tuple[str, ...]:
    """Return a finding if the job has more all-to-all transfers than `per_pair` covers (`MOST_TRANSFERS`)."""
    counted = (pl.col("collective") == "all_to_all") & (pl.col("group_size") <= MOST_RANKS)
    total = calls.filter(counted)["group_size"].sum()
    sentence = f"the table of rank pairs covers only the first {MOST_TRANSFERS:,} of {total:,} all-to-all transfers; choose fewer steps"
    return (sentence,) if total > MOST_TRANSFERS else ()


def _slow(pairs: pl.DataFrame) -> pl.DataFrame:
    judged = pairs.filter((pl.col("instance_count") >= FEWEST_INSTANCES) & pl.col("slowdown").is_not_null())
    return judged.select(*_PAIR, stands_out(judged, "slowdown", _PEERS).alias("is_slow"))


def _bandwidth() -> pl.Expr:
    is_known = (pl.col("bytes") > 0) & (pl.col("transfer_ns") > 0)
    return pl.when(is_known).then(pl.col("bytes") / pl.col("transfer_ns") * 1e9)


def _sends(calls: pl.DataFrame) -> pl.DataFrame:
    is_send = pl.col("collective") == "send"
    one_end = pl.col("collective").is_in(POINT_TO_POINT) & pl.col("peer").is_not_null()
    ends = calls.filter(one_end).with_columns(
        pl.when(is_send).then("rank").otherwise("peer").alias("source_rank"),
        pl.when(is_send).then("peer").otherwise("rank").alias("destination_rank"),
    )
    once = ends.sort(~is_send).unique("operation", keep="first", maintain_order=True)
    hosts = calls.select(destination_rank="rank", destination_host="host").unique()
    return once.join(hosts, on="destination_rank", how="left").select(
        pl.lit("send").alias("collective"),
        "source_rank",
        "destination_rank",
        pl.when(pl.col("message_bytes").is_not_null()).then(pl.struct("message_bytes", "dtype").hash()).alias("alike"),
        _is_one_host(pl.col("host")),
        pl.col("message_bytes").alias("bytes"),
        "transfer_ns",
    )


def _is_one_host(source: pl.Expr) -> pl.Expr:
    return (source == pl.col("destination_host")).fill_null(value=False).alias("is_one_host")


def _exchanges(calls: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Return one row per all-to-all and pair of ranks that exchange data."""
    exchanges = _divided(calls, groups)
    ends = exchanges.select("operation", "host", "aligned_end_ns", destination_rank="rank")
    last_start = pl.col("aligned_start_ns").max().over("operation").alias("last_start")
    pairs = (
        exchanges.with_columns(last_start)
        .explode("destination_rank", "split")
        .filter((pl.col("split") > 0) & (pl.col("rank") != pl.col("destination_rank")))
        .join(ends, on=["operation", "destination_rank"], how="left", suffix="_there", maintain_order="left")
    )
    by_clock = pl.min_horizontal("aligned_end_ns", "aligned_end_ns_there") - pl.col("last_start")
    is_on_one_clock = pl.col("transfer_basis") != SHORTEST_DURATION
    return pairs.rename({"host_there": "destination_host"}).select(
        "collective",
        pl.col("rank").alias("source_rank"),
        "destination_rank",
        pl.col("operation").cast(pl.UInt64).alias("alike"),
        _is_one_host(pl.col("host")),
        (pl.col("in_bytes") * (pl.col("split") / pl.col("total"))).round().cast(pl.Int64).alias("bytes"),
        pl.when(is_on_one_clock).then(by_clock).otherwise("transfer_ns").alias("transfer_ns"),
    )


def _divided(calls: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Return the all-to-alls whose splits are known, with the columns `destination_rank`, `split` and `total`.

    The list `split` has the relative size of the part for each rank in the list `destination_rank`; `total` is its sum.
    """
    members = groups.select("group", pl.col("ranks").alias("destination_rank"))
    size, listed = pl.col("group_size"), pl.col("in_splits")
    known = (
        calls.filter(pl.col("instance").is_not_null() & (pl.col("collective") == "all_to_all") & (size <= MOST_RANKS))
        .join(members, on="group", maintain_order="left")
        .filter(pl.col("destination_rank").list.len() == size)
        .with_columns(pl.when(listed.list.len() == size).then(listed).alias("in_splits"))
        .filter(listed.is_not_null() | pl.col("is_even"))
        .sort("operation")
        .with_columns(size.cum_sum().alias("transfers"))
        .filter(pl.col("transfers").max().over("operation") <= MOST_TRANSFERS)
    )
    equal = pl.lit(1, pl.Int64).repeat_by(size)
    divided = known.with_columns(pl.coalesce(listed, equal).alias("split"))
    return divided.with_columns(pl.col("split").list.sum().alias("total"))
