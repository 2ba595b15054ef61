"""Which interval lies inside which."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hta.algorithms.nesting import NO_PARENT, depths, furthest_above, nearest_above, nesting
from oracles import nested

INTERVALS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 6)), max_size=14)


def of(*intervals):
    """Nest (group, start, length) triples."""
    group, start, length = np.array(intervals, np.int64).reshape(-1, 3).T
    return nesting(group, start, start + length)


@given(INTERVALS)
def test_nesting_is_what_the_definition_says(intervals):
    """Parent, depth and overlap of every interval equal those of an oracle that compares each pair."""
    found = of(*intervals)

    expected = nested(intervals)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected


@given(INTERVALS)
def test_a_parent_contains_its_children(intervals):
    """Every parent is of the same group, begins no later and ends no earlier."""
    for (group, start, length), parent in zip(intervals, of(*intervals).parent.tolist(), strict=True):
        if parent != NO_PARENT:
            around = intervals[parent]
            assert around[0] == group
            assert around[1] <= start
            assert start + length <= around[1] + around[2]


def test_an_interval_that_outlives_the_one_it_began_in_is_its_sibling():
    """0..20 around 2..10; 8..15 begins in 2..10 and ends later, so both have the same parent."""
    found = of((0, 0, 20), (0, 2, 8), (0, 8, 7), (0, 9, 3))

    assert found.parent.tolist() == [NO_PARENT, 0, 0, 2]
    assert found.depth.tolist() == [0, 1, 1, 2]
    assert found.is_overlapping.tolist() == [False, False, True, False]


def test_of_equal_intervals_the_earlier_row_is_outside():
    """Two of 0..5: the second lies in the first."""
    assert of((0, 0, 5), (0, 0, 5)).parent.tolist() == [NO_PARENT, 0]


def test_no_interval_at_all():
    """Nothing lies in nothing."""
    assert [column.tolist() for column in of()] == [[], [], []]


def test_climbing_stops_at_the_wanted_rows():
    """A chain 0 > 1 > 2 > 3 in which 0 and 2 are wanted: nearest above 3 is 2, furthest is 0; above 0 is nothing."""
    parent, wanted = np.array([NO_PARENT, 0, 1, 2]), np.array([True, False, True, False])
    rows = np.array([3, 2, 1, 0])

    assert nearest_above(parent, wanted, rows).tolist() == [2, 0, 0, NO_PARENT]
    assert furthest_above(parent, wanted, rows).tolist() == [0, 0, 0, NO_PARENT]
    assert depths(parent).tolist() == [0, 1, 2, 3]
