"""Find when the ranks of a communication last met in an earlier communication."""

from __future__ import annotations

from collections import defaultdict

import polars as pl


def together_before(calls: pl.DataFrame, begin_ns: dict[int, int]) -> pl.Series:
    """Return, for each call, when all of its ranks had arrived in the latest communication before the call.

    This earlier communication includes all ranks of the call, and its last rank arrived before any rank started the
    call. If the ranks use different clocks, each rank uses its own call in the earlier
    communication: the time is the start of this earlier call plus its wait. If there is no earlier communication,
    return the time when the last of the ranks' recordings began. If the clocks are unknown as well, return the time
    when the rank's own recording began.

    Args:
        calls: matched calls that waited or were waited for, with the columns instance, rank, start_ns, wait_ns, and
            those of `Clocks.aligned`.
        begin_ns: start of the recording of each rank.

    Returns:
        since_ns  int64  on the rank's clock, never after the start of the call
    """
    times = calls.with_columns(pl.coalesce("aligned_start_ns", "start_ns").alias("time"))
    instances = times.group_by("instance").agg(
        pl.col("rank").sort().alias("members"),
        pl.col("time").min().alias("first_ns"),
        (pl.col("time") + pl.col("wait_ns")).max().alias("met_ns"),
    )
    members = instances.select("members").unique(maintain_order=True).with_row_index("set")
    numbered = instances.join(members, on="members", nulls_equal=True)
    larger = _containing(members["members"].to_list())
    offered = larger.join(numbered.select("instance", "met_ns", other="set"), on="other").sort("met_ns")
    before = numbered.sort("first_ns").join_asof(
        offered.select("set", earlier_ns="met_ns", earlier="instance"),
        left_on="first_ns",
        right_on="earlier_ns",
        coalesce=False,
        by="set",
        allow_exact_matches=False,
        check_sortedness=False,
    )
    earlier = before.drop_nulls("earlier").select("instance", "earlier", "earlier_ns")
    arrived = times.select("rank", earlier="instance", since_ns=pl.col("start_ns") + pl.col("wait_ns"))
    known = times.join(earlier, on="instance", how="left", maintain_order="left").join(
        arrived.unique(["rank", "earlier"]), on=["earlier", "rank"], how="left", maintain_order="left"
    )
    offset = pl.col("aligned_start_ns") - pl.col("start_ns")
    own = pl.col("rank").replace_strict(begin_ns, return_dtype=pl.Int64)
    latest = (own + offset).max().over("instance") - offset
    has_one_clock = pl.col("clock").n_unique().over("instance") == 1
    met = pl.when(has_one_clock).then(pl.col("earlier_ns") - offset)
    since = pl.coalesce(met, "since_ns", latest, own)
    return known.select(pl.min_horizontal(since, "start_ns").alias("since_ns"))["since_ns"]


def _containing(sets: list[list[int]]) -> pl.DataFrame:
    """Return all pairs (set, other) in which `other` contains all ranks of `set`, including (set, set)."""
    bits = [sum(1 << rank for rank in members) for members in sets]
    with_rank: dict[int, list[int]] = defaultdict(list)
    for number, members in enumerate(sets):
        for rank in members:
            with_rank[rank].append(number)
    pairs = [
        (number, other)
        for number, members in enumerate(sets)
        for other in with_rank[members[0]]
        if bits[number] & bits[other] == bits[number]
    ]
    return pl.DataFrame(pairs, {"set": pl.UInt32, "other": pl.UInt32}, orient="row")
