"""Counts events and sums durations by kind and name, in native code, because a large trace has millions of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace import _native

_KEYS_AND_VALUE = ("kind", "name", "duration_ns")


def sums_by_name(events: pl.DataFrame, place: npt.NDArray[np.int64], is_marked: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """Count events and sum their durations by kind and name: once for all events, and once for those in marked windows.

    Args:
        events: kind, name, duration_ns, as in `holotrace.schema`; negative durations are treated as 0.
        place: for each event, the index of its window in `is_marked`, such as the number of its step, counted from 0;
            -1 if the event is in no window.
        is_marked: whether each window, such as a step, is marked.

    Returns:
        One row for each kind and name, in order of first occurrence:

        kind          uint8
        name          uint32  string id
        count         int64   events
        total_ns      int64   summed durations of all events
        marked_count  int64   events in marked windows
        marked_ns     int64   summed durations of these events
    """
    kind, name, duration_ns = (np.ascontiguousarray(events[column].to_numpy()) for column in _KEYS_AND_VALUE)
    sums = _native.sums_by_name(kind, name, duration_ns, place, np.ascontiguousarray(is_marked))
    names = ("kind", "name", "count", "total_ns", "marked_count", "marked_ns")
    return pl.DataFrame(dict(zip(names, sums, strict=True)))
