"""Finds the host call that launched each kernel, copy or memset."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from holotrace.algorithms.matching import SEVERAL, only_matches
from holotrace.enrich.device.device_work import device_rows, device_work
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace


@derived
def launches(rank_trace: RankTrace) -> pl.DataFrame:
    """Return every device row with the runtime or driver call that launched it.

    The row and the call have the same `correlation`, which is above 0. One call, such as the launch of a CUDA graph,
    may launch many rows. Several calls may have the same correlation, because a runtime call contains a driver call, or
    because the file joins several processes. In this case, one of these calls is chosen for each row. The following calls
    are preferred, in this order of priority:

    1. calls that have the `external_id` of the row;
    2. calls that began no later than the row;
    3. runtime calls;
    4. the call that began last.

    Returns:
        The rows of `device_rows`, in the same order:

        event_index      uint32
        launch_index     uint32  event_index of the call; null if unknown
        launch_name      uint32  string id; null if unknown
        launch_start_ns  int64   null if unknown
        launch_end_ns    int64   null if unknown
    """
    rows, calls = device_rows(rank_trace), _calls(rank_trace)
    only = only_matches(calls["correlation"].to_numpy(), rows["correlation"].to_numpy())
    several = np.flatnonzero(only == SEVERAL)
    call_of_row = pl.Series("call", only)
    if len(several):
        call_of_row[several] = _best_calls(rank_trace, rows[several], calls)
    launched_by = pl.col("launch_index", "launch_name", "launch_start_ns", "launch_end_ns")
    known = call_of_row.cast(pl.UInt32, strict=False)  # `NO_MATCH` becomes null
    return rows.select("event_index").hstack(calls.select(launched_by.gather(known)))


def launched_work(rank_trace: RankTrace) -> pl.DataFrame:
    """Return `device_work` with the columns of `launches`; the result is not cached."""
    work = device_work(rank_trace)
    return work.hstack(of_work(launches(rank_trace), work).drop("event_index"))


@derived
def asked_for(rank_trace: RankTrace) -> pl.DataFrame:
    """Return when the host requested the work of each device row; this time determines the step of the row.

    The host requests device work when the call that launches it starts. Sometimes this call is unknown; for example,
    the calls that launch NCCL's kernels are not always recorded. If the call is unknown, the start of the row is used
    instead, or null if the row's work was launched before the recording. Streams run their work in order, so a row that
    starts before the first row with a known launch on the same stream is assumed to have been launched before the
    recording. If a stream has no known launch, its rows that start before the first known launch of the rank are
    assumed to have been launched before the recording.

    Returns:
        The rows of `device_rows`, in the same order:

        event_index  uint32
        asked_ns     int64   null if the work was requested before the recording
    """
    launched = launches(rank_trace)
    launch_ns = launched["launch_start_ns"]
    if not launch_ns.null_count() or not launch_ns.count():
        return launched.select(
            "event_index", asked_ns=launch_ns if launch_ns.count() else device_rows(rank_trace)["start_ns"]
        )
    start_ns, launch = pl.col("start_ns"), pl.col("launch_start_ns")
    first_ns = start_ns.filter(launch.is_not_null()).min().over("device", "stream").fill_null(launch.min())
    asked_ns = pl.when(launch.is_not_null()).then(launch).when(start_ns >= first_ns).then(start_ns)
    rows = device_rows(rank_trace).select("start_ns", "device", "stream").hstack(launched)
    return rows.select("event_index", asked_ns.alias("asked_ns"))


def of_work(rows: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Return the rows for the events in `work`, a frame sorted like `rows`.

    `rows` is a result of `launches` or `asked_for`.
    """
    return rows if len(rows) == len(work) else rows.filter(pl.col("event_index").is_in(work["event_index"].implode()))


@derived
def runtime_calls(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the host's calls into the runtime or driver: event_index, name, start_ns, end_ns, kind, correlation."""
    return event_ranges(rank_trace, LAUNCH_KINDS, ["event_index", "name", "start_ns", "end_ns", "kind", "correlation"])


@derived
def _calls(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the host calls with a correlation, in file order."""
    return (
        runtime_calls(rank_trace)
        .filter(pl.col("correlation") > 0)
        .select(
            "correlation",
            pl.col("event_index").alias("launch_index"),
            pl.col("name").alias("launch_name"),
            pl.col("start_ns").alias("launch_start_ns"),
            pl.col("end_ns").alias("launch_end_ns"),
            (pl.col("kind") == EventKind.DRIVER).alias("is_driver"),
        )
    )


def _best_calls(rank_trace: RankTrace, rows: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Return the best call for each device row in `rows`, as a row of `calls`; `launches` lists the criteria."""
    pairs = rows.with_row_index("place").join(calls.with_row_index("call"), on="correlation")
    external_id = _external_ids(rank_trace, pl.concat([pairs["event_index"], pairs["launch_index"]]))
    best_first = pairs.sort(
        "place",
        external_id(pairs["event_index"]).ne_missing(external_id(pairs["launch_index"])),
        pl.col("launch_start_ns") > pl.col("start_ns"),
        "is_driver",
        -pl.col("launch_start_ns"),
        "launch_index",
    )
    return best_first.unique("place", keep="first").sort("place")["call"].cast(pl.Int64)


def _external_ids(rank_trace: RankTrace, event_indexes: pl.Series) -> Callable[[pl.Series], pl.Series]:
    """Return a function that maps the indexes of these events to their external ids."""
    events = rank_trace.table("events", ["event_index", "external_id"])
    known = events.join(event_indexes.unique().to_frame(), on="event_index", how="semi")
    return lambda indexes: indexes.replace_strict(known["event_index"], known["external_id"], default=None)
