"""How much launched work waits before each stream, as HTA shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import polars as pl

from hta.analyses.queue_length import queue_length
from hta.errors import InvalidOptionError, MissingDataError
from hta.facade.describe import described
from hta.facade.reasons import explained
from hta.facade.times import duration_ns, microseconds, origin_ns
from hta.facade.tracks import process_and_thread
from hta.store.trace import RankTrace, Trace

_BLOCKED = ("rank", "stream", "duration_at_max_queue_length", "relative_duration_at_max_queue_length")


def queue_length_time_series(trace: Trace, ranks: Iterable[int] | None) -> dict[int, pd.DataFrame]:
    """Return the frame of each rank that launches work; `ts` counts from the first event of the job."""
    chosen = trace.select(None if ranks is None else list(ranks))
    try:
        series = queue_length(chosen).series
    except MissingDataError:
        return {}
    origin = origin_ns(trace)
    tables = {rank: series.filter(pl.col("rank") == rank) for rank in chosen.ranks}
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
    return pd.DataFrame(rows, columns=list(_BLOCKED))


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
    return frame.iloc[np.argsort(frame["stream"].to_numpy(), kind="stable")]


def _full_times(frame: pd.DataFrame, max_queue_length: int) -> dict[int, float]:
    """Return {stream: µs with a full queue}; a length lasts until the next change of the same queue."""
    lasts = -frame.groupby(["pid", "stream"], sort=False)["ts"].diff(-1).fillna(0)
    is_full = frame["queue_length"] >= max_queue_length
    totals = lasts[is_full].groupby(frame["stream"][is_full]).sum()
    return {int(str(stream)): float(total) for stream, total in totals.items()}
