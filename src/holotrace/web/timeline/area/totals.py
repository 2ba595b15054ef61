"""The time in an area by name and kind of event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from holotrace.schema import EventKind
from holotrace.web.timeline.area.events import AreaEvents
from holotrace.web.timeline.index import TimelineIndex
from holotrace.web.timeline.query import NAME_LENGTH

MOST_TOTALS = 500
"""Maximum number of rows of a totals table that are sent to the browser."""

SORTED_BY = ("self_ns", "total_ns", "count", "mean_ns", "min_ns", "max_ns")

_KEYS = ("name", "kind")
_COLUMNS = ("count", "total_ns", "self_ns", "mean_ns", "min_ns", "max_ns", "rank", "event_index")


def rank_totals(rank: int, index: TimelineIndex, events: AreaEvents) -> pl.DataFrame:
    """Sum the events of an area on one rank.

    Returns:
        One row for each name and kind:

        name         the full name
        kind         uint8  `EventKind`
        count        number of events
        total_ns     their time inside the area
        self_ns      total_ns without the time of events directly inside them
        min_ns       the shortest time of an event inside the area
        max_ns       the longest time of an event inside the area
        rank         this rank
        event_index  the first of the longest events
    """
    frame = pl.DataFrame(
        {
            "name_id": index.name[events.place],
            "kind": index.kind[events.place],
            "total_ns": events.total_ns,
            "self_ns": events.self_ns,
            "event_index": index.event_index[events.place],
        }
    )
    totals = frame.group_by("name_id", "kind").agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col("total_ns", "self_ns").sum(),
        pl.col("total_ns").min().alias("min_ns"),
        pl.col("total_ns").max().alias("max_ns"),
        pl.col("event_index").get(pl.col("total_ns").arg_max()),
    )
    names = pl.Series("name", [index.text(name) for name in totals["name_id"].to_list()], pl.String)
    return totals.select(names, pl.exclude("name_id"), pl.lit(rank, pl.Int32).alias("rank"))


def totals(of_ranks: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Combine the sums of several ranks; `mean_ns` is rounded, and `rank` is the rank of the longest event."""
    longest = pl.struct("rank", "event_index").sort_by("max_ns", "rank", descending=[True, False]).first()
    combined = (
        pl.concat(of_ranks)
        .group_by("name", "kind")
        .agg(
            pl.col("count", "total_ns", "self_ns").sum(),
            pl.col("min_ns").min(),
            longest.alias("longest"),
            pl.col("max_ns").max(),
        )
        .unnest("longest")
    )
    mean = (pl.col("total_ns") + pl.col("count") // 2) // pl.col("count")
    return combined.with_columns(mean.alias("mean_ns")).select(*_KEYS, *_COLUMNS)


def totals_answer(table: pl.DataFrame, by: str) -> dict[str, Any]:
    """Return the rows with the largest values of a column.

    Returns:
        rows      [name, kind, count, total, self, mean, min and max in ns, rank and event_index of the longest event]
        count     number of rows of the table, including those that are not sent
        total_ns, self_ns, event_count  sums over the table; if the events on each row of the timeline are nested or
                  disjoint, `self_ns` is the sum of the busy times of these rows
    """
    rows = table.sort(by, "name", "kind", descending=[True, False, False]).head(MOST_TOTALS)
    return {
        "rows": [
            [name[:NAME_LENGTH], EventKind(kind).name.lower().replace("_", " "), *numbers]
            for name, kind, *numbers in rows.iter_rows()
        ],
        "count": len(table),
        "event_count": int(table["count"].sum()),
        "total_ns": int(table["total_ns"].sum()),
        "self_ns": int(table["self_ns"].sum()),
    }
