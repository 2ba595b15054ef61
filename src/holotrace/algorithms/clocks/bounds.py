"""Compute hard bounds on clocks from operations in which some participants wait for others.

When clock a shows t, the reference clock shows t + z_a(t). Clocks run at constant rates, so z_a(t) = o + d·t. Each
operation has a time G: every participant that others wait for starts before G, and every participant that waits for
others ends after G:

    start + z_a(start) ≤ G ≤ end + z_a(end)

Bounds on the clocks give bounds on every G, and the bounds on G tighten the bounds on the clocks, even on clocks that
share no operation with the reference. The search repeats these two steps. It uses only the inequalities above, so the
true values stay within the bounds after any number of rounds.

Times are float64 nanoseconds, relative to a time close to the recorded times, so that rounding errors are small. With
only two clocks, the search is the convex-hull method of Zhang, Liu and Xia, Clock Synchronization Algorithms for
Network Measurements (INFOCOM 2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Float64Array: TypeAlias = npt.NDArray[np.float64]
Int64Array: TypeAlias = npt.NDArray[np.int64]

_INTERVAL_COUNT = 16
"""Bounds are computed at the ends of this many equal time intervals, and interpolated in between."""

_BUCKET_COUNT = 2 * _INTERVAL_COUNT
"""Time is divided into this many buckets. In each bucket, only the tightest inequality of each clock is used."""

_SMALLEST_GAIN_NS = 1.0
_MORE_ROUNDS = 40


class Marks(NamedTuple):
    """Either the starts or the ends of the participants in all operations; sorted by operation.

    operation  int64    from 0
    clock      int64    from 0
    time       float64  time on the clock
    """

    operation: Int64Array
    clock: Int64Array
    time: Float64Array


class Slopes(NamedTuple):
    """The smallest and the largest possible drift d of each clock."""

    low: Float64Array
    high: Float64Array


@dataclass(frozen=True)
class ClockBounds:
    """Bounds on each clock's correction z(t) = o + d·t; t is the time on the clock, and t + z(t) the reference time.

    knots      float64 [times]          times, on every clock, for which there are bounds on z
    low, high  float64 [clocks, times]  smallest and largest z of each clock at each knot; infinite if unbounded
    slopes     bounds on d of each clock
    """

    knots: Float64Array
    low: Float64Array
    high: Float64Array
    slopes: Slopes

    @cached_property
    def is_contradictory(self) -> npt.NDArray[np.bool_]:
        """For each clock, whether its bounds contradict each other, so that no line fits."""
        crossed: npt.NDArray[np.bool_] = (self.low > self.high).max(axis=1) | (self.slopes.low > self.slopes.high)
        return crossed

    def between(self, clock: Int64Array, time: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the bounds on the correction z of clock[i] at time[i]; outside the knots, `slopes` extends them."""
        position = _Positions.of(self.knots, time)
        before, after = np.maximum(self.knots[0] - time, 0), np.maximum(time - self.knots[-1], 0)
        least, greatest = self.slopes.low[clock], self.slopes.high[clock]
        low = -position.interpolated(-self.low, clock) - greatest * before + least * after
        return low, position.interpolated(self.high, clock) - least * before + greatest * after


def knots_around(*times: Float64Array) -> Float64Array:
    """Return equally spaced times that cover all the given times."""
    first = min((float(some.min()) for some in times if len(some)), default=0.0)
    last = max((float(some.max()) for some in times if len(some)), default=0.0)
    return np.linspace(first, max(last, first + 1.0), _INTERVAL_COUNT + 1)


def clock_bounds(starts: Marks, ends: Marks, limits: Slopes, *, reference: int = 0) -> ClockBounds:
    """Return bounds on each clock.

    Args:
        starts: the starts of the participants that others wait for.
        ends: the ends of the participants that wait for others.
        limits: bounds on d of each clock, known in advance.
        reference: the clock for which z is 0.

    The search ends early if the inequalities contradict each other; see `ClockBounds.is_contradictory`.
    """
    knots = knots_around(starts.time, ends.time)
    sides = _Side.of(starts, knots), _Side.of(ends, knots)
    operation_count = 1 + max(int(marks.operation.max(initial=-1)) for marks in (starts, ends))
    state = _State.unknown(len(limits.low), knots, limits, reference)
    for _ in range(len(limits.low) + _MORE_ROUNDS):
        following = _next_round(state, *sides, operation_count, reference)
        gain = _largest_gain(state, following)
        state = following
        if gain < _SMALLEST_GAIN_NS or state.bounds().is_contradictory.any():
            break
    return state.bounds()


class _State(NamedTuple):
    """The bounds found so far: for each clock, upper bounds on z and -z at each knot, and bounds on d."""

    knots: Float64Array
    of_z: Float64Array
    of_minus_z: Float64Array
    slopes: Slopes

    @classmethod
    def unknown(cls, clock_count: int, knots: Float64Array, limits: Slopes, reference: int) -> _State:
        nothing = np.full((clock_count, len(knots)), np.inf)
        nothing[reference] = 0.0
        return cls(knots, nothing, nothing.copy(), limits)

    def bounds(self) -> ClockBounds:
        return ClockBounds(self.knots, -self.of_minus_z, self.of_z, self.slopes)


def _next_round(state: _State, starts: _Side, ends: _Side, operation_count: int, reference: int) -> _State:
    """Derive bounds on each operation's G from the bounds on the clocks, then tighten the bounds on the clocks."""
    latest = ends.least_by_operation(ends.time + ends.interpolated(state.of_z), operation_count)
    minus_earliest = starts.least_by_operation(starts.interpolated(state.of_minus_z) - starts.time, operation_count)
    upper = starts.tightest(latest[starts.operation] - starts.time, len(state.of_z))
    lower = ends.tightest(minus_earliest[ends.operation] + ends.time, len(state.of_z))
    slopes = _narrowed(state.slopes, upper, lower)
    of_z = np.minimum(state.of_z, _greatest(upper, slopes, state.knots))
    of_minus_z = np.minimum(state.of_minus_z, _greatest(lower, Slopes(-slopes.high, -slopes.low), state.knots))
    of_z[reference] = of_minus_z[reference] = slopes.low[reference] = slopes.high[reference] = 0.0
    return _State(state.knots, of_z, of_minus_z, slopes)


def _largest_gain(before: _State, after: _State) -> float:
    """Return the largest change of any bound; infinite if an infinite bound became finite."""
    gains = [
        old[is_known] - new[is_known]
        for old, new in ((before.of_z, after.of_z), (before.of_minus_z, after.of_minus_z))
        for is_known in [np.isfinite(new)]
    ]
    return max(float(gain.max(initial=0.0)) for gain in gains)


class _Points(NamedTuple):
    """Upper bounds on z or, in place of lower bounds on z, upper bounds on -z.

    There is one point per clock and bucket; its value is infinite if the bucket is empty.
    """

    time: Float64Array
    value: Float64Array


def _narrowed(slopes: Slopes, upper: _Points, lower: _Points) -> Slopes:
    """Narrow the bounds on the slopes: each line passes below the points of `upper` and above the points of `lower`.

    With z(t) ≤ u and z(s) ≥ l: d ≤ (u - l) / (t - s) if t > s, and d ≥ (u - l) / (t - s) if t < s.
    """
    rise = upper.value[:, :, None] + lower.value[:, None, :]
    run = upper.time[:, :, None] - lower.time[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = rise / run
    high = np.fmin.reduce(np.where(run >= 0, slope, np.inf), axis=(1, 2))
    low = np.fmax.reduce(np.where(run < 0, slope, -np.inf), axis=(1, 2))
    return Slopes(np.maximum(slopes.low, low), np.minimum(slopes.high, high))


def _greatest(points: _Points, slopes: Slopes, knots: Float64Array) -> Float64Array:
    """Return the largest possible value of each clock's line at each knot.

    A possible line passes below all points, and its slope is within `slopes`. This is a linear programme in the offset
    and the slope of the line, so the largest value is always determined either by two points, or by one point and a
    bound on the slope. If the bounds on the slope contradict each other, the value is meaningless.
    """
    low, high = slopes.low[:, None], slopes.high[:, None]
    by_knot = []
    for number, knot in enumerate(knots):
        passed = knot - points.time
        with np.errstate(invalid="ignore"):  # contradictory bounds may be infinite
            beyond_one = points.value + np.where(passed > 0, high, low) * passed
        least = np.fmin.reduce(beyond_one, axis=1, initial=np.inf)
        by_knot.append(np.minimum(least, _least_chord(points, passed, number)))
    return np.stack(by_knot, axis=1)


def _least_chord(points: _Points, passed: Float64Array, knot_number: int) -> Float64Array:
    """Connect each point before a knot with each point after it; return the lines' lowest value at the knot."""
    split = knot_number * _BUCKET_COUNT // _INTERVAL_COUNT
    if split in {0, _BUCKET_COUNT}:
        return np.full(len(passed), np.inf)
    before, after = passed[:, :split, None], -passed[:, None, split:]
    with np.errstate(invalid="ignore"):
        weighted = points.value[:, :split, None] * after + points.value[:, None, split:] * before
    chords: Float64Array = np.fmin.reduce(weighted / (before + after), axis=(1, 2), initial=np.inf)
    return chords


class _Positions(NamedTuple):
    """Positions of times between knots: the previous knot, and the fraction of the way to the next knot."""

    knot: Int64Array
    fraction: Float64Array

    @classmethod
    def of(cls, knots: Float64Array, time: Float64Array) -> _Positions:
        intervals = np.clip(np.nan_to_num((time - knots[0]) / (knots[1] - knots[0])), 0, _INTERVAL_COUNT)
        knot = np.minimum(intervals.astype(np.int64), _INTERVAL_COUNT - 1)
        return cls(knot, intervals - knot)

    def interpolated(self, upper: Float64Array, clock: Int64Array) -> Float64Array:
        """Interpolate linearly between the knots; `upper` contains an upper bound for each clock and knot.

        The results are upper bounds too: a straight line that is below two points is also below the segment between
        them.
        """
        before, after = upper[clock, self.knot], upper[clock, self.knot + 1]
        with np.errstate(invalid="ignore"):
            value: Float64Array = (1 - self.fraction) * before + self.fraction * after
        return np.where(np.isfinite(before), value, np.inf)


@dataclass(frozen=True)
class _Side:
    """The starts (or ends) of operations, with the positions and sort orders that every round uses."""

    operation: Int64Array
    clock: Int64Array
    time: Float64Array
    positions: _Positions
    first_of_operation: Int64Array
    by_cell: Int64Array
    first_of_cell: Int64Array
    cells: Int64Array
    middles: Float64Array

    @classmethod
    def of(cls, marks: Marks, knots: Float64Array) -> _Side:
        width = (knots[-1] - knots[0]) / _BUCKET_COUNT
        bucket = np.clip((marks.time - knots[0]) / width, 0, _BUCKET_COUNT - 1).astype(np.int64)
        cell = marks.clock * _BUCKET_COUNT + bucket
        by_cell = np.argsort(cell, kind="stable")
        first_of_cell = first_of_runs(cell[by_cell])
        return cls(
            *marks,
            positions=_Positions.of(knots, marks.time),
            first_of_operation=first_of_runs(marks.operation),
            by_cell=by_cell,
            first_of_cell=first_of_cell,
            cells=cell[by_cell][first_of_cell],
            middles=knots[0] + width * (np.arange(_BUCKET_COUNT) + 0.5),
        )

    def interpolated(self, upper: Float64Array) -> Float64Array:
        return self.positions.interpolated(upper, self.clock)

    def least_by_operation(self, values: Float64Array, operation_count: int) -> Float64Array:
        least = np.full(operation_count, np.inf)
        if len(values):
            least[self.operation[self.first_of_operation]] = np.minimum.reduceat(values, self.first_of_operation)
        return least

    def tightest(self, values: Float64Array, clock_count: int) -> _Points:
        """Return, for each clock and bucket, the smallest of `values` and its time."""
        time = np.tile(self.middles, clock_count)
        least = np.full(clock_count * _BUCKET_COUNT, np.inf)
        if len(values):
            chosen = self._least_in_cells(values[self.by_cell])
            least[self.cells], time[self.cells] = values[chosen], self.time[chosen]
        return _Points(time.reshape(clock_count, -1), least.reshape(clock_count, -1))

    def _least_in_cells(self, ordered: Float64Array) -> Int64Array:
        """Return the row of the smallest value in each cell (a clock and a bucket); on a tie, the last such row."""
        lengths = np.diff(self.first_of_cell, append=len(ordered))
        is_least = ordered == np.repeat(np.minimum.reduceat(ordered, self.first_of_cell), lengths)
        rows = np.zeros(len(self.cells), np.int64)
        rows[np.repeat(np.arange(len(self.cells)), lengths)[is_least]] = self.by_cell[is_least]
        return rows


def first_of_runs(numbers: Int64Array) -> Int64Array:
    """Return the first row of each run of equal numbers."""
    changes = np.flatnonzero(np.diff(numbers)) + 1
    return np.concatenate([np.zeros(min(len(numbers), 1), np.int64), changes])
