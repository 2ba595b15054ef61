"""Bounds on clock offsets are as narrow as the starts and ends of common operations allow, but no narrower."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.clocks.bounds import Marks, Slopes, clock_bounds

LIMITS = Slopes(np.full(2, -1e-3), np.full(2, 1e-3))
EXACT = 1e-3  # rounding of float64


def marks_of(operation, clock, time):
    """Return marks, each of which says when an operation starts or ends on a clock."""
    return Marks(np.array(operation, np.int64), np.array(clock, np.int64), np.array(time, np.float64))


def met(times):
    """Return the starts and the ends of operations on two clocks; a row is (start 0, end 0, start 1, end 1)."""
    operation = np.repeat(np.arange(len(times)), 2)
    clock = np.tile([0, 1], len(times))
    starts, ends = (np.array([[row[i], row[i + 2]] for row in times], float).ravel() for i in (0, 1))
    return marks_of(operation, clock, starts), marks_of(operation, clock, ends)


def test_one_meeting_bounds_the_offset_by_its_starts_and_ends() -> None:
    """No operation ends on one rank before it starts on the other, so clock 1 is at most 30 behind or 125 ahead."""
    bounds = clock_bounds(*met([(0, 130, 100, 125)]), LIMITS)

    low, high = bounds.between(np.array([1, 1]), np.array([100.0, 125.0]))
    assert high[0] == pytest.approx(30, abs=0.1)
    assert low[1] == pytest.approx(-125, abs=0.1)
    assert not bounds.is_contradictory.any()


def test_clocks_that_never_meet_the_reference_are_bounded_through_others() -> None:
    """Clock 1 is within 10 of clock 0, and clock 2 is within 10 of clock 1, so clock 2 is within 20 of clock 0."""
    starts = marks_of([0, 0, 1, 1], [0, 1, 1, 2], [0, 0, 50, 50])
    ends = marks_of([0, 0, 1, 1], [0, 1, 1, 2], [10, 10, 60, 60])
    limits = Slopes(np.zeros(3), np.zeros(3))
    bounds = clock_bounds(starts, ends, limits)

    assert bounds.high[:, 0].tolist() == pytest.approx([0, 10, 20])
    assert bounds.low[:, 0].tolist() == pytest.approx([0, -10, -20])


def test_a_clock_that_only_sends_is_bounded_on_one_side() -> None:
    """The receiver waits for the sender but not vice versa, so the sender's offset has no lower bound."""
    bounds = clock_bounds(marks_of([0], [1], [5]), marks_of([0], [0], [20]), LIMITS)

    assert np.isfinite(bounds.high[1]).all()
    assert np.isneginf(bounds.low[1]).all()


def test_a_jump_contradicts() -> None:
    """If a clock jumps forward by a second halfway, no line fits all its operations."""
    times = [(t, t + 10, t + jump, t + jump + 10) for t in range(0, 1_000, 100) for jump in [0 if t < 500 else 1e9]]

    assert clock_bounds(*met(times), LIMITS).is_contradictory.tolist() == [False, True]


def test_different_offsets_at_one_time_contradict() -> None:
    """While clock 1 shows 0, clock 0 shows both 0 and 2 µs; no drift can explain this."""
    times = [(0, 0, 0, 0), (2_000, 2_000, 0, 0), (3_000, 3_000, 3_000, 3_000)]

    assert clock_bounds(*met(times), LIMITS).is_contradictory.tolist() == [False, True]


@st.composite
def meetings(draw):
    """Draw the offset and drift of a clock, and the starts and ends of operations that are consistent with them."""
    offset, drift = draw(st.integers(-1_000, 1_000)), draw(st.integers(-900, 900)) * 1e-6
    times = []
    for at in draw(st.lists(st.integers(0, 30), min_size=1, max_size=12, unique=True)):
        before, after, other_before, other_after = (draw(st.integers(0, 2_000)) for _ in range(4))
        moment = at * 100_000.0
        own = (moment - offset) / (1 + drift)
        times.append((moment - before, moment + after, own - other_before, own + other_after))
    return offset, drift, times


@given(meetings())
def test_bounds_contain_the_truth_and_no_more_than_lines_allow(drawn) -> None:
    """At each knot, the bounds contain the true line; they are the extremes of all lines that fit the operations."""
    offset, drift, times = drawn
    starts, ends = met(times)
    bounds = clock_bounds(starts, ends, LIMITS)

    truth = offset + drift * bounds.knots
    assert (bounds.low[1] <= truth + EXACT).all()
    assert (truth <= bounds.high[1] + EXACT).all()
    assert bounds.slopes.low[1] <= drift + 1e-12
    assert drift <= bounds.slopes.high[1] + 1e-12
    greatest, least = extremes(times, bounds.knots)
    assert bounds.high[1] == pytest.approx(greatest, abs=1)
    assert bounds.low[1] == pytest.approx(least, abs=1)


def extremes(times, knots):
    """Return, for each knot, the largest and the smallest value of the lines that fit all operations."""
    upper = [(start1, end0 - start1) for _, end0, start1, _ in times]
    lower = [(end1, start0 - end1) for start0, _, _, end1 in times]
    lines = [
        line
        for line in corners([*upper, *lower])
        if all(line[0] + line[1] * t <= u + EXACT for t, u in upper)
        and all(line[0] + line[1] * t >= v - EXACT for t, v in lower)
    ]
    values = np.array([[offset + slope * knot for knot in knots] for offset, slope in lines])
    return values.max(axis=0), values.min(axis=0)


def corners(points):
    """Yield (offset, slope) of each line through two points, and of the lines with slopes ±1e-3 through each point."""
    for (t, u), (s, v) in combinations(points, 2):
        if t != s and abs((u - v) / (t - s)) <= 1e-3:
            yield u - (u - v) / (t - s) * t, (u - v) / (t - s)
    for t, u in points:
        for slope in (-1e-3, 1e-3):
            yield u - slope * t, slope
