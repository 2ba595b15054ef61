"""Matches batches of sends and receives across ranks; each batch is one kernel.

The k-th batch in which rank A sends to its partner B matches the k-th batch in which B receives from A. In ring
attention, or in an all-to-all made of sends, such pairs connect the batches of all ranks; in a pipeline, they connect
two stages.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.across_ranks.matching.rough_clocks import corrected, operations, rough_offsets
from holotrace.enrich.across_ranks.matching.rows import MATCHES, instances, matched, without

IS_BATCH = pl.col("family") == "send_recv"
_TRANSFER = ("source", "destination")


def by_partners(rows: pl.DataFrame, large_groups: pl.DataFrame) -> pl.DataFrame:
    """Match batches by their recorded partners or, if these are missing in a group of more than two ranks, by order.

    With recorded partners, all batches that are connected through partners are matched, unless two of them are from the
    same rank. Without recorded partners, the k-th batches of all ranks in a step are matched. A step is skipped if the
    recorded ranks of the group have different numbers of batches in it, or if a rank leaves a batch before another
    enters it.

    Args:
        rows: the calls of all ranks, from `rows_of`, with inferred groups.
        large_groups: one row per group of more than two ranks: group, and present, the number of its recorded ranks.
    """
    batched = rows.filter(IS_BATCH)
    if batched.is_empty():
        return pl.DataFrame(schema=MATCHES)
    connected = _connected(batched)
    silent = without(batched, connected).filter(pl.col("partners").is_null())
    of_large = silent.join(large_groups, on="group", maintain_order="left")
    return pl.concat([matched(connected, "send_receive"), matched(_in_order(of_large), "stream_order")])


def _connected(batched: pl.DataFrame) -> pl.DataFrame:
    """Match batches that are connected through partners, unless two of these batches are from the same rank.

    Returns: row, instance.
    """
    pairs = _pairs(batched)
    if pairs.is_empty():
        return pairs.select("row", instance="row")
    rows = batched["row"].to_numpy()
    first, second = (np.searchsorted(rows, pairs[end].to_numpy()) for end in ("row", "other"))
    labels = _components(len(rows), first, second)
    joined = batched.select("row", "rank", pl.Series("instance", rows[labels], pl.UInt32))
    sizes = (pl.len() > 1) & (pl.col("rank").n_unique() == pl.len())
    return joined.filter(sizes.over("instance")).select("row", "instance")


def _pairs(batched: pl.DataFrame) -> pl.DataFrame:
    """Pair the two batches of each transfer (`row`, `other`).

    In a step in which A recorded n sends to B, the batches are paired only if B recorded n receives from A.
    """
    ends = batched.select("row", "rank", "window", "partners").explode("partners").drop_nulls("partners")
    is_send = pl.col("partners") >= 0
    other = pl.when(is_send).then("partners").otherwise(-1 - pl.col("partners"))
    rank = pl.col("rank").cast(pl.Int64)
    sided = ends.with_columns(
        pl.when(is_send).then(rank).otherwise(other).alias("source"),
        pl.when(is_send).then(other).otherwise(rank).alias("destination"),
        is_send.alias("is_send"),
    )
    keys = [*_TRANSFER, "window"]
    placed = sided.with_columns(
        pl.int_range(pl.len()).over(*keys, "is_send").alias("place"), pl.len().over(*keys, "is_send").alias("count")
    )
    sends, receives = (placed.filter(pl.col("is_send") == side) for side in (True, False))
    return sends.join(
        receives.select(*keys, "place", "count", other="row"), on=[*keys, "place", "count"], nulls_equal=True
    ).select("row", "other")


def _components(count: int, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return, for each node, the lowest number of a node in the same connected component."""
    labels = np.arange(count)
    while True:
        least = np.minimum(labels[first], labels[second])
        joined = labels.copy()
        for ends in (first, second):
            np.minimum.at(joined, ends, least)
            np.minimum.at(joined, labels[ends], least)
        joined = joined[joined]
        if np.array_equal(joined, labels):
            return labels
        labels = joined


def _in_order(batched: pl.DataFrame) -> pl.DataFrame:
    keys = ["group", "window"]
    counted = batched.with_columns(pl.len().over(*keys, "rank").alias("count"))
    is_even = (pl.col("count").n_unique() == 1) & (pl.col("rank").n_unique() == pl.col("present").first())
    numbered = instances(counted.filter(is_even.over(keys)), keys)
    known = batched.join(numbered, on="row", maintain_order="left")
    spans = operations(corrected(known, rough_offsets(known)))
    impossible = known.join(spans.filter(~pl.col("is_possible")), on="instance", how="semi").select(keys).unique()
    return known.join(impossible, on=keys, how="anti", nulls_equal=True).select("row", "instance")
