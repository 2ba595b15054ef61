"""Finds the sends and receives of each batch (`torch.distributed.batch_isend_irecv`); one kernel performs each batch.

The host requests each send and receive (`record_param_comms`), then launches one kernel for all of them inside an
annotation `nccl:coalesced`. The kernel has no args:
https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (endCoalescing)
"""

from __future__ import annotations

import polars as pl

from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import of_events
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.trace import RankTrace

BATCH = "send_recv"
_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {"first_index": pl.UInt32, "partners": pl.List(pl.Int64)}


def batches(rank_trace: RankTrace, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the partners and the first event of each batch of sends and receives.

    Args:
        rank_trace: the rank.
        rows: `holotrace.enrich.collectives.collectives.communication`.

    Returns:
        One row for each row of `rows`:

        first_index  uint32       event that requests the first send or receive of the batch; null for other calls
        partners     list[int64]  r for a send to rank r, -1 - r for a receive from rank r; null if unknown
    """
    silent = rows.filter((pl.col("family") == BATCH) & pl.col("described_index").is_null())
    unknown = pl.DataFrame({"first_index": [None] * len(rows), "partners": [None] * len(rows)}, _COLUMNS)
    if silent.is_empty():
        return unknown
    requests = _requests(rank_trace, rows["described_index"])
    if requests.is_empty():
        return unknown
    launched = _launched(rank_trace, silent["event_index"])
    of_batch = requests.join_asof(
        launched, left_on="start_ns", right_on="launch_ns", by="track_id", strategy="forward", check_sortedness=False
    )
    batched = of_batch.drop_nulls("kernel_index").group_by("kernel_index", maintain_order=True)
    known = batched.agg(pl.col("event_index").first().alias("first_index"), pl.col("partner").alias("partners"))
    return (
        rows.select(kernel_index="event_index")
        .join(known, on="kernel_index", how="left", maintain_order="left")
        .drop("kernel_index")
    )


def _requests(rank_trace: RankTrace, described_index: pl.Series) -> pl.DataFrame:
    """Return the host's sends and receives, except those that have a kernel of their own.

    Columns: event_index, start_ns, track_id, partner.
    """
    args = rank_trace.table("collectives", ["event_index", "source_rank", "destination_rank"])
    alone = args.filter(
        (pl.col("source_rank").is_null() != pl.col("destination_rank").is_null())
        & ~pl.col("event_index").is_in(described_index.drop_nulls().implode())
    )
    hosts = event_ranges(
        rank_trace, [EventKind.CPU_OP, EventKind.USER_ANNOTATION], ["event_index", "start_ns", "end_ns", "track_id"]
    )
    partner = pl.coalesce("destination_rank", -1 - pl.col("source_rank")).alias("partner")
    known = hosts.join(alone.select("event_index", partner), on="event_index", maintain_order="left")
    return known.drop("end_ns").sort("start_ns", "event_index")


def _launched(rank_trace: RankTrace, event_index: pl.Series) -> pl.DataFrame:
    calls = launches(rank_trace).filter(pl.col("event_index").is_in(event_index.implode()))
    tracks = of_events(rank_trace.events_of(LAUNCH_KINDS, ["event_index", "track_id"]), calls["launch_index"])
    launched = calls.select(kernel_index="event_index", launch_ns="launch_start_ns").hstack(tracks)
    return launched.drop_nulls().sort("launch_ns")
