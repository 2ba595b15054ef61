"""Estimate clocks from operations that end at about the same time for all participants.

A `reading` is the time that a clock shows at the end of an operation. The operations connect the clocks in a graph. In each
operation, the hub is the participant nearest to the reference clock, and an edge leads from the hub to every other participant.
Each operation provides two readings for such an edge: one of each clock that the edge connects. The median of their
differences changes little if a participant ends some operations late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.clocks.bounds import first_of_runs

Float64Array: TypeAlias = npt.NDArray[np.float64]
Int64Array: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

_CHUNK_COUNT = 16
"""The readings of an edge are divided into at most this many chunks, and each chunk is replaced by its medians."""

_LAST_RESORT = 1 << 20
"""Length of a step along an operation whose participants may end at different times; other steps have length 1.

The length is so large that a path uses such an operation only if there is no other path.
"""

_UNREACHED = 1 << 40
_RIDGE = 1e-6
"""Weight of the extra equations that make every line solvable, even if its readings do not determine it.

The equation of each reading has weight 1.
"""

_USUAL_DRIFT = 50e-6
_USUAL_JITTER_NS = 5_000.0
"""How much the rates of two clocks usually differ, and how far apart two participants usually end an operation.

Short recordings determine the rates poorly, so `adjusted` uses these values as a prior.
"""


class Readings(NamedTuple):
    """One row per participant, sorted by operation.

    operation    int64    from 0, without gaps
    clock        int64    from 0
    time         float64  the clock's time at the end of the operation
    is_together  bool     whether all participants of the operation end at about the same time
    """

    operation: Int64Array
    clock: Int64Array
    time: Float64Array
    is_together: BoolArray


class Lines(NamedTuple):
    """For each clock, the rate and offset of the line `rate · time + offset`; NaN if unknown."""

    rate: Float64Array
    offset: Float64Array

    def at(self, clock: Int64Array, time: Float64Array) -> Float64Array:
        """Return, for each i, the value of the line of clock[i] at time[i]."""
        value: Float64Array = self.rate[clock] * time + self.offset[clock]
        return value


@dataclass(frozen=True)
class ClockGraph:
    """How operations connect clocks.

    distance     int64 [clocks]  length of the shortest path from the clock to the reference: 1 for each operation, or
                                 `_LAST_RESORT` if its `is_together` is false; `_UNREACHED` if there is no path
    hub_row      int64 [rows]    for each row, the row of its operation's hub
    edge         int64 [rows]    the edge between hub and participant; -1 for the hub itself and for unconnected
                                 clocks. Also -1 if the operation's `is_together` is false, but another operation
                                 connects the same two clocks and its `is_together` is true
    edges        int64 [edges, 2]  hub and other clock
    parent_edge  int64 [clocks]  the edge to a clock that is nearer to the reference; -1 for the reference and
                                 for unconnected clocks
    """

    distance: Int64Array
    hub_row: Int64Array
    edge: Int64Array
    edges: Int64Array
    parent_edge: Int64Array

    @property
    def by_distance(self) -> Int64Array:
        """The clocks connected to the reference, nearest first, excluding the reference itself."""
        order = np.argsort(self.distance, kind="stable")
        reached: Int64Array = order[self.parent_edge[order] >= 0]
        return reached


def clock_graph(readings: Readings, clock_count: int, reference: int) -> ClockGraph:
    """Connect every clock to the reference through as few operations as possible."""
    first = first_of_runs(readings.operation)
    distance = _distances(readings, first, clock_count, reference)
    hub_row = _hub_rows(readings, first, distance)
    pair = readings.clock[hub_row] * clock_count + readings.clock
    ends_together = np.isin(pair, pair[readings.is_together])
    counts_here = readings.is_together | ~ends_together
    is_edge = (hub_row != np.arange(len(pair))) & (distance[readings.clock] < _UNREACHED) & counts_here
    pairs, edge_of_row, counts = np.unique(pair[is_edge], return_inverse=True, return_counts=True)
    edge = np.full(len(pair), -1)
    edge[is_edge] = edge_of_row
    edges = np.stack(np.divmod(pairs, clock_count), axis=1)
    return ClockGraph(distance, hub_row, edge, edges, _parent_edges(edges, counts, distance))


def rough_lines(readings: Readings, graph: ClockGraph, reference: int, largest_drift: float) -> Lines:
    """Return lines that map each clock to the reference clock, as exactly as the noise of the readings allows.

    Each clock's line is derived from its parent's line, so errors grow with the distance from the reference.
    """
    rows = np.flatnonzero(graph.edge >= 0)
    difference = readings.time[graph.hub_row[rows]] - readings.time[rows]
    middle, value, slope = _median_lines(graph.edge[rows], readings.time[rows], difference, len(graph.edges))
    rate, offset = np.full((2, len(graph.distance)), np.nan)
    rate[reference], offset[reference] = 1.0, 0.0
    for clock in graph.by_distance:
        edge = graph.parent_edge[clock]
        hub = graph.edges[edge, 0]
        rate[clock] = np.clip(rate[hub] * (1 + slope[edge]), 1 - largest_drift, 1 + largest_drift)
        at_middle = rate[hub] * (middle[edge] + value[edge]) + offset[hub]
        offset[clock] = at_middle - rate[clock] * middle[edge]
    return Lines(rate, offset)


class Adjustment(NamedTuple):
    """The result of `adjusted`.

    middle         the time relative to which the adjusted lines are expressed
    value, slope   float64 [clocks]  add value + slope · (time - middle) to a time on the clock
    closure_error  see `holotrace.algorithms.clocks.fitting.FittedClocks`; None without a cycle
    """

    middle: float
    value: Float64Array
    slope: Float64Array
    closure_error: float | None

    def at(self, clock: Int64Array, time: Float64Array) -> Float64Array:
        """Return, for each i, the value to add to time[i] on clock[i]."""
        added: Float64Array = self.value[clock] + self.slope[clock] * (time - self.middle)
        return added


def adjusted(readings: Readings, graph: ClockGraph, reference: int, rate: Float64Array) -> Adjustment:
    """Correct roughly aligned clocks by least squares over all edges of the graph.

    Args:
        readings: times that `rough_lines` mapped to the reference clock.
        graph: the graph of these readings.
        reference: the clock that is not adjusted.
        rate: the rates of the rough lines; NaN if unknown.

    Let z_a(t) = v_a + s_a·t, with t relative to `Adjustment.middle`. Take a chunk of n readings of the edge from hub h
    to clock a, with median time t and median difference r. The chunk adds n·(z_a(t) - z_h(t) - r)² to the sum that is
    minimised. The sum also contains a term for each clock, which pulls the clock's rate towards 1. The weight of this
    term is the square of the ratio of the usual jitter to the usual drift. The term matters only in short recordings.
    """
    together = readings.is_together | (graph.parent_edge[readings.clock] == graph.edge)
    rows = np.flatnonzero((graph.edge >= 0) & together)
    difference = readings.time[graph.hub_row[rows]] - readings.time[rows]
    chunks = _chunks(graph.edge[rows], readings.time[rows], difference)
    first, last = (float(bound(readings.time, initial=0.0)) for bound in (np.min, np.max))
    middle, half = (first + last) / 2, max((last - first) / 2, 1.0)
    usual = _Usual(np.nan_to_num(1 / rate - 1) * half, (_USUAL_JITTER_NS / (_USUAL_DRIFT * half)) ** 2)
    value, slope = _least_squares(chunks, graph, (chunks["time"].to_numpy() - middle) / half, reference, usual)
    return Adjustment(middle, value, slope / half, _closure_error(chunks, graph))


class _Usual(NamedTuple):
    """A prior for the slope of each clock.

    slope   the slope that makes the clock's rate 1
    weight  number of readings that influence the fit as much as the prior
    """

    slope: Float64Array
    weight: float


def _least_squares(
    chunks: pl.DataFrame, graph: ClockGraph, time: Float64Array, reference: int, usual: _Usual
) -> tuple[Float64Array, Float64Array]:
    clock_count = len(graph.distance)
    hub, clock = graph.edges[chunks["edge"].to_numpy()].T
    columns = np.stack([clock, clock + clock_count, hub, hub + clock_count])
    factors = np.stack([np.ones_like(time), time, -np.ones_like(time), -time])
    count, difference = chunks["count"].to_numpy(), chunks["difference"].to_numpy()
    weights = np.repeat([_RIDGE, _RIDGE + usual.weight], clock_count)
    matrix, right = np.diag(weights), weights * np.concatenate([np.zeros(clock_count), usual.slope])
    for column, factor in zip(columns, factors, strict=True):
        np.add.at(right, column, count * factor * difference)
        for other, other_factor in zip(columns, factors, strict=True):
            np.add.at(matrix, (column, other), count * factor * other_factor)
    fixed = [reference, reference + clock_count]
    matrix[fixed] = 0
    matrix[fixed, fixed], right[fixed] = 1, 0
    solution = np.linalg.solve(matrix, right).astype(np.float64)
    return solution[:clock_count], solution[clock_count:]


def _closure_error(chunks: pl.DataFrame, graph: ClockGraph) -> float | None:
    """Return the largest median difference on edges that the rough lines did not use (all except parent edges)."""
    closing = chunks.filter(~pl.col("edge").is_in(graph.parent_edge.tolist()))
    by_edge = closing.group_by("edge").agg(pl.col("difference").median().abs())
    return None if by_edge.is_empty() else float(by_edge["difference"].to_numpy().max())


def _distances(readings: Readings, first: Int64Array, clock_count: int, reference: int) -> Int64Array:
    """Return the distance of each clock from the reference; see `ClockGraph`."""
    distance = np.full(clock_count, _UNREACHED)
    distance[reference] = 0
    length = np.where(readings.is_together, 1, _LAST_RESORT)
    while len(first):
        nearest = np.minimum.reduceat(distance[readings.clock], first)[readings.operation]
        following = distance.copy()
        np.minimum.at(following, readings.clock, nearest + length)
        if (following == distance).all():
            break
        distance = following
    reached: Int64Array = np.minimum(distance, _UNREACHED)
    return reached


def _hub_rows(readings: Readings, first: Int64Array, distance: Int64Array) -> Int64Array:
    """Return, for each row, the row of its operation's hub: the participant nearest to the reference."""
    if not len(first):
        return np.empty(0, np.int64)
    order = distance[readings.clock] * len(distance) + readings.clock
    is_hub = order == np.minimum.reduceat(order, first)[readings.operation]
    hub_of_operation = np.zeros(len(first), np.int64)
    hub_of_operation[readings.operation[is_hub]] = np.flatnonzero(is_hub)
    hub_row: Int64Array = hub_of_operation[readings.operation]
    return hub_row


def _parent_edges(edges: Int64Array, counts: Int64Array, distance: Int64Array) -> Int64Array:
    """Return, for each clock, the edge with the most readings that comes from a clock nearer to the reference."""
    hub, clock = edges.T
    step = distance[clock] - distance[hub]
    order = np.lexsort((counts, -step))
    leads_away = order[step[order] > 0]
    parents = np.full(len(distance), -1)
    parents[clock[leads_away]] = leads_away
    return parents


def _median_lines(
    edge: Int64Array, time: Float64Array, difference: Float64Array, edge_count: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return a robust line for each edge: its middle time, its value at the middle time, and its slope.

    The slope is the median of the slopes between all pairs of chunks; each chunk is reduced to its medians (Theil-Sen
    estimator): https://en.wikipedia.org/wiki/Theil%E2%80%93Sen_estimator.
    """
    chunks = _chunks(edge, time, difference)
    place = chunks["edge"].to_numpy(), chunks["chunk"].to_numpy()
    times, differences = np.full((2, edge_count, _CHUNK_COUNT), np.nan)
    times[place], differences[place] = chunks["time"].to_numpy(), chunks["difference"].to_numpy()
    slope = _median_slopes(times, differences)
    middle = np.nanmean(times, axis=1) if edge_count else np.empty(0)
    level = differences - slope[:, None] * (times - middle[:, None])
    return middle, np.nanmedian(level, axis=1) if edge_count else middle, slope


def _median_slopes(times: Float64Array, values: Float64Array) -> Float64Array:
    """Return, for each edge, the median slope between pairs of chunks; 0 if there is only one chunk."""
    later, earlier = np.triu_indices(_CHUNK_COUNT, 1)[::-1]
    run = times[:, later] - times[:, earlier]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(run > 0, (values[:, later] - values[:, earlier]) / run, np.nan)
    has_slope = np.isfinite(slopes).any(axis=1)
    median = np.zeros(len(times))
    median[has_slope] = np.nanmedian(slopes[has_slope], axis=1)
    return median


def _chunks(edge: Int64Array, time: Float64Array, difference: Float64Array) -> pl.DataFrame:
    """Sort each edge's values by time, divide them into chunks of equal size, and return the medians of each chunk."""
    position = pl.int_range(pl.len()).over("edge")
    size = pl.len().over("edge")
    return (
        pl.DataFrame({"edge": edge, "time": time, "difference": difference})
        .sort("edge", "time")
        .with_columns((position * _CHUNK_COUNT // pl.max_horizontal(size, _CHUNK_COUNT)).alias("chunk"))
        .group_by("edge", "chunk", maintain_order=True)
        .agg(pl.col("time", "difference").median(), pl.len().alias("count"))
    )
