"""How much launched work waits before each stream, as HTA shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl

from hta.analyses.queue_length import queue_series
from hta.enrich.job_time import duration_ns, origin_ns
from hta.enrich.kernel_kind import with_current_rules
from hta.errors import InvalidOptionError
from hta.facade.describe import described
from hta.facade.reasons import explained
from hta.facade.times import microseconds
from hta.facade.tracks import process_and_thread
from hta.store.trace import RankTrace, Trace

_QUEUE = ["pid", "stream"]
_BLOCKED = {
    "rank": "int64",
    "stream": "int64",
    "duration_at_max_queue_length": "float64",
    "relative_duration_at_max_queue_length": "float64",
}


def queue_length_time_series(trace: Trace, ranks: Iterable[int] | None) -> dict[int, pd.DataFrame]:
    """Return the frame of each rank that launches work; `ts` counts from the first event of the job."""
    chosen = trace.select(None if ranks is None else list(ranks))
    tables = chosen.map(with_current_rules(queue_series))
    origin = origin_ns(trace)
    return {rank: _frame(chosen.ranks[rank], table, origin) for rank, table in tables.items() if len(table)}


def queue_length_summary(series: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Return the statistics of the change points of each rank and stream; the frames stay as they are."""
    return explained(described(series, by="stream", value="queue_length"), "no rank launches work for a GPU")


def time_blocked(trace: Trace, series: Mapping[int, pd.DataFrame], max_queue_length: int) -> pd.DataFrame:
    """Return how long the queue of each stream was full, for the streams where it was."""
    if max_queue_length < 1:
        message = f"max_queue_length={max_queue_length}: a full queue holds at least 1 launch"
        raise InvalidOptionError(message)
    ranks = trace.select(list(series)).ranks if series else {}
    rows = [
        (rank, stream, full, 1_000 * full / duration)
        for rank, frame in series.items()
        for duration in [duration_ns(ranks[rank])]
        for stream, full in _full_times(frame, max_queue_length).items()
    ]
    frame = pd.DataFrame(rows, columns=list(_BLOCKED)).astype(_BLOCKED)
    return explained(frame, f"no queue ever held {max_queue_length:,} launches")


def _frame(rank_trace: RankTrace, table: pl.DataFrame, origin: int) -> pd.DataFrame:
    process, thread = process_and_thread(rank_trace, table["work_index"])
    frame = pd.DataFrame(
        {
            "ts": microseconds(table["time_ns"] - origin),
            "pid": process,
            "tid": thread,
            "stream": table["stream"].to_numpy(),
            "queue_length": table["queue_length"].to_numpy(),
        },
        index=pd.Index(table["event_index"].to_numpy().astype(np.int64), name="index"),
    )
    streams = frame["stream"].to_numpy()
    is_sorted = bool((np.diff(streams) >= 0).all())  # as it is where the rank has one device
    return frame if is_sorted else frame.iloc[np.argsort(streams, kind="stable")]


def _full_times(frame: pd.DataFrame, max_queue_length: int) -> dict[int, float]:
    """Return {stream: µs with a full queue}; a length lasts until the next change of the same queue."""
    is_last = _is_last_of_queue(frame)
    if frame.loc[is_last, _QUEUE].duplicated().any():  # the rows of two queues alternate
        together = np.argsort(frame.groupby(_QUEUE, sort=False).ngroup().to_numpy(), kind="stable")
        return _full_times(frame.iloc[together], max_queue_length)
    times = frame["ts"].to_numpy()
    lasts = np.where(is_last, 0, np.diff(times, append=times[-1:]))
    is_full = frame["queue_length"].to_numpy() >= max_queue_length
    totals = pd.Series(lasts[is_full]).groupby(frame["stream"].to_numpy()[is_full]).sum()
    return {int(str(stream)): float(total) for stream, total in totals.items()}


def _is_last_of_queue(frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Say of each row whether the next one is of another queue."""
    is_last = np.ones(len(frame), np.bool_)
    keys = [frame[column].to_numpy() for column in _QUEUE]
    is_last[:-1] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return is_last
