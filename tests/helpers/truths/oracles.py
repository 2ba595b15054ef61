"""Slow, obviously correct algorithms for comparison with the fast ones."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

Pairs = Iterable[tuple[int, int]]


def covered(pairs: Pairs) -> set[int]:
    """Return every whole nanosecond that lies in at least one of the half-open intervals."""
    return {moment for start, end in pairs for moment in range(start, end)}


def holes(pairs: Pairs) -> set[int]:
    """Return the uncovered nanoseconds between the first and the last covered nanosecond."""
    inside = covered(pairs)
    return set(range(min(inside), max(inside) + 1)) - inside if inside else set()


def state_lengths(classes: Sequence[Pairs]) -> Counter[int]:
    """Return how many ns each combination of classes is active; in its key, bit j is set if class j is active."""
    sets = [covered(pairs) for pairs in classes]
    everything = set().union(*sets) if sets else set()
    window = range(min(everything), max(everything) + 1) if everything else range(0)
    return Counter(sum(1 << bit for bit, members in enumerate(sets) if moment in members) for moment in window)


def gap_lengths(pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return the idle time before each interval, or 0 for the first; the intervals must be sorted by start."""
    return [
        max(0, start - max(end for _, end in pairs[:index])) if index else 0 for index, (start, _) in enumerate(pairs)
    ]


def quantile(values: Iterable[int], share: float) -> float:
    """Return the quantile, with linear interpolation between neighbouring values."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def sample_deviation(values: Sequence[int]) -> float:
    """Return the standard deviation of a sample, or 0 for a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def nested(intervals: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, bool]]:
    """For each interval (group, start, length), return its parent, its depth, and whether a sibling overlaps its start.

    The parent is a row number, or -1 for an interval without a parent. Only siblings that begin earlier are compared.
    """

    def outside(row: int) -> tuple[int, int, int]:
        _, start, length = intervals[row]
        return start, -length, row

    def around(row: int, other: int) -> bool:
        (group, start, length), (other_group, other_start, other_length) = intervals[row], intervals[other]
        ends_later = other_start + other_length >= start + length
        return group == other_group and outside(other) < outside(row) and ends_later

    def cut(row: int, other: int) -> bool:
        (group, start, length), (other_group, other_start, other_length) = intervals[row], intervals[other]
        is_open = other_start <= start < other_start + other_length < start + length
        return group == other_group and outside(other) < outside(row) and is_open

    def parent(row: int) -> int:
        return max((other for other in rows if around(row, other)), key=outside, default=-1)

    def depth(row: int) -> int:
        return 0 if parent(row) == -1 else 1 + depth(parent(row))

    def is_cut(row: int) -> bool:
        return any(cut(row, other) and parent(row) == parent(other) for other in rows)

    rows = range(len(intervals))
    return [(parent(row), depth(row), is_cut(row)) for row in rows]
