"""Sum, at each time, the weights of the intervals that contain it, and integrate the sum over time."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.intervals import Intervals

_Floats = npt.NDArray[np.float64]


def weight_before(
    intervals: Intervals,
    weights: _Floats,
    moments: npt.NDArray[np.int64],
    *,
    most: float = math.inf,
    outside: Intervals | None = None,
) -> _Floats:
    """Sum the weights of the running intervals; return the integral of this sum from the first start to each time.

    Args:
        intervals: half-open, in any order, overlapping or not.
        weights: the weight of each interval, finite and at least 0.
        moments: the times at which the returned integrals end.
        most: upper limit of the sum; a larger sum is replaced by this value.
        outside: intervals in which the sum is treated as 0, in any order.

    Returns:
        The integral up to each time, in weight times ns. The difference between the values at two times is the
        integral between these times.
    """
    starts, ends = intervals
    if not len(starts):
        return np.zeros(len(moments))
    not_counted = np.empty((2, 0), np.int64) if outside is None else np.stack(outside)
    times = np.concatenate([starts, ends, *not_counted])
    order = np.argsort(times, kind="stable")
    first = times[order[0]]
    since = (times[order] - first).astype(np.float64)
    without = np.zeros(not_counted.size)
    running = np.cumsum(np.concatenate([weights, -weights, without])[order]).clip(0.0, most)
    running[_changes_of_last(len(starts), not_counted.shape[1])[order].cumsum() > 0] = 0.0
    integral = np.concatenate([[0.0], np.cumsum(running[:-1] * np.diff(since))])
    found: _Floats = np.interp((moments - first).astype(np.float64), since, integral)
    return found


def _changes_of_last(others: int, counted: int) -> npt.NDArray[np.int64]:
    """Return `2 * others` zeros, then 1 for each of `counted` starts, then -1 for each of `counted` ends."""
    return np.repeat(np.array([0, 1, -1]), [2 * others, counted, counted])
