"""How evenly a mixture of experts spreads its tokens over the ranks."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from holotrace.analyses.parallelism.grouped_products import PRODUCTS

PER_EXPERT_RANK = {
    "process_group": pl.String,
    "rank": pl.Int32,
    "call_count": pl.Int64,
    "sent_tokens": pl.Int64,
    "received_tokens": pl.Int64,
    "imbalance": pl.Float64,
    **PRODUCTS,
    "computed_imbalance": pl.Float64,
}
UNEVEN = 1.2
"""Findings report loads that exceed the mean by a fifth or more."""


def per_expert_rank(calls: pl.DataFrame, tokens: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    """Return the tokens that each rank of an expert-parallel group sends, receives and computes, compared with the mean.

        imbalance           tokens that the rank receives / mean over the ranks of its group
        computed_imbalance  rows of its grouped matrix products / mean over the ranks of its group

    A token is a row of the tensor that an all-to-all splits; it counts each time it is sent, to its expert and back. A
    token also counts once in each matrix product of its expert, so a rank's rows are only comparable with other ranks'
    rows. If the program adds padding, the padding counts too.

    Args:
        calls: with rank, event_index, axis and process_group.
        tokens: rank, event_index, sent_rows and received_rows.
        products: rank and `PRODUCTS`.
    """
    exchanged = calls.filter(pl.col("axis") == "ep")
    sums = (
        exchanged.join(tokens, on=["rank", "event_index"])
        .group_by("process_group", "rank")
        .agg(
            pl.len().alias("call_count"),
            pl.col("sent_rows").sum().alias("sent_tokens"),
            pl.col("received_rows").sum().alias("received_tokens"),
        )
    )
    members = exchanged.select("process_group", "rank").unique()
    grouped = products.join(members, on="rank", how="left")
    both = sums.join(grouped, on=["process_group", "rank"], how="full", coalesce=True, nulls_equal=True)
    return both.with_columns(
        pl.col("call_count").fill_null(0),
        _over_mean("received_tokens").alias("imbalance"),
        _over_mean("computed_tokens").alias("computed_imbalance"),
    ).sort("process_group", "rank", nulls_last=True)


def _over_mean(column: str) -> pl.Expr:
    mean = pl.col(column).mean().over("process_group")
    return pl.when(mean > 0).then(pl.col(column) / mean)


def expert_findings(table: pl.DataFrame) -> Iterator[str]:
    """Name the rank with the highest imbalance, if it has at least a fifth more tokens than the mean of its group."""
    for column, what in (("imbalance", "receives"), ("computed_imbalance", "computes")):
        loaded = table.filter(pl.col(column) >= UNEVEN).sort(column, "rank", descending=[True, False])
        for row in loaded.unique("process_group", keep="first", maintain_order=True).head(1).iter_rows(named=True):
            group = f" of {row['process_group']}" if row["process_group"] else ""
            yield f"experts are unevenly loaded: rank {row['rank']}{group} {what} {row[column]:.2f} times the mean of tokens"
