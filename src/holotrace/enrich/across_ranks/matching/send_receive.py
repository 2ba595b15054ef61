"""Matches sends with receives.

The k-th send from rank A to rank B matches B's k-th receive from A; tag, element type and size must be equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holotrace.enrich.across_ranks.matching.rows import instances, without
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT

_PAIR = ("source", "destination", "tag", "content")
_LEAST_SHARE = 0.5
"""A group fits if the numbers of sends and receives are similar: the lower number is at least this fraction of the
higher one."""

_NOISE_NS = 20_000
_IS_SEND = pl.col("family") == "send"


def with_peers(rows: pl.DataFrame, positions: pl.DataFrame) -> pl.DataFrame:
    """Find the peer of calls that record only the peer's number within a group; return row, peer and group.

    A group fits if one of the two ranks records about as many sends as the other records receives. If all groups that
    fit best give the same peer, the smallest of these groups is chosen; otherwise, the peer stays unknown.

    Args:
        rows: the calls of all ranks, from `rows_of`.
        positions: group uint64, rank int32, position int32 (the rank's number within the group) and size.
    """
    unknown = rows.filter(IS_POINT_TO_POINT & pl.col("peer").is_null() & pl.col("group_peer").is_not_null())
    if unknown.is_empty():
        return unknown.select("row", "peer", "group")
    own = ["rank", "family", "group_peer", "tag", "content"]
    counts = unknown.group_by([*own, "group"]).len("count").rename({"group": "recorded_group"})
    others = positions.select("group", peer="rank", group_peer="position")
    offered = counts.join(positions, on="rank").join(others, on=["group", "group_peer"])
    possible = offered.filter((pl.col("recorded_group") == pl.col("group")).fill_null(value=True))
    fitting = _fitting(possible.filter(pl.col("rank") != pl.col("peer")))
    best = fitting.filter(pl.col("share") == pl.col("share").max().over(own))
    is_clear = pl.col("peer").n_unique().over(own) == 1
    chosen = best.filter(is_clear).sort("size", "group").unique(own, keep="first", maintain_order=True)
    return (
        unknown.drop("peer", "group").join(chosen, on=own, nulls_equal=True).select("row", "peer", "group").sort("row")
    )


def _fitting(offered: pl.DataFrame) -> pl.DataFrame:
    """Add `share`, and drop the rows in which it is below `_LEAST_SHARE`.

    `share` compares the number of sends with the number of receives: the smaller number divided by the larger.
    """
    sides = _with_ends(offered)
    counterparts = sides.select("group", *_PAIR, "family", counterpart_count="count").with_columns(
        pl.when(_IS_SEND).then(pl.lit("recv")).otherwise(pl.lit("send")).cast(sides["family"].dtype).alias("family")
    )
    both = sides.join(counterparts, on=["group", *_PAIR, "family"], nulls_equal=True)
    share = pl.min_horizontal("count", "counterpart_count") / pl.max_horizontal("count", "counterpart_count")
    return both.with_columns(share.alias("share")).filter(pl.col("share") >= _LEAST_SHARE)


def by_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Match sends with receives by source, destination, tag, type, size and order.

    If one rank has one more call than the other in a step, the times usually show which call is missing. Calls with an
    unclear counterpart stay unmatched.

    Args:
        rows: the calls of all ranks, from `rows_of`, with peers.

    Returns:
        row and instance.
    """
    ends = _with_ends(rows.filter(IS_POINT_TO_POINT & pl.col("peer").is_not_null()))
    if ends.is_empty():
        return ends.select("row", instance="row")
    per_step = _equal(ends, [*_PAIR, "window"])
    rest = without(ends, per_step)
    apart = rest.join(ends.join(per_step, on="row"), on=_PAIR, how="anti", nulls_equal=True, maintain_order="left")
    at_other_steps = _equal(apart, _PAIR)
    return pl.concat([per_step, at_other_steps, _one_missing(without(rest, at_other_steps))])


def _with_ends(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        pl.when(_IS_SEND).then("rank").otherwise("peer").alias("source"),
        pl.when(_IS_SEND).then("peer").otherwise("rank").alias("destination"),
    )


def _equal(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Match the k-th send with the k-th receive if there are as many sends as receives; return row and instance."""
    counted = rows.with_columns(pl.len().over(*keys, "rank").alias("count"))
    is_equal = pl.col("count").min().over(keys) == pl.col("count").max().over(keys)
    return instances(counted.filter(is_equal), keys)


def _one_missing(rows: pl.DataFrame) -> pl.DataFrame:
    """Match the sends and receives of two ranks in steps in which one rank has exactly one more call than the other.

    The calls of a step are matched only if both ranks are on the same host. Before the missing call, the k-th call of
    the rank with fewer calls matches the k-th call of the other rank; after it, the k-th call matches the (k+1)-th.

    A receive usually ends soon after both itself and its send have begun, so long lags indicate wrong pairs. For each
    possible position of the missing call, `_lag` is summed over the resulting pairs. A position is likely if its
    sum of lags is at most four times the smallest sum plus 20 µs. If several positions are likely, a call is matched
    only if it has the same counterpart for all of them.

    Returns:
        row and instance.
    """
    keys = [*_PAIR, "window"]
    sided = rows.with_columns(
        pl.len().over(*keys, "rank").alias("count"), pl.int_range(pl.len()).over(*keys, "rank").alias("place")
    )
    fewer, more = pl.col("count").min().over(keys), pl.col("count").max().over(keys)
    uneven = sided.filter((more - fewer == 1) & (pl.col("host").n_unique().over(keys) == 1))
    short, long = (uneven.filter(pl.col("count") == side) for side in (fewer, more))
    columns = [*keys, "place", "row", "start_ns", "end_ns", "family"]
    both = short.select(columns).sort(*keys, "place")
    for shift in (0, 1):
        shifted = long.select(
            *keys, pl.col("place") - shift, pl.col("row", "start_ns", "end_ns").name.suffix(f"_{shift}")
        )
        both = both.join(shifted, on=[*keys, "place"], nulls_equal=True, maintain_order="left")
    lags = both.with_columns(_lag(shift).alias(f"lag_{shift}") for shift in (0, 1))
    chosen = _clear_shifts(lags, keys)
    pairs = chosen.select("row", other=pl.when(pl.col("shift") == 0).then("row_0").otherwise("row_1"))
    instance = pl.min_horizontal("row", "other").alias("instance")
    return pl.concat([pairs.select("row", instance), pairs.select(instance, row="other").select("row", "instance")])


def _lag(shift: int) -> pl.Expr:
    """Return the time from when both the send and the receive have begun until the receive ends.

    With gloo, a receive may end before the send begins; then the time between the two is returned, not a negative time.
    """
    receive_end = pl.when(_IS_SEND).then(f"end_ns_{shift}").otherwise("end_ns")
    return (receive_end - pl.max_horizontal("start_ns", f"start_ns_{shift}")).abs()


def _clear_shifts(lags: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Drop ambiguous calls; add `shift` to the others: call k matches call k + `shift` of the other rank.

    `shift` is 0 before the missing call and 1 after it. A call is ambiguous if, according to the lags, the
    missing call may come either before it or after it.
    """
    before = pl.col("lag_0").cum_sum().over(keys) - pl.col("lag_0")
    after = pl.col("lag_1").cum_sum(reverse=True).over(keys)
    total = before + after  # sum of all lags if the missing call belongs right before this call
    at_end = pl.col("lag_0").sum().over(keys)
    costs = lags.with_columns(total.alias("total"), at_end.alias("at_end"), pl.len().over(keys).alias("size"))
    least = pl.min_horizontal(pl.col("total").min().over(keys), "at_end")
    limited = costs.with_columns((4 * least + _NOISE_NS).alias("limit"))
    is_likely = pl.col("total") <= pl.col("limit")
    first = pl.when(is_likely).then("place").otherwise("size").min().over(keys)
    last_before_end = pl.when(is_likely).then("place").max().over(keys)
    last = pl.when(pl.col("at_end") <= pl.col("limit")).then("size").otherwise(last_before_end)
    marked = limited.with_columns(first.alias("first"), last.alias("last"))
    shift = pl.when(pl.col("place") < pl.col("first")).then(0).when(pl.col("place") >= pl.col("last")).then(1)
    return marked.with_columns(shift.alias("shift")).drop_nulls("shift")
