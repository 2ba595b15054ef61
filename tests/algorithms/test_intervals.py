"""Functions on half-open intervals give the same results as operations on sets of whole nanoseconds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.intervals import (
    Intervals,
    concatenated,
    covered_before,
    covered_length,
    difference,
    distinct_times,
    gap_begins,
    gaps,
    holding,
    intersection,
    intersection_length,
    overlaps,
    states,
    union,
)
from oracles import covered, gap_lengths, holes, state_lengths

Pairs = list[tuple[int, int]]

pairs_of_moments = st.lists(st.tuples(st.integers(-40, 40), st.integers(-3, 15)), max_size=25).map(
    lambda items: [(start, start + length) for start, length in items]
)


def arrays(pairs: Pairs) -> Intervals:
    """Turn pairs into a start and an end array."""
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def pairs_in(intervals: Intervals) -> Pairs:
    """Turn a start and an end array into pairs."""
    starts, ends = intervals
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


@given(pairs_of_moments)
def test_union_covers_the_same_nanoseconds(pairs: Pairs) -> None:
    """Merging does not change which whole nanoseconds are covered."""
    assert covered(pairs_in(union(*arrays(pairs)))) == covered(pairs)


@given(pairs_of_moments)
def test_union_is_disjoint_ordered_and_has_no_empty_interval(pairs: Pairs) -> None:
    """After `union`, at least one nanosecond separates any two intervals, because touching ones are merged."""
    merged = pairs_in(union(*arrays(pairs)))

    assert all(start < end for start, end in merged)
    assert all(end < start for (_, end), (start, _) in pairwise(merged))


@given(pairs_of_moments)
def test_union_of_a_union_is_itself(pairs: Pairs) -> None:
    """Merging intervals a second time changes nothing."""
    once = union(*arrays(pairs))

    assert pairs_in(union(*once)) == pairs_in(once)


@given(pairs_of_moments, pairs_of_moments)
def test_difference_and_intersection_divide_the_first_set(first: Pairs, second: Pairs) -> None:
    """Each nanosecond of the first set is in the intersection if the second set covers it, else in the difference."""
    with_second, without = intersection(arrays(first), arrays(second)), difference(arrays(first), arrays(second))

    assert covered(pairs_in(with_second)) == covered(first) & covered(second)
    assert covered(pairs_in(without)) == covered(first) - covered(second)


@given(pairs_of_moments, pairs_of_moments)
def test_each_overlap_lies_in_its_two_intervals(first: Pairs, second: Pairs) -> None:
    """The overlaps cover the nanoseconds in both sets; each overlap lies within the two intervals that it refers to."""
    left, right = union(*arrays(first)), union(*arrays(second))
    shared = overlaps(left, right)

    assert covered(pairs_in((shared.start_ns, shared.end_ns))) == covered(first) & covered(second)
    for (starts, ends), rows in ((left, shared.first), (right, shared.second)):
        assert (starts[rows] <= shared.start_ns).all()
        assert (shared.end_ns <= ends[rows]).all()


@given(pairs_of_moments, st.lists(st.integers(-50, 50)))
def test_a_time_belongs_to_the_interval_that_began_last(pairs: Pairs, moments: list[int]) -> None:
    """A time belongs to the interval that began last, or to none if that interval has ended."""
    rising = sorted(pairs, key=lambda pair: pair[0])
    rows = holding(arrays(rising), np.array(moments, np.int64)).tolist()

    last = [max((row for row, pair in enumerate(rising) if pair[0] <= moment), default=-1) for moment in moments]
    assert rows == [
        row if row >= 0 and moment < rising[row][1] else -1 for row, moment in zip(last, moments, strict=True)
    ]


def test_touching_intervals_join_and_empty_ones_vanish() -> None:
    """[0, 4) and [4, 6) become [0, 6); the empty [9, 9) and the reversed [8, 2) disappear."""
    assert pairs_in(union(*arrays([(4, 6), (9, 9), (0, 4), (8, 2)]))) == [(0, 6)]


def test_no_intervals_cover_nothing() -> None:
    """Without intervals, every function returns 0 or an empty array."""
    nothing = arrays([])

    assert pairs_in(union(*nothing)) == []
    assert covered_length(*nothing) == 0
    assert intersection_length(nothing, nothing) == 0
    assert pairs_in(gaps(*nothing)) == []
    assert gap_begins(*nothing, []).tolist() == []


@given(pairs_of_moments)
def test_covered_length_counts_each_nanosecond_once(pairs: Pairs) -> None:
    """The covered length is the number of covered whole nanoseconds."""
    assert covered_length(*arrays(pairs)) == len(covered(pairs))


@given(pairs_of_moments, pairs_of_moments)
def test_intersection_counts_what_both_cover(first: Pairs, second: Pairs) -> None:
    """The length of the intersection is the number of nanoseconds in both sets, in either order of the arguments."""
    expected = len(covered(first) & covered(second))

    assert intersection_length(arrays(first), arrays(second)) == expected
    assert intersection_length(arrays(second), arrays(first)) == expected


@given(pairs_of_moments)
def test_gaps_are_the_uncovered_nanoseconds(pairs: Pairs) -> None:
    """The gaps are exactly the uncovered nanoseconds between the first start and the last end."""
    assert covered(pairs_in(gaps(*arrays(pairs)))) == holes(pairs)


@given(st.lists(pairs_of_moments, max_size=4))
def test_a_gap_begins_at_the_latest_earlier_end_of_its_group(groups: list[Pairs]) -> None:
    """Gaps are found for each group separately, and an interval that ends inside a longer one starts no gap."""
    ordered = [sorted(group) for group in groups]
    rows = [pair for group in ordered for pair in group]
    group_starts = np.cumsum([0, *map(len, ordered)])[:-1]
    starts, ends = arrays(rows)

    lengths = starts - gap_begins(starts, ends, group_starts)

    assert lengths.tolist() == [length for group in ordered for length in gap_lengths(group)]


@given(st.lists(pairs_of_moments, max_size=4))
def test_states_split_the_time_between_first_start_and_last_end(classes: list[Pairs]) -> None:
    """Each nanosecond counts for exactly one combination of active classes, which may be the empty one."""
    expected = state_lengths(classes)

    durations = states([arrays(pairs) for pairs in classes])

    assert durations.tolist() == [expected[mask] for mask in range(2 ** len(classes))]


def test_states_of_two_classes() -> None:
    """With A at 0..10 and 20..30 and B at 5..15, A runs alone for 15 ns, B alone for 5, both for 5, neither for 5."""
    durations = states([arrays([(0, 10), (20, 30)]), arrays([(5, 15)])])

    assert durations.tolist() == [5, 15, 5, 5]


def test_lengths_stay_exact_at_epoch_nanoseconds() -> None:
    """A million intervals of 1 ns cover exactly 1,000,000 ns, although floats at 1.7e18 ns are off by up to 128 ns."""
    starts = np.arange(1_000_000, dtype=np.int64) * 3 + 1_725_000_000_000_000_000

    assert covered_length(starts, starts + 1) == 1_000_000
    assert states([(starts, starts + 1)]).tolist() == [1_999_998, 1_000_000]


def test_concatenated_keeps_every_interval() -> None:
    """Joining sets neither drops nor merges intervals."""
    assert pairs_in(concatenated([arrays([(0, 2)]), arrays([]), arrays([(1, 3)])])) == [(0, 2), (1, 3)]


@pytest.mark.parametrize("function", [covered_length, gaps, lambda *pair: states([pair, pair, pair, pair])])
def test_a_million_intervals_do_not_take_quadratic_time(function: object) -> None:
    """A million intervals, as many as a rank has kernels, take little time; quadratic work would exceed the timeout."""
    random = np.random.default_rng(0)
    starts = random.integers(0, 10**12, 1_000_000)
    ends = starts + random.integers(0, 10**6, 1_000_000)

    assert callable(function)
    assert function(starts, ends) is not None


@given(pairs_of_moments)
def test_covered_time_before_each_time(pairs: Pairs) -> None:
    """`covered_before` returns the number of covered nanoseconds before each time."""
    moments = np.arange(-45, 60)
    expected = [sum(moment < limit for moment in covered(pairs)) for limit in moments.tolist()]

    assert covered_before(union(*arrays(pairs)), moments).tolist() == expected


@given(st.lists(st.lists(st.integers(-20, 20), max_size=10), min_size=1, max_size=4))
def test_distinct_times_are_each_time_once_in_order(times: list[list[int]]) -> None:
    """The result depends neither on the order of the times nor on how they are divided among arrays."""
    arrays_of_times = [np.array(of_one, np.int64) for of_one in times]

    assert distinct_times(*arrays_of_times).tolist() == sorted({time for of_one in times for time in of_one})
