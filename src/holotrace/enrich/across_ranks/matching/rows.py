"""The tables that all modules of the matching use: the calls of all ranks, and the matches between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from holotrace.enrich.across_ranks.matching.calls import COLUMNS, OfRank
from holotrace.enrich.job.rank_tables import of_all_ranks

MatchedBy = pl.Enum(["sequence", "communication_id", "signature", "time", "stream_order", "send_receive"])
"""How a call was matched."""

MATCHES: dict[str, pl.DataType | type[pl.DataType]] = {
    "row": pl.UInt32,
    "instance": pl.UInt32,
    "matched_by": MatchedBy,
}
"""The columns of a match.

`row` is the row of a call, `instance` is the row of the first call of the same operation, and `matched_by` is the
method by which the call was matched.
"""


def rows_of(of_ranks: Mapping[int, OfRank]) -> pl.DataFrame:
    """Return the calls of all ranks, sorted by rank and by the time when the host requested them.

    Returns:
        The columns of `OfRank.calls`, and:

        row   uint32  number of the row
        rank  int32
        host  uint32  number of the rank's host
    """
    hosts = {
        host: number for number, host in enumerate(dict.fromkeys(of_rank.facts.host for of_rank in of_ranks.values()))
    }
    tables = {rank: known.calls for rank, known in sorted(of_ranks.items())}
    host_of = {rank: hosts[known.facts.host] for rank, known in of_ranks.items()}
    together = of_all_ranks(tables) if tables else pl.DataFrame(schema=COLUMNS | {"rank": pl.Int32})
    named = together.with_columns(pl.col("rank").replace_strict(host_of, return_dtype=pl.UInt32).alias("host"))
    ordered = named.sort("rank", "asked_ns", "start_ns", nulls_last=False, maintain_order=True)
    return ordered.with_row_index("row")


def instances(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Among calls with equal keys, match the k-th calls of all ranks; return row and instance of each matched call."""
    placed = rows.with_columns(pl.int_range(pl.len()).over(*keys, "rank").alias("place"))
    numbered = placed.with_columns(pl.col("row").min().over(*keys, "place").alias("instance"))
    return shared(numbered.select("row", "rank", "instance")).select("row", "instance")


def of_most(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """For each combination of keys, return the calls of the ranks that have the most common number of calls.

    For example, if three ranks have 10 calls with these keys and one rank has 9, the calls of the three are returned.
    If no two ranks have the same number of calls, no calls are returned. If several numbers are equally common, the
    largest is used.
    """
    counted = rows.with_columns(pl.len().over(*keys, "rank").alias("count"))
    modes = counted.group_by(*keys, "count").agg(pl.col("rank").n_unique().alias("ranks"))
    ordered = modes.filter(pl.col("ranks") > 1).sort("ranks", "count", descending=True)
    mode = ordered.group_by(keys, maintain_order=True).first()
    common = counted.join(mode, on=[*keys, "count"], how="semi", nulls_equal=True, maintain_order="left")
    return common.drop("count")


def shared(matches: pl.DataFrame) -> pl.DataFrame:
    """Return the matches whose instance has calls from several ranks; `matches` has the columns instance and rank."""
    return matches.filter(pl.col("rank").n_unique().over("instance") > 1)


def matched(pairs: pl.DataFrame, how: str) -> pl.DataFrame:
    """Return the pairs of `row` and `instance` as a table with the columns of `MATCHES`; `matched_by` is `how`."""
    return pairs.select("row", "instance", pl.lit(how, MatchedBy).alias("matched_by"))


def without(rows: pl.DataFrame, matches: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that have no match in `matches`."""
    return rows.join(matches, on="row", how="anti", maintain_order="left")
