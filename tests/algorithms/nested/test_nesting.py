"""`nesting` returns the parent and depth of each interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.nested.nesting import (
    NO_PARENT,
    depths,
    furthest_above,
    itself_or_above,
    nearest_above,
    nesting,
    nesting_order,
    path_numbers,
    subtree_sums,
)
from oracles import nested

INTERVALS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 6)), max_size=14)


def of(*intervals):
    """Nest intervals given as (group, start, length)."""
    group, start, length = np.array(intervals, np.int64).reshape(-1, 3).T
    return nesting(group, start, start + length)


@given(INTERVALS)
def test_nesting_agrees_with_its_definition(intervals):
    """Parent, depth and overlap of every interval equal those of an oracle that compares all pairs."""
    result = of(*intervals)

    expected = nested(intervals)
    assert list(zip(*(column.tolist() for column in result), strict=True)) == expected


@given(INTERVALS)
def test_a_parent_contains_its_children(intervals):
    """A parent is in the same group as its child, begins no later and ends no earlier."""
    for (group, start, length), parent in zip(intervals, of(*intervals).parent.tolist(), strict=True):
        if parent != NO_PARENT:
            around = intervals[parent]
            assert around[0] == group
            assert around[1] <= start
            assert start + length <= around[1] + around[2]


def test_an_interval_that_outlives_the_one_it_began_in_is_its_sibling():
    """Interval 8..15 begins inside 2..10 but ends after it, so both are children of 0..20."""
    result = of((0, 0, 20), (0, 2, 8), (0, 8, 7), (0, 9, 3))

    assert result.parent.tolist() == [NO_PARENT, 0, 0, 2]
    assert result.depth.tolist() == [0, 1, 1, 2]
    assert result.is_overlapping.tolist() == [False, False, True, False]


def test_of_equal_intervals_the_earlier_row_is_the_outer_one():
    """Of two intervals 0..5, the second is nested in the first."""
    assert of((0, 0, 5), (0, 0, 5)).parent.tolist() == [NO_PARENT, 0]


def test_columns_have_equal_lengths_and_parents_exist():
    """A ValueError is raised if there are two starts but only one end, or if a parent row does not exist."""
    with pytest.raises(ValueError, match="differ in length"):
        nesting(np.array([0, 0]), np.array([1, 2]), np.array([3]))
    with pytest.raises(ValueError, match="row 7"):
        depths(np.array([7, NO_PARENT]))


@given(INTERVALS)
def test_nesting_order_puts_outer_intervals_first(intervals):
    """`nesting_order` sorts by group, start, descending length and row."""
    group, start, length = np.array(intervals, np.int64).reshape(-1, 3).T
    order = nesting_order(group, start, start + length).tolist()
    assert order == sorted(range(len(intervals)), key=lambda row: (group[row], start[row], -length[row], row))


def test_strided_arrays_nest_like_contiguous_ones():
    """Strided arrays give the same parents as contiguous copies, even if the group numbers are int16."""
    group, start, end = np.zeros(6, np.int16)[::2], np.arange(6)[::2], np.arange(20, 14, -1)[::2]
    assert nesting(group, start, end).parent.tolist() == [NO_PARENT, 0, 1]


def test_no_intervals_give_empty_columns():
    """Nesting no intervals returns three empty columns."""
    assert [column.tolist() for column in of()] == [[], [], []]


def test_climbing_stops_at_the_wanted_rows():
    """Rows 0 to 3 are nested in this order; of the wanted rows 0 and 2, row 2 is the innermost that contains row 3."""
    parent, wanted = np.array([NO_PARENT, 0, 1, 2]), np.array([True, False, True, False])
    rows = np.array([3, 2, 1, 0])

    assert nearest_above(parent, wanted, rows).tolist() == [2, 0, 0, NO_PARENT]
    assert furthest_above(parent, wanted, rows).tolist() == [0, 0, 0, NO_PARENT]
    assert depths(parent).tolist() == [0, 1, 2, 3]


@given(INTERVALS)
def test_sums_of_subtrees_count_each_row_for_all_its_ancestors(intervals):
    """The sum of a row includes the values of its descendants, whether parents come before or after children."""
    parent = of(*intervals).parent
    values = np.arange(1, len(parent) + 1)

    expected = values.copy()
    for row, value in enumerate(values):
        at = parent[row]
        while at != NO_PARENT:
            expected[at] += value
            at = parent[at]
    assert subtree_sums(parent, values).tolist() == expected.tolist()


@given(INTERVALS, st.data())
def test_paths_are_equal_if_the_keys_of_all_ancestors_are(intervals, data):
    """Two rows have the same path number if and only if they and all their ancestors have equal keys."""
    parent = of(*intervals).parent
    keys = [data.draw(st.integers(0, 2)) for _ in intervals]

    numbers = path_numbers(parent, np.array(keys, np.int64)).tolist()
    paths = []
    for row, _ in enumerate(keys):
        path, at = [], row
        while at != NO_PARENT:
            path.append(keys[at])
            at = int(parent[at])
        paths.append(tuple(path))
    by_number = dict(zip(numbers, paths, strict=True))
    assert [by_number[number] for number in numbers] == paths
    assert len(set(numbers)) == len(set(paths))


def test_a_wanted_row_counts_before_its_ancestors():
    """Row 0 contains 1, and 1 contains 2; the wanted rows 0 and 1 map to themselves, and row 2 maps to row 1."""
    parent = of((0, 0, 20), (0, 2, 8), (0, 3, 2)).parent
    wanted = np.array([True, True, False])

    assert itself_or_above(parent, wanted, np.array([0, 1, 2, NO_PARENT])).tolist() == [0, 1, 1, NO_PARENT]
