"""Fit a line with bounds to each clock, or to each segment of a clock that jumped."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.clocks.bounds import ClockBounds, clock_bounds
from holotrace.algorithms.clocks.jumps import DROPPED, Participants, segments, slope_limits
from holotrace.algorithms.clocks.lines import Adjustment, Lines, adjusted, clock_graph, rough_lines

Float64Array: TypeAlias = npt.NDArray[np.float64]
Int64Array: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


class Correction(NamedTuple):
    """The value to add to a time on a clock, with a lower and an upper bound; NaN if unknown."""

    value: Float64Array
    low: Float64Array
    high: Float64Array

    @property
    def half_width(self) -> Float64Array:
        """The distance from the value to the bound that is further away."""
        wider: Float64Array = np.maximum(self.high - self.value, self.value - self.low)
        return wider


class FittedClocks(NamedTuple):
    """Clocks relative to the reference clock.

    lines          map each clock roughly to the reference clock; `bounds` and `estimate` describe the remaining
                   difference z
    bounds         lower and upper bounds on z
    estimate       float64 [clocks, knots]  estimate of z
    slope          float64 [clocks]  slope of the estimate
    is_known       bool [clocks]  whether z is bounded on both sides, without contradiction
    closure_error  If operations connect clocks in a cycle, the difference between two of these clocks is measured
                   directly, and also follows from the other clocks. This value is the median disagreement of the two
                   results, for the cycle with the largest median; None without a cycle.
    """

    lines: Lines
    bounds: ClockBounds
    estimate: Float64Array
    slope: Float64Array
    is_known: BoolArray
    closure_error: float | None

    def correction(self, clock: Int64Array, time: Float64Array) -> Correction:
        """Return the value to add to each time[i], which is a time on the clock with number clock[i]."""
        mapped = self.lines.at(clock, time)
        low, high = self.bounds.between(clock, mapped)
        estimate = np.clip(self.estimated(clock, mapped), low, high)
        unknown = np.where(self.is_known[clock], 0.0, np.nan)
        return Correction(*(mapped - time + part + unknown for part in (estimate, low, high)))

    def rate(self) -> Correction:
        """Return the rate of the reference clock relative to each clock, minus 1."""
        unknown = np.where(self.is_known, 0.0, np.nan)
        slopes = (self.slope, *self.bounds.slopes)
        return Correction(*(self.lines.rate * (1 + slope) - 1 + unknown for slope in slopes))

    def estimated(self, clock: Int64Array, mapped: Float64Array) -> Float64Array:
        """Return the estimated correction of mapped[i], a time of clock[i] after mapping by `lines`."""
        knots = self.bounds.knots
        position = np.clip((mapped - knots[0]) / (knots[1] - knots[0]), 0, len(knots) - 1)
        knot = np.minimum(np.nan_to_num(position).astype(np.int64), len(knots) - 2)
        before, after = self.estimate[clock, knot], self.estimate[clock, knot + 1]
        outside = mapped - np.clip(mapped, knots[0], knots[-1])
        estimated: Float64Array = before + (position - knot) * (after - before) + self.slope[clock] * outside
        return estimated


class Fit(NamedTuple):
    """The result of `fit`.

    clocks             the clocks; if a clock jumped, each of its segments except the first is a separate clock
    source             int64  for each of `clocks`, the number of the clock passed to `fit` that it is or is a segment
                       of; the passed clocks come first, followed by the segments
    clock_of_row       int64  clock of each participant; `DROPPED` if its operation contradicts the others,
                       `UNDECIDED` if the operation may be before or after a jump
    """

    clocks: FittedClocks
    source: Int64Array
    clock_of_row: Int64Array


def fit(participants: Participants, clock_count: int, reference: int, *, largest_drift: float) -> Fit:
    """Fit clocks to operations.

    Args:
        participants: one row per operation and clock; each clock's times may be relative to a different base.
        clock_count: number of clocks; some may have no participants.
        reference: the clock that the others are compared with.
        largest_drift: the largest possible difference between the rates of a clock and of the reference.
    """
    clocks = _fit_lines(participants, clock_count, reference, largest_drift)
    if not clocks.bounds.is_contradictory.any():
        return Fit(clocks, np.arange(clock_count), participants.clock)
    clock_of_row, source = _divided(participants, clock_count, reference, largest_drift)
    clocks = _fit_kept(participants, clock_of_row, source, reference, largest_drift)
    if clocks.bounds.is_contradictory.any():
        clock_of_row = _without_impossible(participants._replace(clock=clock_of_row), clocks)
        clocks = _fit_kept(participants, clock_of_row, source, reference, largest_drift)
    return Fit(clocks, source, clock_of_row)


def _fit_kept(
    participants: Participants, clock_of_row: Int64Array, source: Int64Array, reference: int, largest_drift: float
) -> FittedClocks:
    kept = participants._replace(clock=clock_of_row).only(clock_of_row >= 0)
    return _fit_lines(kept, len(source), reference, largest_drift)


def _fit_lines(participants: Participants, clock_count: int, reference: int, largest_drift: float) -> FittedClocks:
    """Fit one line to each clock."""
    connected = participants.only(_is_connected(participants, clock_count, reference))
    graph = clock_graph(connected.readings(), clock_count, reference)
    lines = rough_lines(connected.readings(), graph, reference, largest_drift)
    aligned = connected.on(lines)
    bounds = clock_bounds(*aligned.marks(), slope_limits(lines, largest_drift), reference=reference)
    return _with_estimate(lines, bounds, adjusted(aligned.readings(), graph, reference, lines.rate), reference)


def _is_connected(participants: Participants, clock_count: int, reference: int) -> BoolArray:
    graph = clock_graph(participants.readings(), clock_count, reference)
    is_reached = graph.parent_edge >= 0
    is_reached[reference] = True
    connected: BoolArray = is_reached[participants.clock]
    return connected


def _with_estimate(lines: Lines, bounds: ClockBounds, adjustment: Adjustment, reference: int) -> FittedClocks:
    clock_count = len(lines.rate)
    clock = np.repeat(np.arange(clock_count), len(bounds.knots))
    estimate = adjustment.at(clock, np.tile(bounds.knots, clock_count)).reshape(clock_count, -1)
    is_bounded = np.isfinite(bounds.low).all(axis=1) & np.isfinite(bounds.high).all(axis=1)
    is_known = is_bounded & ~bounds.is_contradictory
    is_known[reference] = True
    return FittedClocks(
        lines,
        bounds,
        np.clip(estimate, bounds.low, bounds.high),
        np.clip(adjustment.slope, *bounds.slopes),
        is_known,
        adjustment.closure_error,
    )


def _divided(
    participants: Participants, clock_count: int, reference: int, largest_drift: float
) -> tuple[Int64Array, Int64Array]:
    """If a clock jumped, give each of its segments except the first a new clock number; see `Fit`."""
    graph = clock_graph(participants.readings(), clock_count, reference)
    segment = segments(participants, graph, reference, largest_drift)
    further, number = np.unique(
        np.stack([participants.clock, segment], axis=1)[segment > 0], axis=0, return_inverse=True
    )
    clock_of_row = np.where(segment < 0, segment, participants.clock)
    clock_of_row[segment > 0] = clock_count + number.ravel()
    return clock_of_row, np.concatenate([np.arange(clock_count), further[:, 0]])


def _without_impossible(participants: Participants, clocks: FittedClocks) -> Int64Array:
    """Drop operations that, on the estimated clocks, end for one participant before they start for another."""
    clock = participants.clock
    shift = clocks.estimated(clock, clocks.lines.at(clock, participants.reading))
    last_start, first_end = np.full((2, int(participants.operation.max()) + 1), -np.inf)
    kept = clock >= 0
    operation = participants.operation[kept]
    np.maximum.at(last_start, operation, (clocks.lines.at(clock, participants.start) + shift)[kept])
    np.maximum.at(first_end, operation, -(clocks.lines.at(clock, participants.end) + shift)[kept])
    is_impossible = last_start > -first_end
    return np.where(is_impossible[participants.operation] & kept, DROPPED, clock)
