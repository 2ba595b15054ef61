"""Find how the ranks of a collective, or of a send and receive, spent their time since they last synchronised."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.job_graph.causes.histories import Histories
from holotrace.enrich.job_graph.causes.job_causes import JobCauses
from holotrace.enrich.job_graph.causes.synchronised import together_before

_Rows = npt.NDArray[np.int64]

_SPENT: dict[str, pl.DataType | type[pl.DataType]] = {
    "query": pl.Int64,
    "cause": pl.Int64,
    "upstream": pl.Int64,
    "is_lost": pl.Boolean,
    "ns": pl.Int64,
}


def time_spent(
    matched: pl.DataFrame,
    calls: pl.DataFrame,
    waits: pl.DataFrame,
    histories: Mapping[int, Histories],
    causes: JobCauses,
) -> pl.DataFrame:
    """Return, for each call, how its rank spent the time since the ranks of the call last waited for each other.

    Args:
        matched: the calls that are matched across ranks.
        calls: all calls.
        waits: the calls that waited or were waited for, from `holotrace.enrich.job_graph.causes.waits.waits_between`.
        histories: {rank: what the rank did before its calls}.
        causes: the causes in these histories.

    Returns:
        query     int64  row of `waits`
        cause     int64  row of `causes.table`; null for waits
        upstream  int64  number of the wait; null for causes that are not waits
        is_lost   bool   whether the time was spent in communication without a known counterpart
        ns        int64
    """
    since = together_before(matched, {rank: history.begin_ns for rank, history in histories.items()})
    asked = waits.select("query", "call", "instance", "rank").join(
        matched.select("instance", "rank", since), on=["instance", "rank"], how="left", maintain_order="left"
    )
    transfer = pl.col("collective").replace_strict(causes.row_of_transfer(), default=None, return_dtype=pl.Int64)
    met_ns = pl.col("start_ns") + pl.col("wait_ns").fill_null(0)
    own = calls.select("rank", "instance", "call", met_ns.alias("met_ns"), transfer.alias("transfer"), "wait_ns")
    numbered = own.join(waits.select("rank", "instance", "wait"), on=["rank", "instance"], how="left")
    asked_of, calls_of = (table.partition_by("rank", as_dict=True) for table in (asked, numbered))
    tables = [
        _of_rank(history, asked_of[(rank,)], calls_of[(rank,)], causes.of_rank[rank])
        for rank, history in histories.items()
        if (rank,) in asked_of
    ]
    return pl.concat([pl.DataFrame(schema=_SPENT), *tables])


def _of_rank(history: Histories, asked: pl.DataFrame, calls: pl.DataFrame, cause_row: _Rows) -> pl.DataFrame:
    parts = history.lines.before(asked["call"].to_numpy().astype(np.int64), asked["since_ns"].to_numpy())
    known = parts.with_columns(
        asked["query"].gather(parts["query"]).alias("query"), pl.Series("cause", cause_row[parts["cause"].to_numpy()])
    )
    length_ns = (pl.col("end_ns") - pl.col("start_ns")).alias("ns")
    # Grouping by one key takes half as long as grouping by two.
    width = int(cause_row.max(initial=0)) + 1
    key = (pl.col("query") * width + pl.col("cause")).alias("key")
    summed = known.filter(pl.col("call") < 0).group_by(key).agg(length_ns.sum())
    outside = summed.select("ns", query=pl.col("key") // width, cause=pl.col("key") % width)
    inside = known.filter(pl.col("call") >= 0).drop("cause").join(calls, on="call", how="left")
    return pl.concat([_typed(outside), _in_calls(inside)])


def _in_calls(parts: pl.DataFrame) -> pl.DataFrame:
    """Divide the time in communication into waits, transfers, and unknown time in calls without a counterpart."""
    until_met = pl.min_horizontal("end_ns", "met_ns").clip("start_ns")
    matched, lost = (parts.filter(is_so) for is_so in (pl.col("wait_ns").is_not_null(), pl.col("wait_ns").is_null()))
    tables = [
        matched.select("query", upstream="wait", ns=until_met - pl.col("start_ns")),
        matched.select("query", cause="transfer", ns=pl.col("end_ns") - until_met),
        lost.select("query", is_lost=pl.lit(value=True), ns=pl.col("end_ns") - pl.col("start_ns")),
    ]
    lasting = pl.concat([_typed(table) for table in tables]).filter(pl.col("ns") > 0)
    return lasting.group_by("query", "cause", "upstream", "is_lost").agg(pl.col("ns").sum())


def _typed(table: pl.DataFrame) -> pl.DataFrame:
    absent = [pl.lit(False if name == "is_lost" else None).alias(name) for name in _SPENT if name not in table.columns]
    return table.with_columns(absent).select(pl.col(name).cast(kind) for name, kind in _SPENT.items())
