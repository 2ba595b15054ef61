"""Measures how the ranks of each process group communicate, which shows the group's axis of parallelism."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.across_ranks.axes import DDP, FSDP_ANNOTATION, Exchange, Use

_IS_SEND, _IS_RECEIVE = pl.col("collective") == "send", pl.col("collective") == "recv"

LEAST_RING = 3
"""A ring has at least this many ranks, because a ring of two ranks looks like a two-stage pipeline."""

MOSTLY = 0.5
"""A rank mostly sends first if it does so in at least this fraction of its steps; in the other steps, it may be late
and receive first."""


def uses_of_groups(calls: pl.DataFrame) -> dict[int, Use]:
    """Return {group: its use}.

    Args:
        calls: `JobCalls.calls`, including the columns `module` (the module that requested the call) and `in_forward`
            (see `holotrace.enrich.across_ranks.forward_calls`).
    """
    known = calls.drop_nulls("group")
    fractions, exchanges = _forward_fractions(known), _exchanges(known)
    sums = known.group_by("group").agg(
        pl.col("collective").unique().alias("families"),
        ((~pl.col("is_even")) | (pl.col("is_even").is_null() & (pl.col("in_bytes") != pl.col("out_bytes"))))
        .any()
        .alias("has_uneven"),
        pl.col("module").str.contains(FSDP_ANNOTATION).any().alias("is_fsdp"),
        (pl.col("module") == DDP).any().alias("is_ddp"),
    )
    return {
        group: Use(
            frozenset(families),
            fractions.get(group),
            has_uneven,
            bool(is_fsdp),
            bool(is_ddp),
            exchanges.get(group, "unknown"),
        )
        for group, families, has_uneven, is_fsdp, is_ddp in sums.iter_rows()
    }


def _forward_fractions(calls: pl.DataFrame) -> dict[int, float]:
    """Return {group: bytes of all-reduces requested in the forward pass, as a fraction of all all-reduced bytes}."""
    reduced = calls.filter(pl.col("collective") == "all_reduce").drop_nulls("in_forward")
    size = pl.col("in_bytes").fill_null(0).cast(pl.Float64)
    sums = reduced.group_by("group").agg(size.sum().alias("all"), size.filter("in_forward").sum().alias("forward"))
    return dict(sums.filter(pl.col("all") > 0).select("group", pl.col("forward") / pl.col("all")).iter_rows())


def _exchanges(calls: pl.DataFrame) -> dict[int, Exchange]:
    """Return {group: the `Exchange` of its ranks}."""
    ranks = _sends_of_ranks(calls.filter(_IS_SEND | _IS_RECEIVE))
    is_cycle = (pl.col("receiver_count") == 1) & pl.col("receives")
    sums = ranks.group_by("group").agg(
        pl.col("at_once").all(), is_cycle.all().alias("is_cycle"), pl.col("rank").n_unique().alias("rank_count")
    )
    is_ring = pl.col("is_cycle") & (pl.col("rank_count") >= LEAST_RING)
    exchange = (
        pl.when(is_ring & pl.col("at_once"))
        .then(pl.lit("ring"))
        .when(is_ring | pl.col("at_once"))
        .then(pl.lit("undecided"))
        .otherwise(pl.lit("in turn"))
    )
    return dict(sums.select("group", exchange).iter_rows())


def _sends_of_ranks(messages: pl.DataFrame) -> pl.DataFrame:
    """Return, for each rank of a group, how many ranks it sends to, and whether it mostly sends before receiving."""
    of_rank = ["group", "rank"]
    per_step = messages.group_by(*of_rank, "step").agg(
        pl.col("start_ns").filter(_IS_SEND).min().alias("first_send_ns"),
        pl.col("end_ns").filter(_IS_RECEIVE).min().alias("first_received_ns"),
    )
    first = (pl.col("first_send_ns") < pl.col("first_received_ns")).mean()
    at_once = per_step.group_by(of_rank).agg((first >= MOSTLY).fill_null(value=False).alias("at_once"))
    receivers = messages.group_by(of_rank).agg(
        pl.col("peer").filter(_IS_SEND).drop_nulls().n_unique().alias("receiver_count"),
        _IS_RECEIVE.any().alias("receives"),
    )
    return at_once.join(receivers, on=of_rank)
