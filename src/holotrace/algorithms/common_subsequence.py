"""Find the longest common subsequence of two sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

NO_PARTNER = -1

_Int64: TypeAlias = npt.NDArray[np.int64]


def common_subsequence(first: _Int64, second: _Int64) -> _Int64:
    """Return, for each row of `first`, its partner row of `second` in a longest common subsequence, or `NO_PARTNER`.

    Equal rows at the beginning and at the end of both sequences are paired directly. The remaining rows are processed
    bit-parallel: an integer with one bit per row of `second` encodes, for every prefix of `second`, the length of its
    longest common subsequence with the rows of `first` processed so far. Processing a row of `first`
    updates the lengths of all prefixes at once.

    Source: H. Hyyrö, "Bit-Parallel LCS-length Computation Revisited", AWOCA 2004.

    >>> common_subsequence(np.array([1, 2, 3, 4]), np.array([2, 9, 4])).tolist()
    [-1, 0, -1, 2]
    """
    partner = np.full(len(first), NO_PARTNER, np.int64)
    shorter = min(len(first), len(second))
    head = _equal_length(first[:shorter], second[:shorter])
    rest = shorter - head
    tail = _equal_length(first[len(first) - rest :][::-1], second[len(second) - rest :][::-1])
    partner[:head] = np.arange(head)
    partner[len(first) - tail :] = np.arange(len(second) - tail, len(second))
    for row, other in _pairs(first[head : len(first) - tail].tolist(), second[head : len(second) - tail].tolist()):
        partner[head + row] = head + other
    return partner


def _equal_length(first: _Int64, second: _Int64) -> int:
    """Return how many rows are equal at the beginning of both sequences."""
    different = np.flatnonzero(first != second)
    return int(different[0]) if len(different) else len(first)


def _pairs(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]]:
    if len(first) > len(second):
        return [(row, other) for other, row in _pairs(second, first)]
    whole = (1 << len(second)) - 1
    places: dict[int, int] = {}
    for bit, value in enumerate(second):
        places[value] = places.get(value, 0) | 1 << bit
    states = [whole]
    for value in first:
        state = states[-1]
        matched = state & places.get(value, 0)
        states.append(((state + matched) | (state - matched)) & whole)
    return _walked_back(states, len(first), len(second))


def _walked_back(states: Sequence[int], row: int, other: int) -> list[tuple[int, int]]:
    """Walk back from the last rows to the first, and return the pairs of rows in the longest common subsequence.

    Bit k of `states[n]` is 0 if the first n rows of `first` have a longer common subsequence with the first k + 1 rows
    of `second` than with the first k rows.
    """
    pairs = []
    while row and other:
        bit = 1 << (other - 1)
        if states[row] & bit:
            other -= 1
        elif not states[row - 1] & bit:
            row -= 1
        else:
            row, other = row - 1, other - 1
            pairs.append((row, other))
    return pairs
