"""`weight_before` integrates the weights of running intervals, with the same result as a sum over all nanoseconds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.running import weight_before

weighted = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(0, 10), st.integers(0, 8).map(lambda eighths: eighths / 8)), max_size=12
)


def integral(rows: list[tuple[int, int, float]], moment: int, most: float) -> float:
    """Sum the weights of running intervals over the nanoseconds before `moment`; the sum in each nanosecond is capped at `most`."""
    return sum(
        min(most, sum(weight for start, length, weight in rows if start <= time < start + length))
        for time in range(-20, moment)
    )


@given(weighted, st.sampled_from([1.0, math.inf]))
def test_the_integral_counts_the_intervals_of_each_nanosecond(rows: list[tuple[int, int, float]], most: float) -> None:
    """In each nanosecond, the weights of the intervals that cover it add up, but to no more than `most`."""
    starts, lengths = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
    weights = np.array([row[2] for row in rows], np.float64)
    moments = np.arange(-20, 32)

    integrals = weight_before((starts, starts + lengths), weights, moments, most=most)

    assert integrals == pytest.approx([integral(rows, moment, most) for moment in moments.tolist()], abs=1e-9)


@given(weighted, weighted)
def test_excluded_intervals_do_not_count(
    rows: list[tuple[int, int, float]], others: list[tuple[int, int, float]]
) -> None:
    """The integral does not grow during the `outside` intervals."""
    starts, lengths = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
    outside, their_lengths = (np.array([row[column] for row in others], np.int64) for column in (0, 1))
    weights = np.array([row[2] for row in rows], np.float64)
    moments = np.arange(-20, 32)

    integrals = weight_before(
        (starts, starts + lengths), weights, moments, most=1.0, outside=(outside, outside + their_lengths)
    )

    is_outside = [any(start <= time < start + length for start, length, _ in others) for time in moments.tolist()]
    steps = [
        0.0 if hidden else integral(rows, time + 1, 1.0) - integral(rows, time, 1.0)
        for time, hidden in zip(moments.tolist(), is_outside, strict=True)
    ]
    assert integrals == pytest.approx(np.cumsum([0.0, *steps[:-1]]), abs=1e-9)


def test_times_of_today_are_exact() -> None:
    """The integral is exact for nanoseconds since 1970, which a double would round."""
    now = 1_700_000_000_000_000_001
    starts = np.array([now, now + 3])

    integrals = weight_before((starts, starts + 5), np.array([0.5, 0.25]), np.array([now + 1, now + 4, now + 9]))

    assert integrals.tolist() == [0.5, 2.25, 3.75]
