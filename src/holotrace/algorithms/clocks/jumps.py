"""Find clocks that jump, and operations that are matched wrongly.

If no single line fits a clock, the recording is divided into segments, each with its own line. Later steps treat each
segment as a separate clock. If only a few operations contradict a line that fits the operations before and after them,
these few are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.clocks.bounds import Marks, Slopes, clock_bounds
from holotrace.algorithms.clocks.lines import ClockGraph, Lines, Readings, clock_graph, rough_lines

Float64Array: TypeAlias = npt.NDArray[np.float64]
Int64Array: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

DROPPED, UNDECIDED = -1, -2

_FEWEST_IN_SEGMENT = 3
"""If fewer operations than this contradict the others, they are treated as wrong matches, not as a jump."""

_SEARCHED_AROUND_JUMP = 64
_NEAR_CONFLICT = 16
_EQUAL = 0.3
"""Operations that contradict the line are usually wrong matches. But if at least 3 of them lie within 16 operations of
the conflict, and all of these differ from the line by about the same amount (± 30 %), the clock jumped."""

_FEWEST_TO_SPLIT = 8


class Participants(NamedTuple):
    """One row per operation and clock, sorted by operation; all processes with the same clock are one participant.

    operation    int64    from 0, without gaps
    clock        int64    from 0
    start        float64  the latest start among the processes that other participants wait for; -inf if there is none
    end          float64  the earliest end among the processes that wait for other participants; inf if there is none
    reading      float64  the earliest end among all processes with this clock
    is_together  bool     whether all participants of the operation wait for each other
    """

    operation: Int64Array
    clock: Int64Array
    start: Float64Array
    end: Float64Array
    reading: Float64Array
    is_together: BoolArray

    def rows(self, rows: BoolArray | Int64Array) -> Participants:
        """Return the selected rows; their operation numbers may have gaps."""
        return Participants(
            self.operation[rows],
            self.clock[rows],
            self.start[rows],
            self.end[rows],
            self.reading[rows],
            self.is_together[rows],
        )

    def only(self, rows: BoolArray | Int64Array) -> Participants:
        """Return the selected rows, with operations renumbered without gaps."""
        chosen = self.rows(rows)
        return chosen._replace(operation=np.unique(chosen.operation, return_inverse=True)[1])

    def readings(self) -> Readings:
        """Return the column `reading` with its operations and clocks; the line of each clock is estimated from it."""
        return Readings(self.operation, self.clock, self.reading, self.is_together)

    def marks(self) -> tuple[Marks, Marks]:
        """Return the starts and the ends that are finite; the bounds on the clocks are computed from them."""
        starts, ends = np.isfinite(self.start), np.isfinite(self.end)
        return (
            Marks(self.operation[starts], self.clock[starts], self.start[starts]),
            Marks(self.operation[ends], self.clock[ends], self.end[ends]),
        )

    def on(self, lines: Lines) -> Participants:
        """Convert each time with the line of the clock that measured it."""
        start, end, reading = (lines.at(self.clock, time) for time in (self.start, self.end, self.reading))
        return self._replace(start=start, end=end, reading=reading)


def slope_limits(lines: Lines, largest_drift: float) -> Slopes:
    """Return bounds on d, the drift that remains after `lines` are applied.

    If d is within these bounds, the total rate of each clock is within 1 ± largest_drift.
    """
    rate = np.nan_to_num(lines.rate, nan=1.0)
    return Slopes((1 - largest_drift) / rate - 1, (1 + largest_drift) / rate - 1)


def segments(participants: Participants, graph: ClockGraph, reference: int, largest_drift: float) -> Int64Array:
    """Return the segment of each row; the segments of each clock are numbered from 0, in order of time.

    Rows of wrong matches are `DROPPED`. Rows are `UNDECIDED` if it is unclear whether they precede or follow a jump.

    Clocks are examined in order of their distance from the reference. In each operation, a clock is compared with the
    clock of the operation's hub (see `ClockGraph`). The hub's times are already corrected for jumps of the hub's clock,
    so these are not mistaken for jumps of the examined clock. The reference is assumed not to jump, so it has a single
    segment.
    """
    segment = np.full(len(participants.operation), DROPPED)
    start, end, reading = np.full((3, len(segment)), np.nan)
    aligned = participants._replace(start=start, end=end, reading=reading)
    of_reference = np.flatnonzero(participants.clock == reference)
    segment[of_reference] = 0
    _align(aligned, participants, of_reference, 1.0, 0.0)
    for clock in graph.by_distance:
        rows = np.flatnonzero(participants.clock == clock)
        hub = graph.hub_row[rows]
        met_at = np.where(hub == rows, np.nan, aligned.reading[hub])
        has_met = ~np.isnan(met_at)
        parts = list(_Pair.of(participants, aligned, rows[has_met], graph.hub_row, largest_drift).parts())
        others = rows[~has_met]
        for number, (part, inside) in enumerate(_rows_of_parts(parts, participants.reading[others])):
            of_part = np.concatenate([part.rows, others[inside]])
            segment[of_part] = number
            segment[part.undecided] = UNDECIDED
            _align(aligned, participants, of_part, part.rate, part.offset)
    return segment


def _rows_of_parts(parts: list[_Part], reading: Float64Array) -> Iterator[tuple[_Part, BoolArray]]:
    """Yield each segment of a clock, with a mask of the times in `reading` that lie in this segment and in no other."""
    fits = [part.holds(part.rate * reading + part.offset) for part in parts]
    is_clear = np.sum(fits, axis=0) == 1
    for part, fit in zip(parts, fits, strict=True):
        yield part, fit & is_clear


class _Part(NamedTuple):
    """A segment: its line, its start and end on the reference clock, and the rows that determine the line.

    undecided  rows that fit the line, but may be after the jump that ends this segment
    """

    rate: float
    offset: float
    begin: float
    end: float
    rows: Int64Array
    undecided: Int64Array

    def holds(self, reading: Float64Array) -> BoolArray:
        """Return whether times on the reference clock are inside the segment."""
        inside: BoolArray = (self.begin <= reading) & (reading <= self.end)
        return inside


def _align(aligned: Participants, raw: Participants, rows: Int64Array, rate: float, offset: float) -> None:
    for name in ("start", "end", "reading"):
        getattr(aligned, name)[rows] = rate * getattr(raw, name)[rows] + offset


class _Pair(NamedTuple):
    """The operations in which one clock takes part, sorted by time; `child` and `parent` have a row for each operation.

    child   this clock as a participant
    parent  the participant that is the hub of the operation
    """

    rows: Int64Array
    child: Participants
    parent: Participants
    largest_drift: float

    @classmethod
    def of(
        cls, raw: Participants, aligned: Participants, rows: Int64Array, hub_row: Int64Array, largest_drift: float
    ) -> _Pair:
        ordered = rows[np.argsort(aligned.reading[hub_row[rows]], kind="stable")]
        return cls(ordered, raw.rows(ordered), aligned.rows(hub_row[ordered]), largest_drift)

    def parts(self) -> Iterator[_Part]:
        """Divide the clock into segments.

        Operations whose hub (see `ClockGraph`) is unknown may lie before the first or after the last operation whose
        hub is known. The first segment is therefore extended to earlier times, and the last one to later times, each by
        the time between the first and the last operation whose hub is known.
        """
        begin, count = 0, len(self.rows)
        length = float(np.ptp(self.parent.reading)) if count else 0.0
        is_first = True
        while begin < count:
            fitting, end = self._longest_segment(begin)
            chosen = self._surely_before(fitting, end)
            if len(chosen) >= min(_FEWEST_IN_SEGMENT, count):
                first, last = self.parent.reading[chosen[[0, -1]]]
                earliest, latest = first - length * is_first, last + length * (end == count)
                yield _Part(
                    *self._line(chosen),
                    float(earliest),
                    float(latest),
                    self.rows[chosen],
                    self.rows[np.setdiff1d(fitting, chosen)],
                )
                is_first = False
            begin = end

    def _longest_segment(self, begin: int) -> tuple[Int64Array, int]:
        """Return the operations of the segment that starts at `begin`, and the start of the next segment."""
        dropped: list[int] = []
        while True:
            kept = self._without(begin, len(self.rows), dropped)
            length = self._longest_fit(kept)
            if length == len(kept):
                return kept, len(self.rows)
            conflict = int(kept[length])
            wrong = self._wrong_matches(begin, conflict, dropped)
            moved = self._moved_together(begin, conflict, dropped + (wrong or []))
            if wrong is None or moved:
                kept_out = [row for row in dropped if row not in moved]
                end = self._jump_near(begin, conflict, kept_out)
                return self._without(begin, end, kept_out), end
            dropped += wrong

    def _surely_before(self, fitting: Int64Array, end: int) -> Int64Array:
        """Return those of the operations `fitting` that are certainly before the jump at `end`.

        Operations after the last one with `is_together` are left out, because they may be after the jump. All of
        `fitting` are returned if there is no jump, or if fewer than `_FEWEST_IN_SEGMENT` of them have `is_together`.
        """
        together = fitting[self.child.is_together[fitting]]
        is_unclear = end < len(self.rows) and len(together) >= _FEWEST_IN_SEGMENT
        return fitting[fitting <= together[-1]] if is_unclear else fitting

    def _without(self, begin: int, end: int, dropped: list[int]) -> Int64Array:
        return np.setdiff1d(np.arange(begin, end), dropped)

    def _longest_fit(self, kept: Int64Array) -> int:
        """Return how many operations at the beginning fit a single line."""
        if self._fits(kept):
            return len(kept)
        fitting, failing = 1, len(kept)
        while failing - fitting > 1:
            middle = (fitting + failing) // 2
            if self._fits(kept[:middle]):
                fitting = middle
            else:
                failing = middle
        return fitting

    def _wrong_matches(self, begin: int, conflict: int, dropped: list[int]) -> list[int] | None:
        """Return the wrong matches near `conflict`, the first operation off the line; None if the clock jumps there.

        If one line fits after one or two operations are dropped, the dropped operations are wrong matches. The line is
        fitted to the operations from `begin` to the second one after `conflict`.
        """
        end = min(conflict + _FEWEST_IN_SEGMENT, len(self.rows))
        kept = self._without(begin, end, dropped)
        wrong: list[int] = []
        while len(wrong) < _FEWEST_IN_SEGMENT - 1 and len(kept) > 1:
            worst = int(np.argmax(self._contradictions(kept)))
            wrong.append(int(kept[worst]))
            kept = np.delete(kept, worst)
            if self._fits(kept):
                return wrong
        return None

    def _moved_together(self, begin: int, conflict: int, wrong: list[int]) -> set[int]:
        """If the operations of `wrong` near the conflict show that the clock jumped, return them; else an empty set.

        If these operations are matched wrongly, their distances from the line differ. If all of them have about the
        same distance from the line, the clock jumped, even if other operations after the jump still fit the line.
        """
        recent = [row for row in wrong if begin < row and abs(row - conflict) <= _NEAR_CONFLICT]
        before = self._without(begin, min(recent, default=begin), wrong)
        if len(recent) < _FEWEST_IN_SEGMENT or len(before) < _FEWEST_IN_SEGMENT:
            return set()
        rate, offset = self._line(before)
        apart = self.parent.reading[recent] - (rate * self.child.reading[recent] + offset)
        middle = float(np.median(apart))
        return set(recent) if (np.abs(apart - middle) <= _EQUAL * abs(middle)).all() else set()

    def _contradictions(self, kept: Int64Array) -> Float64Array:
        """Return by how many ns each operation contradicts the line that maps times of the clock to its parent clock.

        If the participants of an operation wait for each other, they should end at the same time. The result is then
        how much the time between their ends differs from the median over all operations in `kept`. For any other
        operation, the result is the time from the end of one participant to the start of the other, which is positive
        if one participant seems to end before the other one starts.
        """
        rate, offset = self._line(kept)
        difference: Float64Array = self.parent.reading[kept] - (rate * self.child.reading[kept] + offset)
        apart = np.abs(difference - float(np.median(difference)))
        left_before = np.maximum(
            self.parent.start[kept] - rate * self.child.end[kept] - offset,
            rate * self.child.start[kept] + offset - self.parent.end[kept],
        )
        return np.where(self.child.is_together[kept], apart, left_before)

    def _jump_near(self, begin: int, conflict: int, dropped: list[int]) -> int:
        """Return the first operation after the jump; this operation may be earlier than the conflict.

        Each candidate splits the differences from the line into two parts: before the candidate, and from it on. Return
        the candidate with the smallest cost: the sum of the distances of all differences from the median of their part.
        """
        window = self._without(max(begin, conflict - _SEARCHED_AROUND_JUMP), conflict + _SEARCHED_AROUND_JUMP, dropped)
        window = window[window < len(self.rows)]
        together = window[self.child.is_together[window]]
        window = together if len(together) >= _FEWEST_TO_SPLIT else window
        line = self._without(begin, conflict, dropped)
        rate, offset = self._line(line)
        difference = self.parent.reading[window] - (rate * self.child.reading[window] + offset)
        positions = [place for place in range(1, len(window)) if begin < window[place] <= conflict]
        costs = [_spread(difference[:place]) + _spread(difference[place:]) for place in positions]
        return int(window[positions[int(np.argmin(costs))]]) if positions else conflict

    def _line(self, kept: Int64Array) -> tuple[float, float]:
        """Return the rate and the offset of the rough line that maps the clock to its parent."""
        lines = self._lines(kept)
        return float(lines.rate[1]), float(lines.offset[1])

    def _lines(self, kept: Int64Array) -> Lines:
        readings = self._both(kept).readings()
        return rough_lines(readings, clock_graph(readings, 2, 0), 0, self.largest_drift)

    def _fits(self, kept: Int64Array) -> bool:
        """Return whether one line satisfies all inequalities of these operations."""
        lines = self._lines(kept)
        starts, ends = self._both(kept).on(lines).marks()
        bounds = clock_bounds(starts, ends, slope_limits(lines, self.largest_drift))
        return not bounds.is_contradictory[1]

    def _both(self, kept: Int64Array) -> Participants:
        """Return, for each operation in `kept`, the rows of the parent (clock 0) and of the child (clock 1)."""
        parent, child = self.parent.rows(kept), self.child.rows(kept)
        return Participants(
            operation=np.repeat(np.arange(len(kept)), 2),
            clock=np.tile([0, 1], len(kept)),
            start=_alternating(parent.start, child.start),
            end=_alternating(parent.end, child.end),
            reading=_alternating(parent.reading, child.reading),
            is_together=np.repeat(child.is_together, 2),
        )


def _alternating(first: Float64Array, second: Float64Array) -> Float64Array:
    """Interleave two arrays: the first value of each, then the second of each, and so on."""
    return np.stack([first, second], axis=1).ravel()


def _spread(values: Float64Array) -> float:
    return float(np.abs(values - np.median(values)).sum())
