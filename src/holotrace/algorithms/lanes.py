"""Assign intervals to lanes so that no interval is drawn over another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MOST_ROUNDS = 512
"""If intervals overlap without being nested, at most this many are drawn one below the other; others are omitted."""

NOT_DRAWN = -1

_Rows = npt.NDArray[np.int64]


def lanes(group: npt.NDArray[np.integer], start: _Rows, end: _Rows) -> tuple[_Rows, npt.NDArray[np.int32]]:
    """Assign each interval to a lane of its group so that intervals in the same lane do not overlap.

    A nested interval is one lane below the innermost interval around it; if two intervals are equal, the earlier row is
    the outer one. The number of lanes of a group is the largest number of its intervals that are open at the same time.
    An empty interval is treated as one nanosecond long.

    Returns:
        order  the intervals sorted by group, start and length (longest first)
        lane   the lane of each interval in `order`; `NOT_DRAWN` if no lane is left, because more than `MOST_ROUNDS`
               intervals overlap without being nested

    An interval's lane is the number of intervals that are already open when it begins; two sorts find all lanes. If
    an interval begins inside another interval and ends after it, this method can assign overlapping intervals to the
    same lane. In a busy period with such overlaps, the lanes are filled one after the other instead.
    """
    order = _order(group, start, end)
    group, start, end = group[order], start[order], np.maximum(end, start + 1)[order]
    if not len(order):
        return order, np.zeros(0, np.int32)
    starts, ends = _times_in_a_row(group, start, end)
    lane = (np.arange(len(order)) - np.searchsorted(np.sort(ends), starts, side="right")).astype(np.int32)
    crowded = _in_crowded_places(lane, starts, ends)
    lane[crowded] = _filled(starts[crowded], ends[crowded])
    return order, lane


def in_few_bits(numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Return non-negative numbers as 16-bit integers, which NumPy sorts fast (radix sort), if all numbers fit."""
    return numbers.astype(np.uint16) if numbers.max(initial=0) < 1 << 16 else numbers


def _order(group: npt.NDArray[np.integer], start: _Rows, end: _Rows) -> _Rows:
    """Sort by group, start and length; this is three times as fast if group and start fit into one 64-bit number."""
    if not len(start):
        return np.zeros(0, np.int64)
    span = int(start.max()) - int(start.min()) + 1
    if span.bit_length() + int(group.max()).bit_length() > 62:  # noqa: PLR2004 -- bits of an int64
        return np.asarray(np.lexsort((-end, start, group)))
    packed = (group.astype(np.int64) << span.bit_length()) | (start - start.min())
    order = np.argsort(packed)
    packed = packed[order]
    same = np.flatnonzero(packed[1:] == packed[:-1])
    tied = np.unique(np.concatenate([same, same + 1]))
    rows = order[tied]
    order[tied] = rows[np.lexsort((rows, -end[rows], packed[tied]))]
    return order


def _times_in_a_row(group: npt.NDArray[np.integer], start: _Rows, end: _Rows) -> tuple[_Rows, _Rows]:
    """Shift the times of each group so that they come after all times of the previous group."""
    first = np.flatnonzero(np.diff(group, prepend=group[:1] - 1))
    number = np.zeros(len(group), np.int64)
    number[first] = 1
    number = np.cumsum(number) - 1
    earliest, latest = start[first], np.maximum.reduceat(end, first)
    offset = np.concatenate([[0], np.cumsum(latest - earliest)[:-1]]) - earliest
    return start + offset[number], end + offset[number]


def _in_crowded_places(lane: npt.NDArray[np.int32], start: _Rows, end: _Rows) -> _Rows:
    """Find the busy periods in which intervals of the same lane overlap; return the rows of all their intervals."""
    by_lane = np.argsort(in_few_bits(lane), kind="stable")
    same = lane[by_lane][1:] == lane[by_lane][:-1]
    overlapping: _Rows = by_lane[1:][same & (end[by_lane][:-1] > start[by_lane][1:])]
    if not len(overlapping):
        return overlapping
    place = np.cumsum(lane == 0)
    is_crowded = np.zeros(int(place[-1]) + 1, np.bool_)
    is_crowded[place[overlapping]] = True
    return np.flatnonzero(is_crowded[place])


def _filled(start: _Rows, end: _Rows) -> npt.NDArray[np.int32]:
    """Fill one lane after the other: add the first remaining interval, then each next one that does not overlap."""
    lane = np.full(len(start), NOT_DRAWN, np.int32)
    left = np.arange(len(start))
    for number in range(MOST_ROUNDS):
        if not len(left):
            break
        following = np.searchsorted(start[left], end[left], side="left").tolist()
        chosen, at = [], 0
        while at < len(following):  # each interval is chosen once, so all rounds together take n iterations
            chosen.append(at)
            at = following[at]
        lane[left[chosen]] = number
        left = np.delete(left, chosen)
    return lane
