"""The events of a rank as a pandas frame with HTA's columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.device.launches import launches
from holotrace.enrich.job.job_time import RANGES, listed_events
from holotrace.enrich.steps.step_of_event import step_of_event
from holotrace.schema import DEVICE_WORK_KINDS, EventKind
from holotrace.store.trace import RankTrace, Trace
from hta.facade.imports.modules_later import pd
from hta.facade.trace.symbols import TraceSymbolTable

STREAM_KINDS = (*DEVICE_WORK_KINDS, EventKind.SYNCHRONISATION, EventKind.CUDA_EVENT)
"""Kinds of events that have a stream; frames ignore the stream in the args of host events."""


_LINKS = ("stream", "correlation", "external_id")
_STORED = ("event_index", "kind", "category", "name", "track_id", "start_ns", "duration_ns", *_LINKS)


class _Source(NamedTuple):
    """A table that provides columns of the frame, {its column: HTA's column}, and the value for missing data."""

    table: str
    columns: dict[str, str]
    missing: Any


_SIDE_TABLES = (
    _Source("copies", {"bytes": "bytes"}, -1),
    _Source("copies", {"bandwidth_gb_per_s": "memory_bw_gbps"}, 0.0),
    _Source(
        "synchronisations",
        {"wait_on_stream": "wait_on_stream", "wait_on_record_correlation": "wait_on_cuda_event_record_corr_id"},
        -1,
    ),
    _Source(
        "operator_inputs",
        {"input_dims": "input_dims", "input_types": "input_type", "input_strides": "input_strides"},
        "-1",
    ),
    _Source("python_frames", {"python_id": "python_id", "python_parent_id": "python_parent_id"}, -1),
    _Source("collectives", {"collective": "collective_name", "dtype": "msg_dtype"}, ""),
    _Source(
        "collectives",
        {"in_elements": "in_msg_nelems", "out_elements": "out_msg_nelems", "group_size": "group_size"},
        0,
    ),
    _Source("collectives", {"rank": "process_rank"}, -1),
    _Source("collectives", {"in_split_sizes": "in_split_size", "out_split_sizes": "out_split_size"}, "[]"),
)
_JSON_TABLES = ("operator_inputs",)
"""Tables whose strings contain JSON, which is decoded to lists, as in HTA."""

COLUMNS = (
    "index", "cat", "name", "pid", "tid", "ts", "dur", "stream", "correlation", "bytes", "memory_bw_gbps",
    "wait_on_stream", "wait_on_cuda_event_record_corr_id", "input_dims", "input_type", "input_strides", "external_id",
    "python_id", "python_parent_id", "collective_name", "in_msg_nelems", "out_msg_nelems", "msg_dtype", "group_size",
    "process_rank", "in_split_size", "out_split_size", "index_correlation", "iteration", "end",
)  # fmt: skip
"""The columns of a frame, in HTA's order."""


def trace_frame(
    rank_trace: RankTrace, symbols: TraceSymbolTable, origin_ns: int, *, kinds: Sequence[EventKind] = RANGES
) -> pd.DataFrame:
    """Return a rank's events that have a duration, in file order and with HTA's columns; row labels are `index`.

    Times are in microseconds since `origin_ns`: integers if all of them are whole microseconds, and otherwise
    fractions that are exact to the nanosecond. `end` is `ts + dur`. `stream` is -1 on the host. `index_correlation`
    links device work to its launch call, and a launch call to the first device event that it launched; -1 if there is
    none. `iteration` is the step, or -1 outside of steps.
    """
    columns = _event_columns(rank_trace, symbols, origin_ns, kinds)  # frees the events before reading the rest
    columns |= _side_columns(rank_trace, pl.Series("event_index", columns["index"], dtype=pl.UInt32))
    frame = pd.DataFrame({name: _column(columns[name]) for name in COLUMNS}, copy=False)
    return frame.set_axis(pd.Index(columns["index"]), axis="index")


def _event_columns(
    rank_trace: RankTrace, symbols: TraceSymbolTable, origin_ns: int, kinds: Sequence[EventKind]
) -> dict[str, Any]:
    events = _events(rank_trace, kinds)
    return {
        "index": events["event_index"].to_numpy().astype(np.int64),
        **_names(rank_trace, events, symbols),
        **_tracks(rank_trace, events),
        **_times(events, origin_ns),
        **{name: events[name].fill_null(-1).to_numpy() for name in _LINKS},
        "iteration": events["step"].fill_null(-1).to_numpy(),
        "index_correlation": partners(rank_trace, events["event_index"].to_numpy()),
    }


def _column(values: np.ndarray[Any, Any]) -> pd.Series:
    """Return a column without copying it and without inferring the types of objects, which would take memory and time."""
    column: pd.Series = pd.Series(values, dtype=values.dtype, copy=False)
    return column


def symbol_table(trace: Trace) -> TraceSymbolTable:
    """Return the table of all names and categories of a job, in alphabetical order."""
    texts = {text for of_rank in trace.map(_texts_of_rank).values() for text in of_rank}
    table = TraceSymbolTable()
    table.add_symbols(sorted(texts))
    return table


def _texts_of_rank(rank_trace: RankTrace) -> list[str]:
    events = listed_events(rank_trace, ["name", "category"])
    ids = pl.concat([events["name"], events["category"]]).unique()
    return rank_trace.texts(ids).to_list()


def _events(rank_trace: RankTrace, kinds: Sequence[EventKind]) -> pl.DataFrame:
    """Return the events that HTA lists, with their steps; the stream of host events is null.

    The result is not cached, because the cached frame contains the same data.
    """
    on_device = pl.col("kind").is_in([kind.value for kind in STREAM_KINDS])
    events = listed_events(rank_trace, _STORED, kinds)
    steps = step_of_event(rank_trace)
    rows = rank_trace.table("events", ["event_index"])["event_index"].search_sorted(events["event_index"])
    return events.with_columns(pl.when(on_device).then("stream").alias("stream"), steps.gather(rows))


def _names(rank_trace: RankTrace, events: pl.DataFrame, symbols: TraceSymbolTable) -> dict[str, Any]:
    numbers = symbols.get_sym_index()
    return {
        column: _translated(events[source], rank_trace, numbers)
        for column, source in (("cat", "category"), ("name", "name"))
    }


def _translated(ids: pl.Series, rank_trace: RankTrace, numbers: dict[str, int]) -> np.ndarray[Any, Any]:
    """Convert a rank's string ids to the job's symbol ids, looking up each distinct id once."""
    distinct = ids.unique()
    known = [numbers.get(text, -1) for text in rank_trace.texts(distinct)]
    return ids.replace_strict(distinct, known, return_dtype=pl.Int64).to_numpy()


def _tracks(rank_trace: RankTrace, events: pl.DataFrame) -> dict[str, Any]:
    tracks = rank_trace.table("tracks")
    rows = events["track_id"].to_numpy()
    return {
        column: _numbers_or_texts(tracks[f"{name}_id"], rank_trace.texts(tracks[f"{name}_text"]))[rows]
        for column, name in (("pid", "process"), ("tid", "thread"))
    }


def _numbers_or_texts(numbers: pl.Series, texts: pl.Series) -> np.ndarray[Any, Any]:
    if not numbers.null_count():
        return numbers.to_numpy()
    pairs = zip(numbers.to_list(), texts.to_list(), strict=True)
    return np.array([text if number is None else number for number, text in pairs], dtype=object)


def _times(events: pl.DataFrame, origin_ns: int) -> dict[str, Any]:
    starts = events["start_ns"].to_numpy() - origin_ns
    durations = events["duration_ns"].to_numpy()
    times = {"ts": starts, "dur": durations, "end": starts + durations}
    if any((values % 1_000).any() for values in times.values()):
        return {name: values / 1_000 for name, values in times.items()}
    return {name: values // 1_000 for name, values in times.items()}


def partners(rank_trace: RankTrace, indexes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return `index_correlation` of these events; see `trace_frame`."""
    pairs = launches(rank_trace).drop_nulls("launch_index").sort("event_index", descending=True)
    work, calls = (column.to_numpy() for column in (pairs["event_index"], pairs["launch_index"]))
    size = 1 + max(int(rows.max(initial=0)) for rows in (work, calls, indexes))
    partner: npt.NDArray[np.int64] = np.full(size, -1, np.int64)
    # If a call launched several events, its first event is assigned last, and stays.
    partner[calls] = work
    partner[work] = calls
    partners: npt.NDArray[np.int64] = partner[indexes]
    return partners


def _side_columns(rank_trace: RankTrace, event_indexes: pl.Series) -> dict[str, Any]:
    return {
        new: values
        for source in _SIDE_TABLES
        for new, values in _columns_of(rank_trace, source, event_indexes.to_frame()).items()
    }


def _columns_of(rank_trace: RankTrace, source: _Source, rows: pl.DataFrame) -> dict[str, Any]:
    table = rank_trace.table(source.table, ["event_index", *source.columns])
    indexes = table["event_index"].to_numpy()
    distinct = table if (indexes[1:] > indexes[:-1]).all() else table.unique("event_index")
    joined = rows.join(distinct, on="event_index", how="left", maintain_order="left")
    if not isinstance(source.missing, str):
        return {new: joined[old].fill_null(source.missing).to_numpy() for old, new in source.columns.items()}
    decode = json.loads if source.table in _JSON_TABLES else str
    return {
        new: _texts(rank_trace, joined[old], decode=decode, missing=source.missing)
        for old, new in source.columns.items()
    }


def _texts(rank_trace: RankTrace, ids: pl.Series, *, decode: Callable[[str], object], missing: str) -> Any:  # noqa: ANN401
    """Decode string ids; equal values share one object, so millions of rows need little memory."""
    distinct = ids.drop_nulls().unique().sort()
    values = np.empty(len(distinct) + 1, dtype=object)
    values[:] = [*map(decode, rank_trace.texts(distinct).to_list()), missing]
    positions = np.searchsorted(distinct.to_numpy(), ids.fill_null(0).to_numpy())
    return values[np.where(ids.is_null().to_numpy(), len(distinct), positions)]
