"""The flame graph of an area: merges host events with the same path (the names from the outermost event inwards)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, depths, path_numbers
from holotrace.schema import EventKind
from holotrace.web.timeline.area.events import AreaEvents
from holotrace.web.timeline.index import TimelineIndex
from holotrace.web.timeline.query import NAME_LENGTH, colour_class

MOST_FLAMES = 4_000
"""Maximum number of blocks of a flame graph that are sent to the browser, the widest first."""

_Numbers = npt.NDArray[np.int64]
_Key = tuple[int, str, int]


def rank_flames(rank: int, index: TimelineIndex, events: AreaEvents) -> pl.DataFrame:
    """Merge the events of one rank that have the same path.

    Returns:
        One row for each path, outer paths before inner ones:

        parent       number of the row for the path without its last event; `NO_PARENT` if the path has only one event
        name         name of the last event
        kind         uint8  `EventKind` of the last event
        count        number of events
        total_ns     their time inside the area
        self_ns      total_ns without the time of events directly inside them
        longest_ns   the longest time of an event inside the area
        rank         this rank
        event_index  the first of the longest events
    """
    key = index.name[events.place].astype(np.int64) * len(EventKind) + index.kind[events.place]
    number, first = _outer_first(path_numbers(events.parent, key), depths(events.parent))
    parent = events.parent[first]
    frame = pl.DataFrame(
        {
            "path": number,
            "total_ns": events.total_ns,
            "self_ns": events.self_ns,
            "event_index": index.event_index[events.place],
        }
    )
    sums = (
        frame.group_by("path")
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("total_ns", "self_ns").sum(),
            pl.col("total_ns").max().alias("longest_ns"),
            pl.col("event_index").get(pl.col("total_ns").arg_max()),
        )
        .with_columns(pl.lit(rank, pl.Int32).alias("rank"))
    )
    names = [index.text(name) for name in index.name[events.place[first]].tolist()]
    return pl.DataFrame(
        {
            "parent": np.where(parent == NO_PARENT, NO_PARENT, number[parent]),
            "name": pl.Series(names, dtype=pl.String),
            "kind": index.kind[events.place[first]],
        }
    ).hstack(sums.sort("path").drop("path"))


def _outer_first(path: _Numbers, depth: npt.NDArray[np.int32]) -> tuple[_Numbers, _Numbers]:
    """Number the paths so that outer paths come first; return each event's path number, and each path's first event."""
    first = np.unique(path, return_index=True)[1]
    order = np.argsort(depth[first], kind="stable")
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return number[path], first[order]


def flames(of_ranks: Iterable[pl.DataFrame]) -> list[dict[str, Any]]:
    """Merge the paths of several ranks; return one dict for each path, with the columns of `rank_flames` as keys."""
    merged: list[dict[str, Any]] = []
    known: dict[_Key, int] = {}
    for frame in of_ranks:
        place: list[int] = []
        for row in frame.iter_rows(named=True):
            row["parent"] = NO_PARENT if row["parent"] == NO_PARENT else place[row["parent"]]
            at = known.setdefault((row["parent"], row["name"], row["kind"]), len(merged))
            place.append(at)
            if at == len(merged):
                merged.append(row)
            else:
                _add(merged[at], row)
    return merged


def _add(path: dict[str, Any], other: dict[str, Any]) -> None:
    for name in ("count", "total_ns", "self_ns"):
        path[name] += other[name]
    if other["longest_ns"] > path["longest_ns"]:
        path.update({name: other[name] for name in ("longest_ns", "rank", "event_index")})


def flames_answer(paths: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the widest paths.

    Returns:
        total_ns  the time of all outermost events
        paths     [position in this list of the path without its last event, or -1; number of the name, total ns, self
                  ns, count, rank and event_index of the longest event], outer paths before inner ones
        names     [beginning of the text, colour class]
        left_out  number of narrower paths, which are left out
    """
    total = sum(path["total_ns"] for path in paths if path["parent"] == NO_PARENT)
    widest = sorted(range(len(paths)), key=lambda at: (-paths[at]["total_ns"], at))[:MOST_FLAMES]
    names: dict[tuple[str, int], int] = {}
    place: dict[int, int] = {NO_PARENT: NO_PARENT}
    rows: list[list[int]] = []
    for at in sorted(widest):
        path = paths[at]
        if path["parent"] not in place:
            continue
        place[at] = len(rows)
        name = names.setdefault((path["name"], path["kind"]), len(names))
        numbers = (path[column] for column in ("total_ns", "self_ns", "count", "rank", "event_index"))
        rows.append([place[path["parent"]], name, *numbers])
    return {
        "total_ns": total,
        "paths": rows,
        "names": [[name[:NAME_LENGTH], colour_class(EventKind(kind), name)] for name, kind in names],
        "left_out": len(paths) - len(rows),
    }
