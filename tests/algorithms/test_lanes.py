"""`lanes` puts intervals into lanes in which no two intervals overlap."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms import lanes as module
from holotrace.algorithms.lanes import NOT_DRAWN, lanes

Interval = tuple[int, int, int]
INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=40)


def drawn(intervals: list[Interval]) -> tuple[list[Interval], list[int]]:
    """Return intervals (group, start, length) in drawing order, and the lane of each."""
    group, start, length = np.array(intervals, np.int64).reshape(-1, 3).T
    order, lane = lanes(group, start, start + length)
    return [intervals[row] for row in order], lane.tolist()


def most_open(intervals: list[Interval], group: int) -> int:
    """Return the largest number of intervals of a group that overlap at the same time."""
    mine = [(start, start + max(length, 1)) for own, start, length in intervals if own == group]
    return max((sum(start <= moment < end for start, end in mine) for moment, _ in mine), default=0)


def assert_none_is_covered(intervals: list[Interval], lane: list[int]) -> None:
    """Check that each interval of a lane begins after the previous one has ended."""
    free_from: dict[tuple[int, int], int] = {}
    for (group, start, length), number in zip(intervals, lane, strict=True):
        assert free_from.get((group, number), start) <= start
        free_from[group, number] = start + max(length, 1)


@given(INTERVALS)
def test_no_interval_covers_another_and_no_lane_is_wasted(intervals: list[Interval]) -> None:
    """Intervals in a lane are sorted and disjoint; there are no more lanes than simultaneous intervals."""
    ordered, lane = drawn(intervals)

    assert ordered == sorted(intervals, key=lambda interval: (interval[0], interval[1], -interval[2]))
    assert_none_is_covered(ordered, lane)
    for group in range(3):
        used = {number for (own, _, _), number in zip(ordered, lane, strict=True) if own == group}
        assert used == set(range(most_open(intervals, group)))


@given(INTERVALS)
def test_distant_times_are_sorted_the_same_way(intervals: list[Interval]) -> None:
    """An interval far in the past does not change the lanes of the other intervals.

    Such an interval makes the range of times so large that a group and a time no longer fit into one 64-bit sort key.
    """
    stray = [(0, -(2**61), 5), *((group, start + 2**60, length) for group, start, length in intervals)]
    ordered, lane = drawn(intervals)

    later = [(group, start + 2**60, length) for group, start, length in ordered]
    assert drawn(stray) == ([stray[0], *later], [0, *lane])


def test_nested_intervals_get_lower_lanes() -> None:
    """A step, an operator in it and a call in the operator get lanes 0, 1 and 2; the next operator gets lane 1."""
    _, lane = drawn([(0, 0, 100), (0, 10, 50), (0, 20, 5), (0, 70, 10)])

    assert lane == [0, 1, 2, 1]


def test_a_chain_of_overlaps_takes_two_lanes() -> None:
    """If each kernel begins before the previous one has ended, the kernels alternate between two lanes."""
    _, lane = drawn([(0, at * 10, 12) for at in range(1_000)])

    assert lane == [0, 1] * 500


def test_overlaps_beyond_the_limit_are_not_drawn(monkeypatch) -> None:
    """With at most two lanes, 13..30 is not drawn, because 12..30 and 5..15 occupy both."""
    monkeypatch.setattr(module, "MOST_ROUNDS", 2)
    _, lane = drawn([(0, 0, 10), (0, 5, 10), (0, 12, 18), (0, 13, 17)])

    assert lane == [0, 1, 0, NOT_DRAWN]
