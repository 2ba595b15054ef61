"""The `pid` and `tid` of events, as recorded in the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace


def process_and_thread(rank_trace: RankTrace, work_index: pl.Series) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the pid and the tid of device events, each as integers, or as Python objects if any value is text."""
    rows = _track_of_event(rank_trace)[work_index.to_numpy()]
    table = rank_trace.table("tracks", ["process_id", "process_text", "thread_id", "thread_text"])
    of_work = np.flatnonzero(np.bincount(rows))
    used, position = table[of_work], np.zeros(len(table), np.intp)
    position[of_work] = np.arange(len(of_work))
    positions = position[rows]
    process = _numbers_or_texts(rank_trace, used["process_id"], used["process_text"])
    thread = _numbers_or_texts(rank_trace, used["thread_id"], used["thread_text"])
    return process[positions], thread[positions]


@derived
def _track_of_event(rank_trace: RankTrace) -> npt.NDArray[np.uint32]:
    """Return, for each event, its row number in `tracks` if the event is device work, else 0."""
    work = rank_trace.events_of(DEVICE_WORK_KINDS, ["event_index", "track_id"])
    indexes = work["event_index"].to_numpy()
    tracks = np.zeros(int(indexes.max(initial=0)) + 1, np.uint32)
    tracks[indexes] = work["track_id"].to_numpy()
    return tracks


def _numbers_or_texts(rank_trace: RankTrace, numbers: pl.Series, text_ids: pl.Series) -> npt.NDArray[Any]:
    """Return integers, or Python objects if any value is text."""
    pairs = zip(numbers.to_list(), rank_trace.texts(text_ids).to_list(), strict=True)
    values = [text if number is None else number for number, text in pairs]
    return np.array(values, dtype=np.int64 if all(isinstance(value, int) for value in values) else object)
