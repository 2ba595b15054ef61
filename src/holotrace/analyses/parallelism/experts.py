"""How evenly a mixture of experts spreads its tokens over the ranks."""

from __future__ import annotations

import polars as pl

PER_EXPERT_RANK = {
    "process_group": pl.String,
    "rank": pl.Int32,
    "call_count": pl.Int64,
    "sent_tokens": pl.Int64,
    "received_tokens": pl.Int64,
    "imbalance": pl.Float64,
}


def per_expert_rank(calls: pl.DataFrame, tokens: pl.DataFrame) -> pl.DataFrame:
    """Return the tokens that each rank of an expert-parallel group sends and receives, and its load beside the mean.

        imbalance = tokens that the rank receives / mean over the ranks of its group

    A token is a row of the tensor that an all-to-all splits; it counts each time it is sent, to its expert and back.

    Args:
        calls: with rank, event_index, axis and process_group.
        tokens: rank, event_index, sent_rows and received_rows.
    """
    exchanged = calls.filter(pl.col("axis") == "ep").join(tokens, on=["rank", "event_index"])
    sums = exchanged.group_by("process_group", "rank").agg(
        pl.len().alias("call_count"),
        pl.col("sent_rows").sum().alias("sent_tokens"),
        pl.col("received_rows").sum().alias("received_tokens"),
    )
    mean = pl.col("received_tokens").mean().over("process_group")
    return sums.with_columns(pl.when(mean > 0).then(pl.col("received_tokens") / mean).alias("imbalance")).sort(
        "process_group", "rank"
    )
