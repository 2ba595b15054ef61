"""Arrows between the ranks of each matched collective, as flows of the Chrome trace format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from holotrace.enrich.across_ranks.clocks.rank_clocks import RankClock
from holotrace.export.json_columns import decimal_text, joined

CATEGORY = "across_ranks"
"""Category of the arrows; each arrow is named after its collective."""

_ROWS_AT_ONCE = 50_000
_TRACK = {"rank": pl.Int32, "event_index": pl.UInt32, "pid": pl.Int64, "tid": pl.String}


def collective_arrows(
    calls: pl.DataFrame, tracks: pl.DataFrame, clocks: Mapping[int, RankClock], base_ns: int
) -> Iterator[bytes]:
    """Yield two events for each arrow as JSON, each preceded by a comma.

    In a collective, all ranks wait for the rank that arrives last. Arrows therefore lead from the start of the last
    rank's call to the same time in the call of each other rank. For a send, the arrow leads from the start of the send
    to the end of the receive. Arrows never point back in time: if imprecise clocks put the end of an arrow before its
    start, the arrow is reversed.

    Args:
        calls: as in `holotrace.enrich.across_ranks.matching.matching.Matching`.
        tracks: columns rank, event_index, pid (as in the merged trace) and tid (JSON text) of the calls.
        clocks: the clocks of the ranks.
        base_ns: `baseTimeNanoseconds` of the merged trace.
    """
    members = _members(calls, clocks).join(tracks.cast(_TRACK), on=["rank", "event_index"])  # type: ignore[arg-type]
    ends = _ends(members).with_row_index("arrow")
    for rows in ends.iter_slices(_ROWS_AT_ONCE):
        texts = rows.select(joined(",\n", _text("s", "earlier", base_ns), ",\n", _text("f", "later", base_ns)))
        yield "".join(texts.to_series()).encode()


def _members(calls: pl.DataFrame, clocks: Mapping[int, RankClock]) -> pl.DataFrame:
    """Return the calls matched on at least two ranks, with their times on the reference clock."""
    shared = calls.drop_nulls("instance").filter(pl.len().over("instance") > 1)
    columns = ["instance", "rank", "event_index", "family", "kernel_count", "start_ns", "end_ns"]
    return pl.concat(
        [_corrected(of_rank, clocks) for of_rank in shared.select(columns).partition_by("rank")]
        or [shared.select(columns)]
    )


def _corrected(of_rank: pl.DataFrame, clocks: Mapping[int, RankClock]) -> pl.DataFrame:
    clock = clocks[of_rank["rank"][0]]
    return of_rank.with_columns(
        pl.Series(name, clock.all_corrected(of_rank[name].to_numpy()), pl.Int64) for name in ("start_ns", "end_ns")
    )


def _ends(members: pl.DataFrame) -> pl.DataFrame:
    """Return the name and the two ends of each arrow; `earlier` and `later` are structs of pid, tid and time_ns."""
    is_send = pl.col("family").cast(pl.String) == "send"
    sources = (
        members.sort(is_send, "start_ns", "rank")
        .group_by("instance", maintain_order=True)
        .last()
        .select("instance", pl.col("rank", "start_ns", "pid", "tid").name.prefix("source_"), is_send.alias("is_send"))
    )
    others = members.join(sources, on="instance").filter(pl.col("rank") != pl.col("source_rank"))
    # If an arrow ends where an event ends, end it one nanosecond earlier, because a timeline attaches arrows only to
    # events that are still running.
    last_ns = pl.max_horizontal(pl.col("end_ns") - 1, "start_ns")
    arrival_ns = pl.min_horizontal(pl.max_horizontal("source_start_ns", "start_ns"), last_ns)
    is_coalesced = pl.col("kernel_count") > 1  # for a coalesced call, the table contains only the first kernel
    time_ns = pl.when(is_coalesced).then("start_ns").when("is_send").then(last_ns).otherwise(arrival_ns)
    timed = others.with_columns(time_ns.alias("time_ns"))
    source = pl.struct(pid="source_pid", tid="source_tid", time_ns="source_start_ns")
    other = pl.struct("pid", "tid", "time_ns")
    is_forward = pl.col("source_start_ns") <= pl.col("time_ns")
    return timed.select(
        pl.col("family").cast(pl.String).alias("name"),
        pl.when(is_forward).then(source).otherwise(other).alias("earlier"),
        pl.when(is_forward).then(other).otherwise(source).alias("later"),
    )


def _text(phase: str, end: str, base_ns: int) -> pl.Expr:
    binding = ',"bp":"e"' if phase == "f" else ""
    field = pl.col(end).struct.field
    return joined(
        f'{{"ph":"{phase}"{binding},"cat":"{CATEGORY}","name":"',
        pl.col("name"),
        '","id":',
        pl.col("arrow"),
        ',"pid":',
        field("pid"),
        ',"tid":',
        field("tid"),
        ',"ts":',
        decimal_text(field("time_ns") - base_ns, 3),
        "}",
    )
