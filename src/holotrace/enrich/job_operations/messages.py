"""Match the sends and receives of a pipeline with passes and with each other."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

WITHIN_RANK = ("step", "rank")
LANE = "lane"

CLOCK_ERROR_NS = 50_000
"""A receive carries no data if it starts more than this long after the last pass of its rank in the same direction
starts. A send carries no data if it ends more than this long before the first such pass ends.

At the beginning and end of a step, the schedule skips some sends and receives, but some recorders write them anyway.
"""


class Messages(NamedTuple):
    """The messages of a pipeline.

    table  the messages that were matched to a pass: the columns of the messages, is_recv (bool), pass (uint32: row of
           the pass that needs the received data or computed the sent data) and previous (uint32: row of the pass of the
           same kind that precedes it on the rank)
    pairs  row and pair; the send and the receive of a message have the same pair
    """

    table: pl.DataFrame
    pairs: pl.DataFrame


def messages_of(messages: pl.DataFrame, passes: pl.DataFrame) -> Messages:
    """Match messages to passes by their order on each rank, and match sends to receives.

    The k-th message of a kind on a rank belongs to a pass of the rank in the same direction (forward or backward):

    - If the rank has exactly as many messages of the kind as it has passes that need such a message, the k-th message
      belongs to the k-th of these passes.
    - If the messages are receives, and the rank has one receive fewer than passes, the first pass has no receive, so
      the k-th receive belongs to the (k+1)-th pass.
    - Otherwise, the k-th message belongs to the k-th pass.

    A message carries no data if it is matched to a pass that needs no message.

    Args:
        messages: operations with a kind in `MESSAGES`.
        passes: the result of `holotrace.enrich.job_operations.dependencies.passes_of`.
    """
    counted = _carrying(_with_counts(messages, passes)).with_columns(
        pl.int_range(pl.len()).over(*_OF_KIND).alias("number"), pl.len().over(*_OF_KIND).alias("count")
    )
    of_pass = pl.concat(_of_every_pass(counted, passes, is_recv=is_recv) for is_recv in (True, False))
    return Messages(of_pass, _pairs(of_pass.filter("is_needed")))


_OF_KIND = ("step", "rank", "kind")
_OF_DIRECTION = ("step", "rank", "direction")


def _with_counts(messages: pl.DataFrame, passes: pl.DataFrame) -> pl.DataFrame:
    """Add each message's direction, and counts and times of the passes that its rank runs in this direction."""
    end = pl.col("start_ns") + pl.col("duration_ns")
    facts = (
        passes.drop_nulls("direction")
        .group_by(_OF_DIRECTION)
        .agg(
            pl.len().alias("pass_count"),
            pl.col("needs_recv").sum().alias("recv_count"),
            pl.col("needs_send").sum().alias("send_count"),
            pl.col("start_ns").max().alias("last_start"),
            end.min().alias("first_end"),
        )
    )
    return (
        messages.with_columns(
            pl.col("kind").str.extract("^(forward|backward)").alias("direction"),
            pl.col("kind").str.ends_with("recv").alias("is_recv"),
            pl.len().over(*_OF_KIND).alias("recorded_count"),
        )
        .join(facts, on=_OF_DIRECTION)
        .with_columns(pl.when("is_recv").then("recv_count").otherwise("send_count").alias("needed_count"))
        .sort("start_ns", "sequence")
    )


def _carrying(counted: pl.DataFrame) -> pl.DataFrame:
    """If more messages were recorded than the passes need, drop the messages that carry no data.

    Such a message is a send that ends before the first pass has ended, when there is nothing to send yet, or a receive
    that starts after the last pass has started, when no pass needs data any more.
    """
    end = pl.col("start_ns") + pl.col("duration_ns")
    is_late = pl.col("start_ns") > pl.col("last_start") + CLOCK_ERROR_NS
    is_early = end < pl.col("first_end") - CLOCK_ERROR_NS
    is_idle = pl.when("is_recv").then(is_late).otherwise(is_early)
    return counted.filter(~(is_idle & (pl.col("recorded_count") > pl.col("needed_count"))))


def _of_every_pass(counted: pl.DataFrame, passes: pl.DataFrame, *, is_recv: bool) -> pl.DataFrame:
    needs = "needs_recv" if is_recv else "needs_send"
    own = counted.filter(is_recv=is_recv)
    is_exact = pl.col("count") == pl.col("needed_count")
    lacks_first = pl.lit(is_recv) & (pl.col("count") == pl.col("pass_count") - 1)
    among_all = own.filter(~is_exact).with_columns(pl.col("number") + lacks_first.cast(pl.Int64))
    every = passes.drop_nulls("direction").select(
        *_OF_DIRECTION,
        "number",
        pl.col("row").alias("pass"),
        "previous",
        pl.col("global_chunk").alias("of_chunk"),
        pl.col(needs).alias("is_needed"),
    )
    needed = (
        every.filter("is_needed")
        .sort("number")
        .with_columns(pl.int_range(pl.len()).over(_OF_DIRECTION).alias("number"))
    )
    keys = [*_OF_DIRECTION, "number"]
    return pl.concat([own.filter(is_exact).join(needed, on=keys), among_all.join(every, on=keys)])


def _pairs(carrying: pl.DataFrame) -> pl.DataFrame:
    """Give the send and the receive of each message the same number.

    Between two chunks, the k-th send matches the k-th receive.
    """
    is_forward = pl.col("direction") == "forward"
    lower = pl.when(is_forward == pl.col("is_recv")).then(pl.col("of_chunk") - 1).otherwise("of_chunk")
    lane = (pl.col("rank").rank("dense").over("dp_rank", "stage") - 1).alias(LANE)
    placed = carrying.sort("start_ns", "sequence").with_columns(lower.alias("lower"), lane)
    numbered = placed.with_columns(pl.int_range(pl.len()).over(*_OF_KIND, "lower").alias("place"))
    key = pl.struct("step", "dp_rank", LANE, "direction", "lower", "place")
    return numbered.select("row", key.rank("dense").alias("pair"))
