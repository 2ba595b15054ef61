"""One reason to doubt a trace: the rule, where and when it applies, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Int64Array, Intervals, covered_length, union

NO_INTERVALS: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Doubt:
    """One broken rule on a rank, a device or a stream.

    rule         name of the rule
    sentence     what was found and what it means
    count        events or intervals that break the rule
    event_index  the event to look at first; None if the rule is not about events
    times        when the numbers of the trace may be wrong; empty if that has no time
    device, stream  None if the rule applies to all of them, or to the host
    from_ns, to_ns  where to look, if `times` is empty; None if that has no time
    """

    rule: str
    sentence: str
    count: int = 1
    event_index: int | None = None
    times: Intervals = NO_INTERVALS
    device: int | None = None
    stream: int | None = None
    from_ns: int | None = None
    to_ns: int | None = None

    @property
    def doubtful_ns(self) -> int | None:
        """How long the doubt lasts in all; None if it has no time."""
        return covered_length(*self.times) if len(self.times[0]) else None

    @property
    def span(self) -> tuple[int | None, int | None]:
        """When the doubt begins and ends."""
        if not len(self.times[0]):
            return self.from_ns, self.to_ns
        return int(self.times[0].min()), int(self.times[1].max())


def times_of(events: pl.DataFrame, start: str = "start_ns", end: str = "end_ns") -> Intervals:
    """Return the union of two columns of starts and ends."""
    return union(events[start].to_numpy(), events[end].to_numpy())


def common(first: Intervals, second: Intervals) -> Intervals:
    """Return the time that both sets of disjoint intervals in order cover.

    >>> import numpy as np
    >>> starts, ends = common((np.array([0, 20]), np.array([10, 30])), (np.array([5]), np.array([25])))
    >>> starts.tolist(), ends.tolist()
    ([5, 20], [10, 25])
    """
    times = np.concatenate([first[0], first[1], second[0], second[1]])
    changes = np.concatenate([_steps(first), _steps(second)])
    order = np.lexsort((changes, times))
    active = np.cumsum(changes[order])
    rows = np.flatnonzero(active[:-1] == 2)  # noqa: PLR2004 -- both cover it
    return union(times[order][rows], times[order][rows + 1])


def counted(count: int, singular: str, plural: str = "") -> str:
    """Write a count with its noun: `1 launch`, `3,000 launches`."""
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Write the first few names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _steps(intervals: Intervals) -> Int64Array:
    return np.repeat(np.array([1, -1], np.int64), len(intervals[0]))
