"""Queue lengths and copy bandwidths as counter events, which timelines draw as curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Flag, auto

import polars as pl

from holotrace.analyses.memory_bandwidth.compute import memory_bandwidth
from holotrace.analyses.queue_length.compute import queue_series
from holotrace.errors import MissingDataError
from holotrace.export.json_columns import decimal_text, joined, track_texts
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.trace import RankTrace, Trace

_ROWS_AT_ONCE = 50_000


class TimeSeriesTypes(Flag):
    """Which counters to add to a trace."""

    QUEUE_LENGTH = auto()
    MEMCPY_BANDWIDTH = auto()


ALL_COUNTERS = TimeSeriesTypes.QUEUE_LENGTH | TimeSeriesTypes.MEMCPY_BANDWIDTH


def counter_events(rank_trace: RankTrace, kinds: TimeSeriesTypes = ALL_COUNTERS) -> Iterator[str]:
    """Yield the JSON text of counter events, one for each change of a queue length or bandwidth.

        Queue Length   `id` is the stream; the value is the number of launched kernels and copies that have not started
        Memcpy DtoH …  one counter for each kind of copy; the value is the bandwidth in GB/s

    Both kinds of counters have the device's pid. A rank without device work has no counters.
    """
    if TimeSeriesTypes.QUEUE_LENGTH in kinds:
        yield from _texts(rank_trace, _queues, _QUEUE_LENGTH)
    if TimeSeriesTypes.MEMCPY_BANDWIDTH in kinds:
        yield from _texts(rank_trace, _bandwidths, _BANDWIDTH)


_QUEUE_LENGTH = (
    joined('"ph":"C","name":"Queue Length","id":', pl.col("stream")),
    joined('"Queue Length":', pl.col("queue_length")),
)
_BANDWIDTH = (
    joined('"ph":"C","name":"', pl.col("name"), '"'),
    joined('"Memcpy BW":', decimal_text(pl.col("bytes_per_s"), 9)),  # GB/s
)


def _texts(
    rank_trace: RankTrace, changes: Callable[[Trace], pl.DataFrame], counter: tuple[pl.Expr, pl.Expr]
) -> Iterator[str]:
    try:
        table = changes(Trace({rank_trace.rank: rank_trace}))
    except MissingDataError:
        return
    tracks, base = _processes(rank_trace), rank_trace.header.base_time_ns
    for rows in table.iter_slices(_ROWS_AT_ONCE):
        with_process = rows.join(tracks, on="work_index", how="left", maintain_order="left")
        yield from with_process.select(_text(*counter, base)).to_series().to_list()


def _queues(trace: Trace) -> pl.DataFrame:
    series = pl.concat(trace.map(queue_series).values())
    columns = series.select("device", "stream", "time_ns", "work_index", "queue_length")
    return columns.filter(_is_last_at_its_time("device", "stream", "time_ns"))


def _bandwidths(trace: Trace) -> pl.DataFrame:
    series = memory_bandwidth(trace).series.rename({"event_index": "work_index"})
    return series.filter(_is_last_at_its_time("device", "name", "time_ns"))


def _is_last_at_its_time(*keys: str) -> pl.Expr:
    """Return whether a row is the last change at its time; a timeline can show only one value per time."""
    return pl.any_horizontal(pl.col(key).ne_missing(pl.col(key).shift(-1)) for key in keys)


def _text(which: pl.Expr, value: pl.Expr, base_time_ns: int) -> pl.Expr:
    """Return the JSON text of a counter event; its time is in microseconds since the file's base time."""
    process_and_time = joined(
        ',"pid":', pl.col("pid"), ',"tid":0,"ts":', decimal_text(pl.col("time_ns") - base_time_ns, 3)
    )
    return joined("{", which, process_and_time, ',"args":{', value, "}}")


def _processes(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the `work_index` of each event on a device, and the event's pid as JSON text."""
    work = rank_trace.events_of(DEVICE_WORK_KINDS, ["event_index", "track_id"])
    named = work.join(track_texts(rank_trace), on="track_id")
    return named.select(pl.col("event_index").alias("work_index"), "pid")
