"""`segments` assigns each part of a thread's time to the innermost interval that covers it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.nested.segments import segments

intervals = st.lists(st.tuples(st.integers(0, 2), st.integers(-10, 15), st.integers(-1, 12)), max_size=14).map(
    lambda items: np.array([(group, start, start + length) for group, start, length in items], np.int64).reshape(-1, 3)
)


def owners(table) -> dict[tuple[int, int], int]:
    """Return the owner of each nanosecond of each group; check that no two segments cover the same nanosecond."""
    parts = segments(*(np.ascontiguousarray(column) for column in table.T))
    moments = [
        ((int(group), moment), int(owner))
        for group, start, end, owner in zip(*parts, strict=True)
        for moment in range(start, end)
    ]
    assert moments == sorted(moments, key=lambda item: item[0])
    assert len(dict(moments)) == len(moments)
    return dict(moments)


def covering(table, group: int, moment: int) -> list[int]:
    """Return the rows of the intervals that cover a nanosecond."""
    return [row for row, (other, start, end) in enumerate(table) if other == group and start <= moment < end]


def test_the_later_of_two_overlapping_intervals_owns_what_both_cover() -> None:
    """Of the intervals 0..10, 5..15 and 12..18, each owns the time from its start until the next one starts."""
    table = np.array([(0, 0, 10), (0, 5, 15), (0, 12, 18)])
    assert [owners(table)[0, moment] for moment in (0, 4, 5, 11, 12, 17)] == [0, 0, 1, 1, 2, 2]


@given(intervals)
def test_segments_cover_what_the_intervals_cover(table) -> None:
    """Each nanosecond that intervals cover is assigned to one of them; no other nanosecond is assigned."""
    owner = owners(table)
    expected = {(int(g), moment) for g, start, end in table for moment in range(start, end)}
    assert owner.keys() == expected
    assert all(row in covering(table, *moment) for moment, row in owner.items())


@given(intervals)
def test_the_innermost_of_nested_intervals_owns_the_time(table) -> None:
    """If no intervals cross, each nanosecond belongs to the shortest interval that contains it.

    If several intervals are equally short, it belongs to the last one.
    """
    kept: list[tuple[int, int, int]] = []
    for group, start, end in table.tolist():
        crosses = any(g == group and (s < start < e < end or start < s < end < e) for g, s, e in kept)
        kept.extend([] if crosses else [(group, start, end)])
    nested = np.array(kept, np.int64).reshape(-1, 3)
    for (group, moment), row in owners(nested).items():
        around = covering(nested, group, moment)
        assert row == min(around, key=lambda other: (nested[other, 2] - nested[other, 1], -other))
