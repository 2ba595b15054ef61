"""`innermost` returns the shortest interval that covers each time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.nested.innermost import NO_OWNER, innermost

pairs_of_moments = st.lists(st.tuples(st.integers(-20, 20), st.integers(-2, 15)), max_size=15).map(
    lambda items: [(start, start + length) for start, length in items]
)


def arrays(pairs):
    """Turn pairs into a start and an end array."""
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def shortest(pairs, moment):
    """Return the row of the shortest interval that covers a time, by checking every interval."""
    covering = [(end - start, -row) for row, (start, end) in enumerate(pairs) if start <= moment < end]
    return -min(covering)[1] if covering else NO_OWNER


def test_the_inner_of_two_nested_intervals_wins_while_it_lasts() -> None:
    """The intervals are 0..10 and 3..5: the outer one owns 0..3 and 5..10, the inner one 3..5."""
    owners = innermost(*arrays([(0, 10), (3, 5)]))
    assert owners.at(np.array([-1, 0, 2, 3, 4, 5, 9, 10])).tolist() == [-1, 0, 0, 1, 1, 0, 0, -1]
    assert owners.lengths(2).tolist() == [8, 2]


def test_without_intervals_no_time_has_an_owner() -> None:
    """Without intervals, no time has an owner."""
    owners = innermost(*arrays([]))
    assert owners.at(np.array([1, 2])).tolist() == [NO_OWNER, NO_OWNER]
    assert owners.lengths(0).tolist() == []


@given(pairs_of_moments)
def test_the_owner_is_the_shortest_covering_interval(pairs) -> None:
    """A time belongs to the shortest interval that covers it (the last one, if several are equally short)."""
    moments = np.arange(-25, 40)
    owners = innermost(*arrays(pairs))
    expected = [shortest(pairs, moment) for moment in moments]
    assert owners.at(moments).tolist() == expected
    assert owners.lengths(len(pairs)).tolist() == [expected.count(row) for row in range(len(pairs))]


def test_deep_nesting_does_not_take_quadratic_time() -> None:
    """50,000 nested or adjacent intervals take little time; comparing all pairs would exceed the timeout."""
    depth = np.arange(50_000)
    nested = innermost(depth, 200_000 - depth).lengths(50_000)
    beside = innermost(depth * 2, depth * 2 + 1).lengths(50_000)
    assert (nested.sum(), beside.sum()) == (200_000, 50_000)
