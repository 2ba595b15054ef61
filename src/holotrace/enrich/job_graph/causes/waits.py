"""Explain each wait of a job by causes and earlier waits."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.across_ranks.arrivals import ALIGNED_CLOCKS

NOT_TOGETHER, BY_CLOCKS, WITHOUT_COUNTERPART = -1, -2, -3
"""Values of the column `cause` if the cause is unknown; a known cause is its row number in the table of causes."""

_TARGETS: dict[str, pl.DataType | type[pl.DataType]] = {
    "wait": pl.Int64,
    "weight": pl.Int64,
    "error": pl.Int64,
    "upstream": pl.Int64,
    "cause_rank": pl.Int32,
    "cause": pl.Int64,
}


def waits_between(known: pl.DataFrame) -> pl.DataFrame:
    """Return all calls of the communications in which some rank waited.

    Args:
        known: the calls that are matched across ranks, with the columns instance, rank, start_ns, wait_ns,
            transfer_basis and those of `Clocks.aligned`; other columns are kept.

    Returns:
        The calls, sorted by met_ns, instance and rank, with these additional columns:

        query           int64  row number
        wait            int64  number of the call's wait, from 0; null if the call did not wait
        met_ns          int64  when the last rank had arrived, on the clock of the reference host
        late, late_ns   the last rank to arrive, and when it arrived, on its own clock
        clock_error_ns  int64  error of the difference between this rank's clock and the clock of the last rank; null if
                               unknown
    """
    begin = pl.coalesce("aligned_start_ns", "start_ns")
    met = (begin + pl.col("wait_ns")).max().over("instance")
    least = pl.col("wait_ns") == pl.col("wait_ns").min().over("instance")
    shared = known.filter(pl.col("wait_ns").max().over("instance") > 0).with_columns(met.alias("met_ns"))
    late_row = shared.with_columns(least.alias("least"), begin.alias("begin")).filter("least")
    late = late_row.sort("begin", "rank").unique("instance", keep="last", maintain_order=True)
    of_late = late.select(
        "instance", late="rank", late_ns="start_ns", late_clock="clock", late_half_width_ns="half_width_ns"
    )
    apart = pl.col("half_width_ns") + pl.col("late_half_width_ns")
    error = pl.when(pl.col("clock") == pl.col("late_clock")).then(0).otherwise(apart).alias("clock_error_ns")
    ordered = shared.join(of_late, on="instance", how="left").with_columns(error).sort("met_ns", "instance", "rank")
    number = pl.when(pl.col("wait_ns") > 0).then((pl.col("wait_ns") > 0).cum_sum() - 1).cast(pl.Int64)
    return ordered.with_columns(number.alias("wait")).with_row_index("query").cast({"query": pl.Int64})


def explained(waits: pl.DataFrame, spent: pl.DataFrame) -> pl.DataFrame:
    """Divide each wait among causes and earlier waits.

    Args:
        waits: the result of `waits_between`.
        spent: the result of `holotrace.enrich.job_graph.causes.time_spent.time_spent` for these waits.

    Returns:
        wait            int64  number of the wait
        upstream        int64  number of the earlier wait; null for causes that are not waits
        weight          int64  how much of the wait the cause or the earlier wait explains
        error           int64  by how much `weight` may be too large or too small
        cause_rank      int32  null if unknown
        cause           int64  row of `JobCauses.table`, or an unknown cause: `NOT_TOGETHER`, `BY_CLOCKS` or
                               `WITHOUT_COUNTERPART`; null if `upstream` is not null
    """
    waiting = waits.drop_nulls("wait")
    resolved = waiting.filter(~_is_unresolved())
    pairs = _with_excess(resolved, waits, spent)
    followed = _upstream(pairs, spent)
    is_earlier = (pl.col("upstream") < pl.col("wait")).fill_null(value=False)
    tables = [
        _own(pairs, spent),
        followed.filter(is_earlier),
        followed.filter(~is_earlier).select("wait", "weight", cause=pl.lit(WITHOUT_COUNTERPART, pl.Int64)),
        pairs.select("wait", weight="unexplained_ns", cause=pl.lit(NOT_TOGETHER, pl.Int64)),
        waiting.filter(_is_unresolved()).select("wait", weight="wait_ns", cause=pl.lit(BY_CLOCKS, pl.Int64)),
    ]
    every = pl.concat(tables, how="diagonal").filter(pl.col("weight") > 0)
    bounded = _with_errors(every, waiting.select("wait", "wait_ns", "clock_error_ns"))
    return bounded.select(pl.col(name).cast(kind) for name, kind in _TARGETS.items())


def _with_errors(targets: pl.DataFrame, waiting: pl.DataFrame) -> pl.DataFrame:
    """Add the column `error`: by how much the cost of each cause may be wrong.

    The cost is uncertain because several causes may explain the same time. Let w be the wait, e the excess of the cause,
    and S the sum of the excesses of all causes. The cost is at most the smaller of e and w. It is at least the time that
    the other causes cannot explain: w - (S - e), or 0 if this is negative. Inexact clocks increase the error.
    """
    known = targets.join(waiting, on="wait", how="left").with_columns(pl.col("excess").fill_null(pl.col("weight")))
    rest = pl.col("excess").sum().over("wait") - pl.col("excess")
    least, most = (pl.col("wait_ns") - rest).clip(0), pl.min_horizontal("excess", "wait_ns")
    by_clock = pl.col("clock_error_ns").fill_null(0) * pl.col("weight") / pl.col("wait_ns")
    off = pl.max_horizontal(most - pl.col("weight"), pl.col("weight") - least).clip(0)
    return known.with_columns((off + by_clock.round().cast(pl.Int64)).alias("error"))


def _with_excess(resolved: pl.DataFrame, waits: pl.DataFrame, spent: pl.DataFrame) -> pl.DataFrame:
    """Divide each wait into the extra work of the late rank, its extra waiting, and an unexplained remainder.

    Returns:
        wait, query, late_query, late, wait_ns
        own_ns          how much longer the late rank worked than the waiting rank
        waited_ns       how much longer the late rank waited than the waiting rank
        unexplained_ns  the remainder, which arises if the recording contains no earlier communication of the ranks
    """
    late = waits.filter(pl.col("rank") == pl.col("late")).select("instance", late_query="query")
    totals = spent.group_by("query").agg(
        pl.col("ns").filter(pl.col("cause").is_not_null()).sum().alias("work"),
        pl.col("ns").filter(pl.col("cause").is_null()).sum().alias("waiting"),
    )
    pairs = (
        resolved.select("wait", "query", "instance", "late", "wait_ns")
        .join(late, on="instance")
        .join(totals, on="query", how="left")
        .join(totals.select(pl.all().name.prefix("late_")), on="late_query", how="left")
        .with_columns(pl.col("work", "waiting", "late_work", "late_waiting").fill_null(0))
    )
    own, waited = pl.col("late_work") - pl.col("work"), pl.col("late_waiting") - pl.col("waiting")
    unexplained = pl.col("wait_ns") - own.clip(0) - waited.clip(0)
    return pairs.with_columns(
        own.clip(0).alias("own_ns"), waited.clip(0).alias("waited_ns"), unexplained.clip(0).alias("unexplained_ns")
    )


def _own(pairs: pl.DataFrame, spent: pl.DataFrame) -> pl.DataFrame:
    """Divide the late rank's extra work among the causes that took longer on this rank than on the waiting rank."""
    known = spent.drop_nulls("cause").select("query", "cause", "ns")
    # Joining on one key is several times faster than joining on two.
    width = int(known["cause"].to_numpy().max(initial=0)) + 1
    key = pl.col("query") * width + pl.col("cause")
    longer = pairs.filter(pl.col("own_ns") > 0).select("wait", "query", "late_query", "late", "own_ns")
    theirs = longer.join(known.rename({"query": "late_query", "ns": "late_ns"}), on="late_query")
    compared = theirs.with_columns(key.alias("key")).join(known.select(key.alias("key"), "ns"), on="key", how="left")
    excess = pl.col("late_ns") - pl.col("ns").fill_null(0)
    more = compared.with_columns(excess.alias("excess")).filter(pl.col("excess") > 0)
    share = pl.col("own_ns") * (pl.col("excess") / pl.col("excess").sum().over("wait"))
    return more.select("wait", "cause", share.round().cast(pl.Int64).alias("weight"), "excess", cause_rank="late")


def _upstream(pairs: pl.DataFrame, spent: pl.DataFrame) -> pl.DataFrame:
    """Divide the late rank's extra waiting among its earlier waits; `upstream` is null for time in unmatched calls."""
    waiting = spent.filter(pl.col("cause").is_null()).select("upstream", late_query="query", late_ns="ns")
    earlier = pairs.filter(pl.col("waited_ns") > 0).join(waiting, on="late_query")
    share = pl.col("waited_ns") * (pl.col("late_ns") / pl.col("late_ns").sum().over("wait"))
    return earlier.select("wait", "upstream", share.round().cast(pl.Int64).alias("weight"))


def _is_unresolved() -> pl.Expr:
    """Return whether the clocks are too imprecise to show that the rank waited."""
    by_clocks = pl.col("transfer_basis") == ALIGNED_CLOCKS
    return (by_clocks & (pl.col("wait_ns") <= pl.col("clock_error_ns"))).fill_null(value=False)
