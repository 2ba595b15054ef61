"""Finds synchronisation: streams wait for events, and the host waits for streams, devices, events and copies.

With `enable_cuda_sync_events`, the profiler writes rows of kind SYNCHRONISATION. Without such rows, host calls that
wait are recognised only by their names, and waits of streams are unknown.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import launches, runtime_calls
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_RECORD_NAME = r"(?i)event_?record|record_?event"
_WAIT_NAME = r"(?i)synchroni[sz]e"
_DEVICE_WAIT_NAME = r"(?i)device_?synchroni[sz]e|synchroni[sz]e_?device"
"""Patterns that fit the calls of all runtimes: cudaEventRecord, hipStreamSynchronize, zeEventHostSynchronize,
recordEvent."""

_STREAM = ("device", "stream")
_NO_STREAM = 0xFFFF_FFFF
"""For rows without a stream, Kineto writes -1 as this unsigned number."""

_EVENT_RECORD = {"event_index": pl.UInt32, "start_ns": pl.Int64, "correlation": pl.Int64}
_HOST_WAIT = ("call_index", "sync_index", "scope", *_STREAM, "record_index", "source_index")


@derived
def event_records(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls that record an event in a stream.

    A call records an event if its name says so, or if the device row of an event or of a wait refers to the call's
    correlation. That row also contains the stream.

    Returns:
        In file order:

        event_index  uint32  the call
        start_ns     int64
        correlation  int64   null if there is none
        device       int32   null if unknown
        stream       int64   null if unknown
        work_index   uint32  the last work launched into the stream before the call; null if none or unknown
    """
    places = _recorded_places(rank_trace)
    is_known = pl.col("correlation").is_in(places["correlation"].implode())
    calls = _calls(rank_trace).filter(is_known | _has_name(rank_trace, _RECORD_NAME)).sort("event_index")
    records = calls.join(places, on="correlation", how="left", maintain_order="left")
    work = _last_launched(rank_trace, records.rename({"start_ns": "moment_ns"}))
    return work.select("event_index", pl.col("moment_ns").alias("start_ns"), "correlation", *_STREAM, "work_index")


@derived
def stream_waits(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the waits of streams for events or for other streams.

    A call requests the wait. The first work launched into the waiting stream after this call waits for the last work
    that was launched into the other stream before the event was recorded. If the call that
    recorded the event is unknown, the event is assumed to be recorded right before the wait was requested.

    Returns:
        One row for each wait that the profiler recorded, in file order:

        event_index    uint32  the wait, a device row
        call_index     uint32  the call that requested it; null if unknown
        device         int32   null if unknown
        stream         int64   the waiting stream; null if unknown
        waited_stream  int64   the stream that it waits for; null if unknown
        record_index   uint32  the call that recorded the event; null if unknown
        source_index   uint32  the work that is waited for; null if unknown, or if there is no such work
        target_index   uint32  the work that waits; null if unknown, or if no work was launched after the call
    """
    waits = _linked_waits(rank_trace).filter(pl.col("scope") == "wait")
    sources = _last_launched(rank_trace, _at_the_record(waits))["work_index"]
    targets = _nearest(rank_trace, waits, "forward")["work_index"]
    columns = ("call_index", *_STREAM, "waited_stream", "record_index")
    return waits.select(pl.col("sync_index").alias("event_index"), *columns, source_index=sources, target_index=targets)


@derived
def host_synchronisations(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls in which the host waits for a device, and the work they wait for.

    A call waits for the last work launched before it into its stream or, if it waits for the whole device, into each
    stream of the device. A call that waits for an event waits for the last work launched before the event was recorded.
    A call that launched a copy, and returned after the copy ended, waited for the copy. If the stream of a call was not
    recorded, the call is assumed to wait for the stream whose work ended last before the call returned. A call that
    returned before the work ended did not wait, but only queried the state of the work.

    Returns:
        One row for each call and each stream it waits for, sorted by event_index, device and stream:

        event_index   uint32  the call
        sync_index    uint32  the device row of the wait; null if the wait is inferred from the call's name or times
        scope         str     `stream`, `device`, `event` or `copy`
        device        int32   of the work; null if unknown
        stream        int64   of the work; null if unknown
        record_index  uint32  the call that recorded the event; null if unknown, or if there is no event
        source_index  uint32  the work it waits for; null if unknown, or if there is no such work
    """
    written = _linked_waits(rank_trace).filter(pl.col("scope") != "wait").drop_nulls("call_index")
    named = _waits_by_name(rank_trace).join(written, on="call_index", how="anti")
    whole_device = pl.col("scope") == "device"
    parts = (
        (_last_launched, _at_the_record(written.filter(~whole_device))),
        (_on_each_stream, written.filter(whole_device)),
        (_on_each_stream, named.filter(whole_device)),
        (_on_likely_stream, named.filter(~whole_device)),
    )
    tables = [find(rank_trace, waits) for find, waits in parts if len(waits)]
    tables.append(_blocking_copies(rank_trace))
    waits = pl.concat([table.rename({"work_index": "source_index"}).select(_HOST_WAIT) for table in tables])
    return waits.rename({"call_index": "event_index"}).sort("event_index", *_STREAM)


@derived
def device_drained_ns(rank_trace: RankTrace) -> int:
    """Return the end of the first call that waits for a whole device.

    When this call ends, the device has finished all work that was launched before the recording. If there is no such
    call, return a time after all events.
    """
    calls = _calls(rank_trace).filter(_has_name(rank_trace, _DEVICE_WAIT_NAME))
    first = calls["end_ns"].min()
    return first if isinstance(first, int) else np.iinfo(np.int64).max


def has_recorded_waits(rank_trace: RankTrace) -> bool:
    """Return whether the profiler recorded synchronisation."""
    return bool(len(rank_trace.table("synchronisations", ["event_index"])))


@derived
def _calls(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls; if several calls have the same correlation, return only the runtime call."""
    calls = runtime_calls(rank_trace)
    is_numbered = (pl.col("correlation") > 0).fill_null(value=False)
    numbered = calls.filter(is_numbered)
    if numbered["correlation"].n_unique() == len(numbered):
        return calls
    first = numbered.sort("kind", maintain_order=True).unique("correlation", keep="first")
    return pl.concat([first, calls.filter(~is_numbered)])


def _has_name(rank_trace: RankTrace, pattern: str) -> pl.Expr:
    ids = names_matching(rank_trace, pattern)
    return pl.col("name").is_in(ids.implode())


def _recorded_places(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the correlation, device and stream of each call that recorded an event."""
    columns = ["correlation", *_STREAM]
    marks = rank_trace.events_of([EventKind.CUDA_EVENT], columns).with_columns(_known_stream("stream").alias("stream"))
    waits = _wait_rows(rank_trace).select(
        pl.col("wait_on_record_correlation").alias("correlation"), "device", pl.col("waited_stream").alias("stream")
    )
    known = pl.concat([marks, waits]).filter(pl.col("correlation") > 0)
    return known.unique("correlation", keep="first", maintain_order=True)


@derived
def _wait_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the device rows of waits; a row without `sync_kind` is the wait of a stream for another stream."""
    is_wait = pl.col("sync_kind").is_not_null() | pl.col("wait_on_stream").is_not_null()
    details = rank_trace.table("synchronisations").filter(is_wait)
    kinds = (EventKind.SYNCHRONISATION, EventKind.ACCELERATOR)
    columns = ["event_index", "start_ns", *_STREAM, "correlation"]
    rows = event_ranges(rank_trace, kinds, columns).join(details, on="event_index", maintain_order="left")
    return rows.with_columns(
        _scopes(rank_trace.texts(rows["sync_kind"]).fill_null("wait")),
        _known_stream("stream").alias("stream"),
        _known_stream("wait_on_stream").alias("waited_stream"),
    )


def _known_stream(column: str) -> pl.Expr:
    return pl.when(pl.col(column).is_between(0, _NO_STREAM, closed="left")).then(column)


def _scopes(texts: pl.Series) -> pl.Series:
    """Return `wait` if a stream waits; return `event`, `stream` or `device` if the host waits for one of these."""
    words = texts.str.to_lowercase()
    by_word = [pl.when(words.str.contains(word)).then(pl.lit(word)) for word in ("wait", "event", "stream")]
    return pl.select(pl.coalesce(*by_word, pl.lit("device")).alias("scope")).to_series()


@derived
def _linked_waits(rank_trace: RankTrace) -> pl.DataFrame:
    """Join each device row of a wait with the call that requested the wait and the call that recorded the event."""
    rows = _wait_rows(rank_trace).rename({"event_index": "sync_index"})
    calls = _calls(rank_trace) if len(rows) else _calls(rank_trace).clear()
    asked = calls.filter(pl.col("correlation") > 0).select(
        "correlation", call_index="event_index", call_start_ns="start_ns", call_end_ns="end_ns"
    )
    recorded = event_records(rank_trace) if len(rows) else pl.DataFrame(schema=_EVENT_RECORD)
    records = recorded.filter(pl.col("correlation") > 0).select(
        wait_on_record_correlation="correlation", record_index="event_index", record_start_ns="start_ns"
    )
    linked = rows.join(asked, on="correlation", how="left", maintain_order="left")
    return linked.join(records, on="wait_on_record_correlation", how="left", maintain_order="left").with_columns(
        pl.coalesce("call_start_ns", "start_ns").alias("moment_ns")
    )


def _at_the_record(waits: pl.DataFrame) -> pl.DataFrame:
    """For each wait for an event, set `stream` and `moment_ns` to the stream and time of the call that recorded it.

    For waits of the host for a whole stream, both columns stay unchanged.
    """
    for_event = pl.col("scope") != "stream"
    moment = pl.when(for_event).then(pl.coalesce("record_start_ns", "moment_ns")).otherwise("moment_ns")
    stream = pl.when(for_event).then("waited_stream").otherwise("stream")
    return waits.with_columns(moment.alias("moment_ns"), stream.alias("stream"))


def _waits_by_name(rank_trace: RankTrace) -> pl.DataFrame:
    calls = _calls(rank_trace).filter(_has_name(rank_trace, _WAIT_NAME))
    return calls.select(
        pl.lit(None, pl.UInt32).alias("sync_index"),
        _scopes(rank_trace.texts(calls["name"])),
        pl.lit(None, pl.Int32).alias("device"),
        pl.lit(None, pl.Int64).alias("stream"),
        pl.lit(None, pl.UInt32).alias("record_index"),
        call_index="event_index",
        moment_ns="start_ns",
        call_end_ns="end_ns",
    )


@derived
def _launched_work(rank_trace: RankTrace) -> pl.DataFrame:
    """Return all device work in the order of its launches."""
    launched = device_rows(rank_trace).hstack(launches(rank_trace).drop("event_index"))
    waits = rank_trace.table("synchronisations", ["event_index"])
    work = launched.join(waits, on="event_index", how="anti", maintain_order="left") if len(waits) else launched
    moment = pl.coalesce("launch_start_ns", "start_ns").alias("moment_ns")
    return work.select(pl.exclude("name", "correlation"), moment).sort("moment_ns", "end_ns")


def _last_launched(rank_trace: RankTrace, moments: pl.DataFrame) -> pl.DataFrame:
    """Add `work_index` and `work_end_ns` of the last work launched into `device` and `stream` before `moment_ns`."""
    return _nearest(rank_trace, moments, "backward")


def _nearest(rank_trace: RankTrace, moments: pl.DataFrame, strategy: Literal["backward", "forward"]) -> pl.DataFrame:
    work = _launched_work(rank_trace).select(*_STREAM, "moment_ns", work_index="event_index", work_end_ns="end_ns")
    if moments.is_empty():
        return moments.hstack(work.select("work_index", "work_end_ns").clear())
    rows = moments.select(*_STREAM, "moment_ns").with_row_index("row").sort("moment_ns")
    joined = rows.join_asof(
        work, on="moment_ns", by=_STREAM, strategy=strategy, allow_exact_matches=False, check_sortedness=False
    )
    return moments.hstack(joined.sort("row").select("work_index", "work_end_ns"))


def _on_each_stream(rank_trace: RankTrace, waits: pl.DataFrame) -> pl.DataFrame:
    """Return the work that each call waits for, on each stream of its device.

    If the device of a call is unknown, the streams of all devices are used.
    """
    candidates = _candidates(rank_trace, waits).drop_nulls("work_index")
    return _with_idle(waits, candidates)


def _on_likely_stream(rank_trace: RankTrace, waits: pl.DataFrame) -> pl.DataFrame:
    """Assume that each call waits for the stream whose work ended last before the call returned."""
    ended = _candidates(rank_trace, waits).filter(pl.col("work_end_ns") <= pl.col("call_end_ns"))
    return _with_idle(waits, ended.sort("work_end_ns", descending=True).unique("call_index", keep="first"))


def _candidates(rank_trace: RankTrace, waits: pl.DataFrame) -> pl.DataFrame:
    streams = _launched_work(rank_trace).select(work_device="device", work_stream="stream").unique()
    pairs = waits.join(streams, how="cross")
    same_device = pl.col("device").is_null() | (pl.col("device") == pl.col("work_device"))
    placed = pairs.filter(same_device).with_columns(device="work_device", stream="work_stream")
    return _last_launched(rank_trace, placed)


def _with_idle(waits: pl.DataFrame, with_work: pl.DataFrame) -> pl.DataFrame:
    """Return `with_work`, followed by the rows of `waits` whose call is not in `with_work`."""
    idle = waits.join(with_work, on="call_index", how="anti")
    return pl.concat([with_work, idle], how="diagonal")


def _blocking_copies(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the copies that ended before their call returned."""
    work = _launched_work(rank_trace)
    waited = work.filter((pl.col("kind") == EventKind.GPU_MEMCPY) & (pl.col("launch_end_ns") >= pl.col("end_ns")))
    return waited.select(
        *_STREAM,
        pl.lit(None, pl.UInt32).alias("sync_index"),
        pl.lit("copy").alias("scope"),
        pl.lit(None, pl.UInt32).alias("record_index"),
        call_index="launch_index",
        work_index="event_index",
    )
