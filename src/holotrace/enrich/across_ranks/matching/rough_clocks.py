"""Estimates how much the clocks of a group's ranks differ, to rule out matches that are impossible.

`clocks` estimates the differences more precisely, but needs matched calls.
"""

from __future__ import annotations

import polars as pl

_TOLERANCE_NS = 20_000
_DRIFT = 1e-4
"""Clocks of different hosts drift apart by up to 100 ppm."""

SYNCHRONISING = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Families of collectives that no rank can leave before all ranks have entered."""


def rough_offsets(rows: pl.DataFrame) -> pl.DataFrame:
    """Return how far each rank's clock is ahead of the clock of a reference rank.

    All ranks of a host have the same offset. It is computed from the operations in which both the reference rank and a
    rank of the host take part: the median of (end on the host - end on the reference rank).

    Args:
        rows: group, rank, host, end_ns, and instance (equal for all calls of one operation; null if not matched).

    Returns:
        One row per group and rank: group, rank, offset_ns int64 (0 for ranks on the host of the reference; null if the
        rank's host shares no operation with the reference rank) and tolerance_ns int64 (the possible error of the
        offset).
    """
    members = rows.group_by("group", "rank", "host").agg(pl.col("instance").count().alias("count"))
    first = members.sort("group", "count", "rank", descending=[False, True, False])
    references = first.group_by("group", maintain_order=True).first().drop("count")
    known = rows.drop_nulls("instance").select("group", "rank", "host", "instance", "end_ns")
    ends = known.join(references, on=["group", "rank"], how="semi")
    pairs = known.join(ends.select("group", "instance", reference_ns="end_ns"), on=["group", "instance"])
    difference = (pl.col("end_ns") - pl.col("reference_ns")).median().round().cast(pl.Int64)
    per_host = pairs.group_by("group", "host").agg(offset_ns=difference)
    placed = members.join(per_host, on=["group", "host"], how="left").join(
        references.select("group", reference_host="host"), on="group"
    )
    is_same = pl.col("host") == pl.col("reference_host")
    spans = rows.group_by("group", "rank").agg(span_ns=pl.col("end_ns").max() - pl.col("end_ns").min())
    drift = (pl.col("span_ns").max().over("group") * _DRIFT).cast(pl.Int64)
    has_several = pl.col("host").n_unique().over("group") > 1
    return placed.join(spans, on=["group", "rank"]).select(
        "group",
        "rank",
        pl.when(is_same).then(0).otherwise("offset_ns").alias("offset_ns"),
        pl.when(has_several).then(_TOLERANCE_NS + drift).otherwise(_TOLERANCE_NS).alias("tolerance_ns"),
    )


def corrected(rows: pl.DataFrame, offsets: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose offset is known, with times on the clock of the reference rank, and tolerance_ns."""
    known = rows.join(offsets.drop_nulls("offset_ns"), on=["group", "rank"], maintain_order="left")
    return known.with_columns(pl.col("start_ns", "end_ns") - pl.col("offset_ns")).drop("offset_ns")


def operations(rows: pl.DataFrame) -> pl.DataFrame:
    """Summarise `corrected` rows by group and instance: last_start_ns, first_end_ns, middle_end_ns and is_possible.

    `is_possible` is false if a rank leaves the operation more than tolerance_ns before another rank enters it.
    """
    spans = rows.group_by("group", "instance").agg(
        pl.col("start_ns").max().alias("last_start_ns"),
        pl.col("end_ns").min().alias("first_end_ns"),
        ((pl.col("end_ns").min() + pl.col("end_ns").max()) // 2).alias("middle_end_ns"),
        pl.col("tolerance_ns").first(),
    )
    is_possible = pl.col("last_start_ns") <= pl.col("first_end_ns") + pl.col("tolerance_ns")
    return spans.with_columns(is_possible.alias("is_possible"))
