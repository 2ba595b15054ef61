"""Edges between the points of a job: within ranks, through communication, and at the start and end of the step."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.job_graph.rank_graph import RankGraph

_Int64 = npt.NDArray[np.int64]


class JoinType(IntEnum):
    """The kind of an edge between points of a job."""

    CHAIN = 0
    """Between two points of a rank, along the binding chain, which follows the edge that arrives last at each node."""
    SHORTCUT = 1
    """The longest path between two points of a rank, even if no binding chain connects them."""
    ARRIVAL = 2
    """From the arrival of a rank in a call to the point where all ranks have arrived."""
    TRANSFER = 3
    """From the point where all ranks have arrived to the end of the call on one rank."""
    ALONE = 4
    """To the end of a call on one rank, but not from the point where all ranks have arrived.

    A call that ended before all ranks had arrived did not wait for the ranks that arrived later, so its edge begins at
    the last arrival before its end. If the call is not matched with calls of other ranks, its edge begins at its own
    start. In addition, each call has an edge of length 0 from its start to its end.
    """
    OUTSIDE = 5
    """From the start of the job's step to the point where all ranks have arrived.

    A call has this edge if a rank arrives outside the window of its own step.
    """
    WINDOW = 6
    """From the start of the job's step to a rank's first point, or from a rank's last point to the end of the step."""


class JoinEdges(NamedTuple):
    """Edges of one kind; `call` is the row of `JobGraph.calls`, or -1 if the edge belongs to no communication call."""

    source: _Int64
    target: _Int64
    type: JoinType
    length_ns: _Int64
    call: _Int64


def within_ranks(of_ranks: Mapping[int, RankGraph], first: _Int64, time_ns: _Int64) -> list[JoinEdges]:
    """Return the edges within ranks; the edges of binding chains come first.

    If several edges arrive at a point at the same time, the first of them in the returned list becomes the point's
    binding edge.
    """
    chains, shortcuts = [], []
    for graph, begin in zip(of_ranks.values(), first, strict=False):
        targets = np.flatnonzero(graph.reached_from >= 0)
        sources = graph.reached_from[targets]
        offset = begin + targets
        measured = time_ns[offset] - time_ns[begin + sources]
        is_whole = graph.time_ns[targets] - graph.time_ns[sources] == graph.chain_ns[targets]
        # A chain is whole if it is as long as the time between its two points on the rank's clock. Its length is then
        # set to the time between these points on the reference clock, because the clocks may run at different rates.
        lengths = np.where(is_whole, measured, np.minimum(graph.chain_ns[targets], measured))
        chains.append(JoinEdges(begin + sources, offset, JoinType.CHAIN, lengths, np.full(len(targets), -1)))
        shortcuts.append(
            JoinEdges(
                begin + graph.source.astype(np.int64),
                begin + graph.target.astype(np.int64),
                JoinType.SHORTCUT,
                graph.length_ns,
                np.full(len(graph.source), -1),
            )
        )
    return [*chains, *shortcuts]


def between_ranks(calls: pl.DataFrame, begin_ns: int) -> list[JoinEdges]:
    """Return the edges between ranks; `calls` comes from `joined_calls`, and `begin_ns` is the start of the step."""
    joint = calls.filter(pl.col("joint").is_not_null())
    present, absent = joint.filter(pl.col("arrival").is_not_null()), joint.filter(pl.col("arrival").is_null())
    waiting = joint.filter("is_waiting")
    rest = calls.filter(~pl.col("is_waiting") & pl.col("end").is_not_null())
    is_unmatched, is_outside = pl.col("before_ns").is_null(), pl.col("before").is_null()
    source = pl.when(is_unmatched).then("start").when(is_outside).then(0).otherwise("before")
    since = pl.when(is_unmatched).then("starts_ns").when(is_outside).then(begin_ns).otherwise("before_ns")
    alone = rest.with_columns(source.alias("source"), (pl.col("ends_ns") - since).clip(0).alias("length_ns"))
    return [
        _part(present, "arrival", "joint", JoinType.ARRIVAL, pl.lit(0)),
        _part(absent, pl.lit(0), "joint", JoinType.OUTSIDE, (pl.col("arrives_ns") - begin_ns).clip(0)),
        _part(waiting, "joint", "end", JoinType.TRANSFER, "least_transfer_ns"),
        _part(alone, "source", "end", JoinType.ALONE, "length_ns"),
        _part(calls.drop_nulls("end"), "start", "end", JoinType.ALONE, pl.lit(0)),
    ]


def to_the_ends(first: _Int64, time_ns: _Int64) -> list[JoinEdges]:
    """Return the edges from the step's start to each rank's first point, and from its last point to the step's end."""
    begins, ends = first[:-1], first[1:] - 1
    none = np.full(len(begins), -1)
    last = np.full(len(ends), len(time_ns) - 1)
    return [
        JoinEdges(np.zeros(len(begins), np.int64), begins, JoinType.WINDOW, time_ns[begins] - time_ns[0], none),
        JoinEdges(ends, last, JoinType.WINDOW, np.zeros(len(ends), np.int64), none),
    ]


def _part(
    calls: pl.DataFrame, source: str | pl.Expr, target: str, kind: JoinType, length_ns: str | pl.Expr
) -> JoinEdges:
    named = {"source": source, "target": target, "length_ns": length_ns, "call": "call"}
    columns = calls.select(
        (pl.col(value) if isinstance(value, str) else value).cast(pl.Int64).alias(name) for name, value in named.items()
    )
    arrays = {name: columns[name].to_numpy() for name in named}
    return JoinEdges(arrays["source"], arrays["target"], kind, arrays["length_ns"], arrays["call"])
