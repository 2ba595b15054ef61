"""Reads events of some kinds, with their starts and ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_STORED = {"end_ns": ("start_ns", "duration_ns")}


def event_ranges(
    rank_trace: RankTrace, kinds: Iterable[EventKind], columns: Sequence[str], *, names: pl.Series | None = None
) -> pl.DataFrame:
    """Return the events of these kinds, in file order.

    `columns` may contain any column of `events`, and also `end_ns` (start_ns + duration_ns, at least start_ns). If `names`
    is given, return only events whose name is one of these string ids.
    """
    stored = dict.fromkeys(name for column in columns for name in _STORED.get(column, (column,)))
    events = rank_trace.events_of(kinds, list(stored), names=names)
    if "end_ns" not in columns:
        return events
    end_ns = events["start_ns"].to_numpy() + np.maximum(events["duration_ns"].to_numpy(), 0)
    return events.hstack([pl.Series("end_ns", end_ns)])[list(columns)]
