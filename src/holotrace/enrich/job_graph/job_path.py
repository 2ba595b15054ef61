"""The critical path of a job: the chain of work, waiting and transfers that determines when the job's step ends."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from holotrace.algorithms.graphs.longest_path import path_to
from holotrace.enrich.critical_path.event_graph import PathClass
from holotrace.enrich.job_graph.job_edges import JoinType
from holotrace.enrich.job_graph.joining import JobGraph

LEGS: dict[str, pl.DataType | type[pl.DataType]] = {
    "leg": pl.Int64,
    "rank": pl.Int32,
    "type": pl.UInt8,
    "from_node": pl.Int64,
    "to_node": pl.Int64,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "call": pl.Int64,
    "from_rank": pl.Int32,
}


def legs(job: JobGraph) -> pl.DataFrame:
    """Return the critical path: walk back from the end of the step, at each node along the edge that arrives last.

    Returns:
        The edges of the path ("legs") in time order; together they cover the step without gaps:

        leg         int64  number
        rank        int32  the rank that spends the time
        type        uint8  JoinType
        from_node, to_node      int64  rows of the rank's `EventGraph.nodes`, for legs within a rank
        start_ns, end_ns      int64  on the reference clock
        call        int64  row of `JobGraph.calls`; null outside calls
        from_rank   int32  for transfers: the rank that arrived last; null if unknown
    """
    way = path_to(len(job.time_ns) - 1, job.edges, job.binding)
    sources, targets = job.edges.source[way].astype(np.int64), job.edges.target[way].astype(np.int64)
    times = np.append(job.time_ns[sources], job.time_ns[-1])
    times = np.minimum.accumulate(times[::-1])[::-1]
    times[0] = job.time_ns[0]
    kinds = job.type[way]
    at_end = job.rank[targets] >= 0
    rank = np.where(at_end, job.rank[targets], job.rank[sources])
    from_rank = np.where(np.isin(kinds, (JoinType.TRANSFER, JoinType.ALONE)), _before(job, sources, kinds), -1)
    return pl.DataFrame(
        {
            "leg": np.arange(len(way)),
            "rank": np.where(rank >= 0, rank, _rank_of_call(job, job.call[way])),
            "type": kinds,
            "from_node": job.node[sources],
            "to_node": job.node[targets],
            "start_ns": times[:-1],
            "end_ns": times[1:],
            "call": job.call[way],
            "from_rank": from_rank,
        },
        schema_overrides=LEGS,
    ).with_columns(pl.col("call", "from_rank").replace(-1, None))


def _before(job: JobGraph, sources: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Return, for each edge, the rank of its source; if the edge is a transfer, the rank that arrived last."""
    binding = job.binding[sources]
    arrived = np.where(binding >= 0, job.rank[job.edges.source[binding]], -1)
    return np.where(kinds == JoinType.TRANSFER, arrived, job.rank[sources])


def _rank_of_call(job: JobGraph, calls: np.ndarray) -> np.ndarray:
    ranks = job.calls["rank"].to_numpy()
    return np.where(calls >= 0, ranks[np.maximum(calls, 0)], -1) if len(ranks) else np.full(len(calls), -1)


def wanted_of_ranks(found: pl.DataFrame) -> dict[int, list[tuple[int, int, int]]]:
    """Return, for each rank, the legs that `expansion` divides into segments, as (leg, first node, last node)."""
    inside = found.filter(
        pl.col("type").is_in([JoinType.CHAIN, JoinType.SHORTCUT]), pl.col("end_ns") > pl.col("start_ns")
    )
    parts = inside.partition_by("rank", as_dict=True, maintain_order=True)
    return {int(rank): list(part.select("leg", "from_node", "to_node").iter_rows()) for (rank,), part in parts.items()}


def segments(job: JobGraph, found: pl.DataFrame, expanded: Mapping[int, pl.DataFrame]) -> pl.DataFrame:
    """Return the path in time order, with each leg within a rank replaced by its segments.

    Args:
        job: the graph.
        found: the path, as returned by `legs`.
        expanded: {rank: result of `holotrace.enrich.job_graph.expansion.expansion`}.

    Returns:
        rank         int32
        event_index  uint32  null outside all events
        name         str     name of the event or, outside all events, of the innermost Python function; null if unknown
        module       str     null if unknown
        path_class   uint8   PathClass
        start_ns, end_ns  int64  on the reference clock
        call         int64   row of `JobGraph.calls`; null outside calls
    """
    lasting = found.filter(pl.col("end_ns") > pl.col("start_ns"))
    within = pl.concat([*expanded.values()]) if expanded else pl.DataFrame(schema=EXPANDED)
    joined = lasting.join(within, on="leg", how="left", maintain_order="left", suffix="_own")
    shift = pl.col("end_ns") - pl.col("end_ns_own").max().over("leg")
    last = pl.col("start_ns_own").is_null()
    start = (pl.col("start_ns_own") + shift).clip("start_ns", "end_ns")
    end = (pl.col("end_ns_own") + shift).clip("start_ns", "end_ns")
    is_first = pl.int_range(pl.len()).over("leg") == 0
    calls = job.calls.select(pl.col("call").cast(pl.Int64), "event_index", "collective")
    placed = joined.with_columns(
        pl.when(last | is_first).then("start_ns").otherwise(start).alias("start_ns"),
        pl.when(last).then("end_ns").otherwise(end).alias("end_ns"),
    ).join(calls, on="call", how="left", maintain_order="left", suffix="_of_call")
    in_call = pl.col("call").is_not_null() & ~pl.col("type").is_in([JoinType.OUTSIDE])
    return placed.select(
        "rank",
        pl.when(in_call).then("event_index_of_call").otherwise("event_index").alias("event_index"),
        pl.when(in_call).then("collective").otherwise("name").alias("name"),
        "module",
        pl.when(in_call)
        .then(pl.lit(int(PathClass.COMMUNICATION), pl.UInt8))
        .otherwise(pl.col("path_class").fill_null(int(PathClass.UNKNOWN)))
        .alias("path_class"),
        "start_ns",
        "end_ns",
        "call",
    ).filter(pl.col("end_ns") > pl.col("start_ns"))


EXPANDED: dict[str, pl.DataType | type[pl.DataType]] = {
    "leg": pl.Int64,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "path_class": pl.UInt8,
    "event_index": pl.UInt32,
    "name": pl.String,
    "module": pl.String,
}
"""The columns of the segments into which `expansion` divides the legs of a rank."""


def hops(job: JobGraph, found: pl.DataFrame) -> pl.DataFrame:
    """Return the hops of the path from one rank to another, in time order.

    Returns:
        time_ns        int64  when the last rank had arrived, on the reference clock
        from_rank      int32  the rank that arrived last
        to_rank        int32  the rank on which the path continues
        instance, collective, process_group  of the call
        transfer_ns    int64  time from the last arrival to the end of the call on to_rank
        half_width_ns  int64  error of the clock difference between the two ranks; null if unknown
    """
    moved = found.filter(pl.col("from_rank").is_not_null() & (pl.col("from_rank") != pl.col("rank")))
    calls = job.calls.select(
        pl.col("call").cast(pl.Int64), "instance", "collective", "process_group", "clock", "half_width_ns"
    )
    members = job.calls.select(
        "instance",
        pl.col("rank").alias("from_rank"),
        pl.col("clock").alias("from_clock"),
        pl.col("half_width_ns").alias("from_half_width_ns"),
    ).unique(["instance", "from_rank"], keep="first")
    known = moved.join(calls, on="call", how="left", maintain_order="left").join(
        members, on=["instance", "from_rank"], how="left", maintain_order="left"
    )
    apart = pl.col("half_width_ns") + pl.col("from_half_width_ns")
    return known.select(
        pl.col("start_ns").alias("time_ns"),
        "from_rank",
        pl.col("rank").alias("to_rank"),
        "instance",
        "collective",
        "process_group",
        (pl.col("end_ns") - pl.col("start_ns")).alias("transfer_ns"),
        pl.when(pl.col("clock") == pl.col("from_clock")).then(0).otherwise(apart).alias("half_width_ns"),
    )
