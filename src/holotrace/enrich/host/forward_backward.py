"""The forward operator whose gradient each backward operator computes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.matching import NO_MATCH, SEVERAL, only_matches
from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above, nearest_above
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_FLOW_CATEGORIES = ("fwdbwd", "forward_backward", "fwd_bwd")
"""The categories that PyTorch has given to forward-to-backward arrows since 2021, in lower case."""


@derived
def forward_of(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the forward operator of each backward operator.

    The profiler draws an arrow from the start of the forward operator to the start of the backward operator. Without an
    arrow, operators are matched by their sequence number. If several forward operators have the same number, the match
    is the last of them that begins before the backward operator, because the last one creates the backward node.
    Operators inside a backward operator are never matched as forward operators: their thread has its own sequence
    numbers, which may equal those of unrelated forward operators.

    Returns:
        One row for each backward operator whose forward operator is known, sorted by event_index:

        event_index    uint32  backward operator
        forward_index  uint32  forward operator
    """
    operators = _operators(rank_trace)
    arrows = _by_arrow(rank_trace, operators)
    numbers = _by_sequence_number(rank_trace, operators, arrows["event_index"])
    return pl.concat([arrows, numbers]).sort("event_index")


def threads_joined_by_arrows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the pairs of threads that forward-to-backward arrows connect.

    This is much faster than `forward_of`.

    Returns:
        One row for each pair of threads, in any order:

        track_id          uint32  thread of the backward operators
        forward_track_id  uint32  thread of the forward operators
    """
    arrows = _arrows(rank_trace, ["flow_id", "is_start", "track_id"])
    leaving = arrows.filter("is_start").select("flow_id", forward_track_id="track_id")
    arriving = arrows.filter(~pl.col("is_start")).select("flow_id", "track_id")
    return arriving.join(leaving, on="flow_id").select("track_id", "forward_track_id").unique()


def forward_of_calls(rank_trace: RankTrace, rows: pl.Series) -> pl.Series:
    """Return the forward operator that belongs to the backward operator around each of these rows of `call_stacks`."""
    stacks, links = call_stacks(rank_trace), forward_of(rank_trace)
    backward = rows_of_events(stacks, links["event_index"])
    link_of_row = np.full(stacks.height, NO_PARENT, np.int64)
    known = backward != NO_PARENT
    link_of_row[backward[known]] = np.flatnonzero(known)
    around = itself_or_above(stacks["parent_row"].to_numpy(), link_of_row != NO_PARENT, rows.to_numpy())
    link = np.where(around == NO_PARENT, NO_PARENT, link_of_row[around])
    return gathered(links["forward_index"], link)


def _operators(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the operators in file order, with sequence_number (null for -1) and forward_thread_id."""
    columns = ["event_index", "track_id", "start_ns", "end_ns"]
    details = rank_trace.table("operators", ["event_index", "sequence_number", "forward_thread_id"])
    ranges = event_ranges(rank_trace, [EventKind.CPU_OP], columns)
    rows = rows_of_events(details, ranges["event_index"])
    number = pl.when(pl.col("sequence_number") >= 0).then("sequence_number").alias("sequence_number")
    known = (gathered(details[column], rows) for column in ("sequence_number", "forward_thread_id"))
    return ranges.with_columns(*known).with_columns(number)


def _by_arrow(rank_trace: RankTrace, operators: pl.DataFrame) -> pl.DataFrame:
    ends = _ends_of_arrows(rank_trace, operators)
    leaving, arriving = ends.filter("is_start"), ends.filter(~pl.col("is_start"))
    pairs = leaving.rename({"event_index": "forward_index"}).join(arriving, on="flow_id", suffix="_backward")
    differs = pl.col("sequence_number").ne_missing(pl.col("sequence_number_backward"))
    best_first = pairs.filter(pl.col("event_index") != pl.col("forward_index")).sort(
        "flow_id", differs, pl.col("sequence_number").is_null(), "end_ns", "end_ns_backward"
    )
    chosen = best_first.unique("flow_id", keep="first", maintain_order=True).unique("event_index", keep="first")
    return chosen.select("event_index", "forward_index")


def _ends_of_arrows(rank_trace: RankTrace, operators: pl.DataFrame) -> pl.DataFrame:
    """Return the operators that begin at the start or the end of an arrow, one row per arrow end and operator."""
    arrows = _arrows(rank_trace, ["flow_id", "is_start", "start_ns", "track_id"])
    columns = ["event_index", "end_ns", "sequence_number"]
    row = _only_operators(arrows, operators)
    with_one = arrows.filter(pl.Series(row >= 0)).hstack(operators.select(columns)[row[row >= 0]])
    with_several = arrows.filter(pl.Series(row == SEVERAL)).join(operators, on=["track_id", "start_ns"])
    ends = ["flow_id", "is_start", *columns]
    return pl.concat([with_one.select(ends), with_several.select(ends)])


def _arrows(rank_trace: RankTrace, columns: list[str]) -> pl.DataFrame:
    """Return `columns` of the start and the end of each arrow from a forward to a backward operator."""
    flows = rank_trace.table("flows", ["category", *columns])
    ids = rank_trace.strings.str.to_lowercase().is_in(_FLOW_CATEGORIES).arg_true().cast(pl.UInt32)
    return flows.filter(pl.col("category").is_in(ids.implode())).select(columns)


def _only_operators(arrows: pl.DataFrame, operators: pl.DataFrame) -> npt.NDArray[np.int64]:
    """Return the operator that begins at each end of an arrow; `NO_MATCH` if none does, `SEVERAL` if several do.

    Track and start are combined into one integer key, because a join would take ten times as long.
    """
    if arrows.is_empty() or operators.is_empty():
        return np.full(len(arrows), NO_MATCH)
    tables = (operators, arrows)
    times, tracks = ([table[name].to_numpy() for table in tables] for name in ("start_ns", "track_id"))
    lowest, highest = min(int(part.min()) for part in times), max(int(part.max()) for part in times)
    track_count = 1 + max(int(part.max()) for part in tracks)
    if (highest - lowest + 1) * track_count > np.iinfo(np.int64).max:
        return np.full(len(arrows), SEVERAL)
    keys = ((start_ns - lowest) * track_count + track for start_ns, track in zip(times, tracks, strict=True))
    return only_matches(*keys)


def _by_sequence_number(rank_trace: RankTrace, operators: pl.DataFrame, with_arrow: pl.Series) -> pl.DataFrame:
    """Match the backward operators without arrows to forward operators by sequence number."""
    is_backward = pl.col("forward_thread_id").fill_null(0) > 0
    numbered = operators.drop_nulls("sequence_number").sort("start_ns", maintain_order=True)
    all_backward = numbered.filter(is_backward).select("sequence_number", "start_ns", "event_index")
    backward = all_backward.filter(~pl.col("event_index").is_in(with_arrow.implode()))
    if backward.is_empty():
        return backward.select("event_index", pl.col("event_index").alias("forward_index"))
    candidates = numbered.filter(~is_backward).select(
        "sequence_number", "start_ns", pl.col("event_index").alias("forward_index")
    )
    forward = _outside(rank_trace, candidates, all_backward["event_index"])
    linked = backward.join_asof(
        forward, on="start_ns", by="sequence_number", strategy="backward", check_sortedness=False
    )
    return linked.drop_nulls("forward_index").select("event_index", "forward_index")


def _outside(rank_trace: RankTrace, candidates: pl.DataFrame, backward: pl.Series) -> pl.DataFrame:
    """Return the candidates that are not inside a backward operator; see `forward_of`."""
    nodes = host_nodes(rank_trace)
    is_backward = np.zeros(nodes.height, np.bool_)
    is_backward[rows_of_events(nodes, backward)] = True
    rows = rows_of_events(nodes, candidates["forward_index"])
    return candidates.filter(nearest_above(nodes["parent"].to_numpy(), is_backward, rows) == NO_PARENT)
