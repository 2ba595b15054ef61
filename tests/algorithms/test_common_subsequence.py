"""Tests of the longest common subsequence."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.common_subsequence import NO_PARTNER, common_subsequence

names = st.lists(st.integers(0, 4), max_size=25)


def length_by_table(first: list[int], second: list[int]) -> int:
    """Return the length of the longest common subsequence, by dynamic programming over all prefixes."""
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for row, one in enumerate(first):
        for column, other in enumerate(second):
            lengths[row + 1][column + 1] = (
                lengths[row][column] + 1 if one == other else max(lengths[row][column + 1], lengths[row + 1][column])
            )
    return lengths[-1][-1]


@given(names, names)
def test_pairs_are_equal_in_order_and_as_many_as_possible(first, second):
    """Paired values are equal, their positions ascend in both sequences, and no longer subsequence exists."""
    partner = common_subsequence(np.array(first, np.int64), np.array(second, np.int64))
    paired = np.flatnonzero(partner != NO_PARTNER)

    assert [first[row] for row in paired] == [second[row] for row in partner[paired]]
    assert (np.diff(partner[paired]) > 0).all()
    assert len(paired) == length_by_table(first, second)


def test_long_sequences_take_little_time():
    """Two sequences of 5,000 values differ in every tenth value; all other values are paired in little time."""
    first = np.arange(5_000) % 97
    second = first.copy()
    second[::10] = 1_000

    assert (common_subsequence(first, second) != NO_PARTNER).sum() >= 4_500
