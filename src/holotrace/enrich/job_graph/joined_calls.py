"""Find, for the calls in a job's graph, when each rank arrived and when all ranks had arrived."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.across_ranks.job_calls import JobCalls
from holotrace.enrich.collectives.collectives import POINT_TO_POINT
from holotrace.enrich.job_graph.rank_graph import RankGraph

_Int64 = npt.NDArray[np.int64]

_FOREVER_NS = 2**62


def placed_calls(of_ranks: Mapping[int, RankGraph], job: JobCalls, first: _Int64, time_ns: _Int64) -> pl.DataFrame:
    """Return the calls in the graph, and the calls with the same `instance` on other ranks.

    arrives_ns and ends_ns are on the reference clock. arrival, start and end are points of the graph; they are null for
    calls outside the windows.
    """
    points = pl.concat(
        graph.calls.select(
            pl.lit(rank, pl.Int32).alias("rank"),
            "event_index",
            *((pl.col(name).cast(pl.Int64) + int(begin)).alias(name) for name in ("asked", "start", "end")),
            pl.Series("awaited_ns", _awaited_ns(graph), pl.Int64),
        )
        for (rank, graph), begin in zip(of_ranks.items(), first, strict=False)
    )
    rows = job.calls.with_row_index("row").join(points, on=["rank", "event_index"], how="left", maintain_order="left")
    inside = rows.filter(pl.col("start").is_not_null())
    concerned = rows.filter(
        pl.col("start").is_not_null() | pl.col("instance").is_in(inside["instance"].drop_nulls().unique().implode())
    )
    # A send or receive that the host executes (it has no stream) begins when it is requested. PyTorch's annotation
    # begins later.
    from_request = pl.col("collective").is_in(POINT_TO_POINT) & pl.col("stream").is_null()
    arrival = pl.when(from_request).then("asked").otherwise("start")
    early = pl.when(from_request & pl.col("asked_ns").is_not_null()).then(pl.col("start_ns") - pl.col("asked_ns"))
    placed = concerned.with_columns(arrival.alias("arrival"))
    times = pl.Series("time_ns", time_ns)
    return placed.with_columns(
        pl.coalesce(times.gather(placed["arrival"]), pl.col("aligned_start_ns") - early.fill_null(0)).alias(
            "arrives_ns"
        ),
        pl.coalesce(times.gather(placed["end"]), "aligned_end_ns").alias("ends_ns"),
        times.gather(placed["start"]).alias("starts_ns"),
    ).drop_nulls("arrives_ns")


def _awaited_ns(graph: RankGraph) -> _Int64:
    """Return how long each call still lasted once nothing on its own rank delayed its end.

    The time is `_FOREVER_NS` if the rank does not delay the end at all, because only communication delays it.

    `joints` uses this time to find the threads that began to wait only after the last arrival. The calls of these
    threads may end long after the message arrived.
    """
    ends = graph.calls["end"].to_numpy()
    reached = graph.reached_from[ends]
    ready_ns = graph.time_ns[np.maximum(reached, 0)] + graph.chain_ns[ends]
    lasted: _Int64 = np.where(reached >= 0, graph.time_ns[ends] - ready_ns, _FOREVER_NS)
    return np.maximum(0, lasted)


def joints(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the last arrival and the transfer time of each `instance` in which ranks wait."""
    members = calls.drop_nulls("instance").with_columns(
        pl.col("arrives_ns").max().over("instance").alias("joint_ns"),
        pl.when(pl.col("clock").n_unique().over("instance") > 1)
        .then(2 * pl.col("half_width_ns").max().over("instance"))
        .otherwise(0)
        .alias("doubt_ns"),
    )
    waits = pl.col("ends_ns") >= pl.col("joint_ns") - pl.col("doubt_ns").fill_null(0)
    after = (pl.col("ends_ns") - pl.col("joint_ns")).clip(0)
    is_awaited = waits & (pl.col("awaited_ns") >= after)
    # If a thread began to wait only after the last arrival, the time from this arrival to the end of the thread's call
    # is only an upper bound on the transfer time. The usual transfer time comes from calls of the same kind and size
    # whose threads were already waiting at the last arrival.
    usual = after.filter(is_awaited).median().over(["process_group", "collective", "message_bytes"]).cast(pl.Int64)
    members = members.with_columns(
        pl.when(is_awaited)
        .then(after)
        .otherwise(pl.min_horizontal(after, pl.coalesce(usual, "awaited_ns")))
        .alias("transfer_after_ns")
    )
    return (
        members.group_by("instance", maintain_order=True)
        .agg(
            pl.col("joint_ns").first(),
            pl.col("doubt_ns").first(),
            pl.col("transfer_after_ns").filter(waits).min().alias("least_transfer_ns"),
            (waits & pl.col("end").is_not_null()).any().alias("is_joint"),
            pl.len().alias("member_count"),
        )
        .filter("is_joint", pl.col("member_count") > 1)
        .drop("is_joint")
    )


def joined_calls(calls: pl.DataFrame, joints: pl.DataFrame, first: int) -> pl.DataFrame:
    """Add the joint of each call: the graph node for the moment when all ranks had arrived.

    For a call that ended before all ranks had arrived, also add the last arrival before the end of the call.
    """
    numbered = joints.with_columns(pl.int_range(first, first + pl.len(), dtype=pl.Int64).alias("joint"))
    known = calls.join(numbered, on="instance", how="left", maintain_order="left").with_row_index("call")
    waits = pl.col("ends_ns") >= pl.col("joint_ns") - pl.col("doubt_ns").fill_null(0)
    with_waits = known.with_columns(
        (waits & pl.col("end").is_not_null()).fill_null(value=False).alias("is_waiting"),
        (pl.col("member_count") >= pl.col("group_size")).fill_null(value=False).alias("is_complete"),
    )
    arrivals = (
        with_waits.drop_nulls("instance")
        .select("instance", pl.col("arrives_ns").alias("before_ns"), pl.col("arrival").alias("before"))
        .sort("before_ns")
    )
    early = with_waits.filter(~pl.col("is_waiting") & pl.col("end").is_not_null()).sort("ends_ns")
    last = early.join_asof(
        arrivals, left_on="ends_ns", right_on="before_ns", by="instance", check_sortedness=False
    ).select("call", "before", "before_ns")
    return with_waits.join(last, on="call", how="left", maintain_order="left")
