"""Queue lengths of streams with HTA's columns."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from holotrace.analyses.queue_length.compute import queue_series
from holotrace.enrich.job.job_time import duration_ns
from holotrace.errors import InvalidOptionError
from holotrace.store.trace import RankTrace, Trace
from hta.facade.results.describe import described
from hta.facade.results.reasons import explained
from hta.facade.results.times import microseconds
from hta.facade.results.tracks import process_and_thread

_QUEUE = ["pid", "stream"]
_BLOCKED = {
    "rank": "int64",
    "stream": "int64",
    "duration_at_max_queue_length": "float64",
    "relative_duration_at_max_queue_length": "float64",
}


def queue_length_time_series(trace: Trace, ranks: Iterable[int] | None, origin_ns: int) -> dict[int, pd.DataFrame]:
    """Return a frame for each rank that has device work with a known launch; `ts` counts from `origin_ns`."""
    chosen = trace.select(None if ranks is None else list(ranks))
    tables = chosen.map(queue_series)
    return {rank: _frame(chosen.ranks[rank], table, origin_ns) for rank, table in tables.items() if len(table)}


def queue_length_summary(series: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Return statistics of each stream's queue length, giving every row of `series` the same weight."""
    return explained(described(series, by="stream", value="queue_length"), "no rank has GPU work with a known launch")


def time_blocked(trace: Trace, series: Mapping[int, pd.DataFrame], max_queue_length: int) -> pd.DataFrame:
    """Return how long each stream's queue was full; omits streams whose queue was never full."""
    if max_queue_length < 1:
        message = f"max_queue_length={max_queue_length} is below 1"
        raise InvalidOptionError(message)
    ranks = trace.select(list(series)).ranks if series else {}
    rows = [
        (rank, stream, full, 1_000 * full / duration)
        for rank, frame in series.items()
        for duration in [duration_ns(ranks[rank])]
        for stream, full in _full_times(frame, max_queue_length).items()
    ]
    columns = zip(_BLOCKED.items(), zip(*rows, strict=True) if rows else [()] * len(_BLOCKED), strict=True)
    frame = pd.DataFrame({name: np.array(values, kind) for (name, kind), values in columns})
    return explained(frame, f"no queue reached a length of {max_queue_length:,} launches")


def _frame(rank_trace: RankTrace, table: pl.DataFrame, origin: int) -> pd.DataFrame:
    process, thread = process_and_thread(rank_trace, table["work_index"])
    frame = pd.DataFrame(
        {
            "ts": microseconds(table["time_ns"] - origin),
            "pid": process,
            "tid": thread,
            "stream": np.array(table["stream"]),  # a copy, because the table is cached
            "queue_length": np.array(table["queue_length"]),
        },
        index=pd.Index(table["event_index"].to_numpy().astype(np.int64), name="index"),
        copy=False,
    )
    streams = frame["stream"].to_numpy()
    is_sorted = bool((streams[1:] >= streams[:-1]).all())  # always true if the rank uses only one device
    return frame if is_sorted else frame.iloc[np.argsort(streams, kind="stable")]


def _full_times(frame: pd.DataFrame, max_queue_length: int) -> dict[int, float]:
    """Return {stream: µs with a full queue}; a row's queue length applies until the next row of the same queue."""
    keys = [frame[column].to_numpy() for column in _QUEUE]
    lasts = _last_of_queues(keys)
    queues = list(zip(*(key[lasts].tolist() for key in keys), strict=True))
    if len(set(queues)) < len(queues):  # rows of different queues are interleaved
        together = np.argsort(frame.groupby(_QUEUE, sort=False).ngroup().to_numpy(), kind="stable")
        return _full_times(frame.iloc[together], max_queue_length)
    if not queues:
        return {}
    times, is_full = frame["ts"].to_numpy(), frame["queue_length"].to_numpy() >= max_queue_length
    lasting = np.zeros_like(times)
    np.subtract(times[1:], times[:-1], out=lasting[:-1])
    lasting[lasts] = 0
    lasting *= is_full
    first = np.append(0, lasts[:-1] + 1)
    sums, was_full = np.add.reduceat(lasting, first), np.logical_or.reduceat(is_full, first)
    totals: Counter[int] = Counter()
    for (_, stream), total in itertools.compress(zip(queues, sums.tolist(), strict=True), was_full.tolist()):
        totals[stream] += total
    return {stream: float(totals[stream]) for stream in sorted(totals)}


def _last_of_queues(keys: list[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    is_last = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.append(np.flatnonzero(is_last), [len(keys[0]) - 1]) if len(keys[0]) else np.empty(0, np.int64)
