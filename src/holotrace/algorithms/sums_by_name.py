"""Counts and sums of what has the same kind and name; native code, as a large trace has millions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace import _native

_KEYS_AND_VALUE = ("kind", "name", "duration_ns")


def sums_by_name(events: pl.DataFrame, place: npt.NDArray[np.int64], is_marked: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """Count events and sum their durations by kind and name, over all of them and over those at marked places.

    Args:
        events: kind, name, duration_ns, as in `holotrace.schema`; durations below 0 count as 0.
        place: where each event belongs, -1 for nowhere: a step, say.
        is_marked: one for each place.

    Returns:
        One row for each kind and name, in the order in which they first occur:

        kind          uint8
        name          uint32  string id
        count         int64   events
        total_ns        int64   their durations
        marked_count  int64   events at marked places
        marked_ns     int64   their durations
    """
    kind, name, duration_ns = (np.ascontiguousarray(events[each].to_numpy()) for each in _KEYS_AND_VALUE)
    found = _native.sums_by_name(kind, name, duration_ns, place, np.ascontiguousarray(is_marked))
    names = ("kind", "name", "count", "total_ns", "marked_count", "marked_ns")
    return pl.DataFrame(dict(zip(names, found, strict=True)))
