"""Measure how evenly a mixture of experts spreads its tokens over the ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

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
"""Findings report ranks with at least this many times the mean number of tokens."""


def per_expert_rank(calls: pl.DataFrame, tokens: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    """Return the tokens that each rank of an expert-parallel group sends, receives and computes, compared with the mean.

        imbalance           tokens that the experts of the rank receive / mean over the ranks of its group
        computed_imbalance  rows of the rank's grouped matrix products / mean over the ranks of its group

    A token is a row of the tensor that an all-to-all splits. `sent_tokens` and `received_tokens` count a token twice: on
    the way to its expert, and on the way back. `computed_tokens` counts a token once in each grouped matrix product of
    its expert. This column can therefore be compared between ranks, but not with the other two columns. All three
    columns include padding.
    `imbalance` ignores tokens on the way back, because each rank gets back as many tokens as it has sent, even if some
    experts receive more tokens than others.

    Args:
        calls: rank, event_index, axis and process_group.
        tokens: rank, event_index, sent_rows and received_rows.
        products: rank and `PRODUCTS`.
    """
    exchanged = calls.filter(pl.col("axis") == "ep")
    sums = (
        _with_ways_back(exchanged.join(tokens, on=["rank", "event_index"]))
        .group_by("process_group", "rank")
        .agg(
            pl.len().alias("call_count"),
            pl.col("sent_rows").sum().alias("sent_tokens"),
            pl.col("received_rows").sum().alias("received_tokens"),
            pl.col("sent_rows", "received_rows").filter(~pl.col("is_way_back")).sum(),
        )
    )
    members = exchanged.select("process_group", "rank").unique()
    grouped = products.join(members, on="rank", how="left")
    both = sums.join(grouped, on=["process_group", "rank"], how="full", coalesce=True, nulls_equal=True)
    return (
        both.with_columns(
            pl.col("call_count").fill_null(0),
            _over_mean("received_rows").alias("there"),
            _over_mean("sent_rows").alias("back"),
            _over_mean("computed_tokens").alias("computed_imbalance"),
        )
        .with_columns(_to_experts().alias("imbalance"))
        .select(list(PER_EXPERT_RANK))
        .sort("process_group", "rank", nulls_last=True)
    )


def _with_ways_back(exchanged: pl.DataFrame) -> pl.DataFrame:
    """Add `is_way_back`: whether the call sends back the tokens of an earlier exchange."""
    ordered = exchanged.sort("process_group", "rank", "event_index")
    flags: list[bool] = []
    for _, rows in ordered.group_by("process_group", "rank", maintain_order=True):
        flags += _are_ways_back(rows.select("sent_rows", "received_rows").iter_rows())
    return ordered.with_columns(pl.Series("is_way_back", flags, pl.Boolean))


def _are_ways_back(exchanges: Iterable[tuple[int, int]]) -> Iterator[bool]:
    """Yield, for each exchange of a rank in time order, whether it sends back the tokens of an earlier exchange.

    An exchange sends tokens back if it sends as many tokens as an earlier exchange received, and receives as many tokens
    as the earlier exchange sent.
    """
    unanswered: Counter[tuple[int, int]] = Counter()
    for sent, received in exchanges:
        answers = unanswered[received, sent] > 0
        unanswered[(received, sent) if answers else (sent, received)] += -1 if answers else 1
        yield answers


def _to_experts() -> pl.Expr:
    """Return the tokens that a rank's experts receive, divided by the mean over the ranks of its group.

    If a recording begins while the tokens are at the experts, its first all-to-all sends tokens back. `is_way_back` is
    then wrong: it marks the calls that send tokens to the experts. This function therefore decides by the numbers of
    tokens. On the way back, all ranks receive about the same number, so the way to
    the experts is the direction in which the ranks' numbers differ more.
    """
    there, back = pl.col("there"), pl.col("back")
    is_there = there.max().over("process_group") >= back.max().over("process_group")
    return pl.when(is_there).then(there).otherwise(back)


def _over_mean(column: str) -> pl.Expr:
    mean = pl.col(column).mean().over("process_group")
    return pl.when(mean > 0).then(pl.col(column) / mean)


def expert_findings(table: pl.DataFrame) -> Iterator[str]:
    """Report the ranks with the highest `imbalance` and `computed_imbalance`, if these are at least `UNEVEN`."""
    for column, what in (("imbalance", "receives"), ("computed_imbalance", "computes")):
        loaded = table.filter(pl.col(column) >= UNEVEN).sort(column, "rank", descending=[True, False])
        for row in loaded.unique("process_group", keep="first", maintain_order=True).head(1).iter_rows(named=True):
            group = f" of {row['process_group']}" if row["process_group"] else ""
            yield f"experts get uneven numbers of tokens: rank {row['rank']}{group} {what} {row[column]:.2f} times the mean number"
