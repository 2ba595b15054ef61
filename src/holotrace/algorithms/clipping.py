"""Clips sorted intervals to windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_Rows = npt.NDArray[np.int64]


class Clipped(NamedTuple):
    """The parts of intervals that lie inside windows, sorted by window and, within each window, by interval.

    window    row of the window
    interval  row of the interval
    start, end
    """

    window: _Rows
    interval: _Rows
    start: _Rows
    end: _Rows


def clipped(start: _Rows, end: _Rows, begin: _Rows, finish: _Rows) -> Clipped:
    """Return the part of each interval in each window `[begin, finish)`.

    Args:
        start: starts of the intervals, which are sorted and do not overlap.
        end: ends of the intervals.
        begin: starts of the windows, which may overlap.
        finish: ends of the windows.

    >>> parts = clipped(np.array([0, 5, 9]), np.array([4, 9, 12]), np.array([2]), np.array([10]))
    >>> parts.interval.tolist(), parts.start.tolist(), parts.end.tolist()
    ([0, 1, 2], [2, 5, 9], [4, 9, 10])
    """
    first = np.searchsorted(end, begin, side="right")
    last = np.searchsorted(start, finish, side="left")
    count = np.maximum(last - first, 0)
    window = np.repeat(np.arange(len(begin)), count)
    interval = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    from_ns, to_ns = np.maximum(start[interval], begin[window]), np.minimum(end[interval], finish[window])
    lasting = to_ns > from_ns
    return Clipped(*(column[lasting] for column in (window, interval, from_ns, to_ns)))
