"""User annotations on the host and on devices, and the annotation of each device activity.

The profiler projects each host annotation onto streams: each projection (GPU_USER_ANNOTATION) lasts from the first to
the last kernel that was launched inside the host annotation. If the profiler did not project annotations, because the
option was off or PyTorch was too old, this module projects them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.innermost import NO_OWNER, Innermost, innermost
from holotrace.algorithms.nested.nesting import nesting
from holotrace.enrich.device.device_work import device_rows, device_work
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import of_events
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_STREAM = ("device", "stream")


@derived
def host_annotations(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the host annotations in file order.

    Returns:
        event_index uint32, name uint32 (string id), start_ns, end_ns int64, track_id uint32, and self_ns int64: the
        annotation's time outside shorter annotations on the same thread.
    """
    return _with_exclusive_time(host_ranges(rank_trace), ["track_id"])


@derived
def device_annotations(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the annotations on streams: the recorded ones or, if there are none, projected ones.

    Returns:
        event_index   uint32  the annotation recorded on the stream; for a projected one, the host annotation
        name          uint32  string id
        start_ns, end_ns  int64
        device        int32   -1 if unknown
        stream        int64   -1 if unknown
        self_ns       int64   the annotation's time that shorter annotations on the same stream do not cover
    """
    return _with_exclusive_time(device_ranges(rank_trace), _STREAM)


def host_ranges(rank_trace: RankTrace) -> pl.DataFrame:
    """Return `host_annotations` without the self time."""
    columns = ["event_index", "name", "start_ns", "end_ns", "track_id"]
    return event_ranges(rank_trace, [EventKind.USER_ANNOTATION], columns)


def device_ranges(rank_trace: RankTrace) -> pl.DataFrame:
    """Return `device_annotations` without the self time."""
    columns = ["event_index", "name", "start_ns", "end_ns", *_STREAM]
    recorded = event_ranges(rank_trace, [EventKind.GPU_USER_ANNOTATION], columns)
    return recorded.with_columns(pl.col(_STREAM).fill_null(-1)) if len(recorded) else _projected(rank_trace)


def has_recorded_device_annotations(rank_trace: RankTrace) -> bool:
    """Return whether the profiler itself projected annotations onto streams."""
    return bool(len(rank_trace.events_of([EventKind.GPU_USER_ANNOTATION], ["event_index"])))


def annotation_of_work(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the innermost annotation of each device activity.

    If the profiler recorded annotations on streams, the innermost annotation is the shortest one on the work's device
    and stream during which the work begins. Otherwise, the innermost annotation is the shortest host annotation around
    the launch on the launching thread. If the launching thread has none, another thread of the process is used, such as
    a main thread that waits for the backward pass.

    Returns:
        The rows of `device_work`, in the same order: event_index uint32, annotation_index uint32 (event_index of the
        annotation) and annotation uint32 (string id of its name), both null if there is none.
    """
    work = device_work(rank_trace)
    if has_recorded_device_annotations(rank_trace):
        annotations = device_annotations(rank_trace)
        rows = innermost_of(annotations, work.select(*_STREAM, pl.col("start_ns").alias("moment")), _STREAM)
    else:
        annotations = host_annotations(rank_trace)
        rows = _launching_annotation(rank_trace, annotations, work["event_index"])
    chosen = pl.Series(rows).replace(NO_OWNER, None).cast(pl.UInt32)
    return work.select("event_index").with_columns(
        annotations["event_index"].gather(chosen).alias("annotation_index"),
        annotations["name"].gather(chosen).alias("annotation"),
    )


def _projected(rank_trace: RankTrace) -> pl.DataFrame:
    """Return, for each host annotation and stream, the time from the first start to the last end of its work there."""
    host, work = host_annotations(rank_trace), device_rows(rank_trace)
    parent = nesting(*(host[column].to_numpy() for column in ("track_id", "start_ns", "end_ns"))).parent
    rows = _launching_annotation(rank_trace, host, work["event_index"])
    placed = work.select("start_ns", "end_ns", *_STREAM)
    levels = []
    while (rows != NO_OWNER).any():
        levels.append(placed.with_columns(pl.Series("row", rows)).filter(pl.col("row") != NO_OWNER))
        rows = np.where(rows == NO_OWNER, NO_OWNER, parent[rows])
    projected = pl.concat([placed.clear().with_columns(pl.lit(0, pl.Int64).alias("row")), *levels])
    ranges = projected.group_by("row", *_STREAM).agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    named = ranges.with_columns(
        host["event_index"].gather(ranges["row"]).alias("event_index"),
        host["name"].gather(ranges["row"]).alias("name"),
    )
    columns = ["event_index", "name", "start_ns", "end_ns", *_STREAM]
    return named.select(columns).sort("event_index", *_STREAM)


def _launching_annotation(rank_trace: RankTrace, host: pl.DataFrame, event_index: pl.Series) -> npt.NDArray[np.int64]:
    """Return, for each of these device rows, the row in `host` of the innermost annotation around its launch."""
    launched = of_events(launches(rank_trace), event_index)
    calls = of_events(rank_trace.events_of(LAUNCH_KINDS, ["event_index", "track_id"]), launched["launch_index"])
    moments = calls.with_columns(launched["launch_start_ns"].alias("moment"))
    rows = innermost_of(host, moments, ["track_id"])
    missing = np.flatnonzero(rows == NO_OWNER)
    if len(missing) and len(host):
        process = rank_trace.table("tracks", ["process_id"])["process_id"]
        rows[missing] = innermost_of(_of_process(host, process), _of_process(moments[missing], process), ["process"])
    return rows


def _of_process(table: pl.DataFrame, process: pl.Series) -> pl.DataFrame:
    return table.with_columns(process.gather(table["track_id"]).alias("process"))


def innermost_of(annotations: pl.DataFrame, moments: pl.DataFrame, keys: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return, for each moment, the row of the shortest annotation around it; NO_OWNER if there is none.

    Both tables have the columns `keys`; an annotation and a moment belong together only if they have the same values
    in these columns. `annotations` also has the columns start_ns and end_ns, and `moments` has the
    column `moment` (in ns or null).
    """
    rows = np.full(len(moments), NO_OWNER, np.int64)
    places = _groups(moments.filter(pl.col("moment").is_not_null()), keys, moments["moment"].is_not_null())
    for key, members in _groups(annotations, keys, None).items():
        wanted = places.get(key)
        if wanted is None:
            continue
        owners = _segments(annotations, members).at(moments["moment"][wanted].to_numpy())
        rows[wanted] = np.where(owners == NO_OWNER, NO_OWNER, members[owners])
    return rows


def _groups(
    table: pl.DataFrame, keys: Sequence[str], chosen: pl.Series | None
) -> dict[tuple[object, ...], npt.NDArray[np.int64]]:
    """Return, for each combination of values in the columns `keys`, the numbers of the rows with these values.

    `chosen` is given if `table` contains only the chosen rows of a larger table; the row numbers are then those of the
    larger table.
    """
    original = np.arange(len(table)) if chosen is None else np.flatnonzero(chosen.to_numpy())
    grouped = table.select(keys).with_columns(pl.Series("row", original)).drop_nulls().group_by(keys).agg("row")
    return dict(zip(grouped.select(keys).iter_rows(), (rows.to_numpy() for rows in grouped["row"]), strict=True))


def _segments(annotations: pl.DataFrame, members: npt.NDArray[np.int64]) -> Innermost:
    chosen = annotations[members]
    return innermost(chosen["start_ns"].to_numpy(), chosen["end_ns"].to_numpy())


def _with_exclusive_time(annotations: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    exclusive = np.zeros(len(annotations), np.int64)
    for members in _groups(annotations, keys, None).values():
        exclusive[members] = _segments(annotations, members).lengths(len(members))
    return annotations.with_columns(pl.Series("self_ns", exclusive))
