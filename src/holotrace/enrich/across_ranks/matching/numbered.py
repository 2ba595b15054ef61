"""Matches calls by recorded numbers: the sequence number within the group, or the communication id."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holotrace.enrich.across_ranks.matching.rows import MATCHES, instances, matched, shared, without
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT

_MOST_WITH_ONE_NUMBER = 8
"""If a rank has, on average, more calls than this per distinct number in a group, the numbers do not identify calls."""


def by_number(rows: pl.DataFrame) -> pl.DataFrame:
    """Match collectives by group and sequence number or, without a sequence number, by communication id.

    Matching calls must also have the same `family` and `content` (element type, and size if all ranks have the same
    size). If the number of kernels with the same sequence number or id differs between ranks, the calls were
    coalesced, and all these kernels form one operation.

    Args:
        rows: the calls of all ranks, from `rows_of`.

    Returns:
        `MATCHES`; an operation may have several rows from one rank.
    """
    slim = rows.select("row", "rank", "family", "content", "group", "sequence", "communication_id")
    collectives = slim.filter(~IS_POINT_TO_POINT)
    by_sequence = _matched(collectives, "sequence", ["group", "sequence"])
    by_id = _matched(without(collectives, by_sequence), "communication_id", ["communication_id"])
    return pl.concat([pl.DataFrame(schema=MATCHES), by_sequence, by_id])


def _matched(rows: pl.DataFrame, number: str, identity: Sequence[str]) -> pl.DataFrame:
    known = _counting(rows.drop_nulls(identity), number, identity)
    if known.is_empty():
        return pl.DataFrame(schema=MATCHES)
    keys = [*identity, "family", "content"]
    counts = known.group_by(*keys, "rank").len("count")
    uneven = counts.filter(pl.col("count").n_unique().over(keys) > 1).select(*keys).unique()
    coalesced = known.join(uneven, on=keys, how="semi", maintain_order="left")
    pairs = coalesced.with_columns(pl.col("row").min().over(keys).alias("instance"))
    even = known.join(uneven, on=keys, how="anti", maintain_order="left")
    whole = shared(pairs.select("row", "rank", "instance")).select("row", "instance")
    return matched(pl.concat([instances(even, keys), whole]), number)


def _counting(rows: pl.DataFrame, number: str, identity: Sequence[str]) -> pl.DataFrame:
    """Drop rows whose numbers do not identify calls; some libraries write the same number for all calls."""
    of_group = ["rank", *(name for name in identity if name != number)]
    return rows.filter(pl.len().over(of_group) <= _MOST_WITH_ONE_NUMBER * pl.col(number).n_unique().over(of_group))
